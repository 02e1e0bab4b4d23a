//! Requests to the child process that follows grammars, and its answers, in JSON.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use foretoken_model::child::{Handler, Task};
use foretoken_model::token::TokenId;
use serde::{Deserialize, Serialize};

use crate::grammar::Grammar;
use crate::mask::Mask;
use crate::masker::Masker;

/// Grammars as a task of the child process. Its time is that of the masks of a draft.
pub const TASK: Task = Task { name: "grammar", memory: 512 << 20, time: Duration::from_secs(2), start };

/// Time limit for reading a vocabulary, and for compiling a grammar.
pub const READ: Duration = Duration::from_secs(30);
pub const COMPILE: Duration = Duration::from_secs(3);

/// A request. Texts have numbers, since only the last one that began is followed.
#[derive(Debug, Serialize, Deserialize)]
pub enum Ask<'a> {
    /// Read a model's vocabulary, unless it was the last one.
    Read(Cow<'a, Vocabulary>),
    /// Begin a text of a grammar.
    Begin { text: u64, grammar: Cow<'a, Grammar> },
    /// Append tokens to the text, and return the masks along each of these paths of guesses.
    Follow { text: u64, new: Cow<'a, [TokenId]>, paths: Vec<Cow<'a, [TokenId]>> },
}

/// A model's file or folder, the number of tokens that it scores, and those that end a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vocabulary {
    pub path: Box<Path>,
    pub rows: usize,
    pub ends: Vec<TokenId>,
}

/// Masks along paths, see [`crate::matching::Matching::masks`]. A mask that comes again is not
/// sent again.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Masks {
    /// True if the masks that were sent before are dropped.
    pub starts_over: bool,
    /// Masks that were not sent before.
    pub new: Vec<Mask>,
    /// For each path its masks, by their numbers in the order in which they were sent.
    pub paths: Vec<Vec<usize>>,
}

/// The masks, or the reason of a failure as part of a sentence.
pub type Answer = Result<Masks, String>;

/// Returns the function that answers requests in the child process.
fn start() -> Handler {
    let mut masker = Masker::default();
    Box::new(move |input| {
        let answer = match serde_json::from_slice::<Ask<'_>>(input) {
            Ok(ask) => masker.answer(&ask),
            Err(error) => Err(error.to_string()),
        };
        serde_json::to_vec(&answer).unwrap_or_default()
    })
}
