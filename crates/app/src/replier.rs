//! Who replies: a conversation goes in, text comes out as it is written. Who has a trace tells of its rounds, too;
//! who knows of text alone, a service on another computer say, does not.

use std::fmt;

use foretoken_engine::model::ChatMessage;
use foretoken_engine::trace::{Finish, Round, Summary};

use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::{PromptSize, Settings};

/// Writes replies.
pub trait Replier: Send {
    /// Replies to `conversation` and tells `on` how it goes. `cancel` ends it early, which is an ending and no error.
    ///
    /// # Errors
    /// Before [`Event::Started`] the conversation was refused; afterwards what was written is kept.
    fn reply(
        &mut self,
        conversation: &[ChatMessage],
        settings: &Settings,
        cancel: &Cancel,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Ending>;

    /// How long the prompt is that a conversation makes, which is not replied to.
    ///
    /// # Errors
    /// When it cannot be put into a prompt.
    fn measure(&mut self, conversation: &[ChatMessage], settings: &Settings) -> Result<PromptSize>;
}

impl PromptSize {
    /// Whether it can be replied to.
    pub fn fits(self) -> bool {
        self.tokens < self.context
    }

    /// Whether a quarter of the context is left for the reply.
    pub fn leaves_room(self) -> bool {
        self.tokens <= self.context - self.context.div_ceil(4)
    }
}

impl fmt::Display for PromptSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tokens, context } = self;
        write!(
            f,
            "its prompt has {tokens} tokens, and the model's context window holds {context}, including one for the reply"
        )
    }
}

/// What happens while a reply is written.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The conversation was accepted; it is replied to by the models with these labels. Comes first.
    Started { target: &'a str, draft: Option<&'a str> },
    /// Tokens of the prompt that were read.
    Prompt { done: usize, total: usize },
    /// By which round the next text was written, where there are rounds.
    Round(&'a Round),
    /// What was added to the reply; after a round all that it added, which may be nothing.
    Text { delta: &'a str },
}

/// How a reply ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    pub finish: Finish,
    /// Its numbers, where they are known.
    pub summary: Option<Summary>,
}
