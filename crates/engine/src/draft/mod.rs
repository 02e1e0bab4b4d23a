//! Who guesses: what a drafter is asked for and what it gives. Does not judge.

mod drafters;
mod measure;
mod model;
mod ngram;
mod recycling;
mod suffix_automaton;
mod trial;
mod vocabulary;

use std::ops::ControlFlow;

use crate::accept::Guess;
use crate::error::Result;
use crate::forward::Row;
use crate::governor::{Calibration, Least, Shape};
use crate::sampler::Sampler;
use crate::trace::{DrafterKind, LengthReason, TokenId};

pub use drafters::Drafters;
pub(crate) use drafters::Drafting;
pub use model::ModelDrafter;
pub use ngram::NgramDrafter;
pub use recycling::RecyclingDrafter;
pub use trial::{Ground, Trial};
pub use vocabulary::{Intersection, Vocabulary};

/// Guesses, a tree in which parents come before their children.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    pub guesses: Vec<Guess>,
    /// Why there are fewer guesses than were asked for; `None` when there are not.
    pub shortened: Option<LengthReason>,
}

impl Draft {
    /// Adds a guess that follows the one added last.
    fn follow(&mut self, guess: Guess) {
        let parent = self.guesses.len().checked_sub(1);
        self.guesses.push(Guess { parent, ..guess });
    }
}

/// What is asked of a drafter.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// Most tokens on a path.
    pub length: usize,
    /// How many guesses shall follow each; `None` for a chain. Drafters that cannot tell draft a chain.
    pub shape: Option<&'a Shape>,
    /// Where a chain ends before its length is reached.
    pub bound: Option<Bound<'a>>,
    /// Whether a draft model is drafted for.
    pub staged: bool,
    /// What another has drafted to follow the context, and the guesses shall follow. Asked of those alone
    /// that [guess at no cost](Drafter::is_cheap).
    pub ahead: &'a [TokenId],
}

impl Order<'_> {
    /// A chain of up to `length` tokens.
    pub fn chain(length: usize) -> Self {
        Self { length, shape: None, bound: None, staged: false, ahead: &[] }
    }
}

/// Where a chain ends, and how the chance that all of it is accepted is reckoned from a drafter's confidence.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    pub least: Least,
    pub calibration: &'a Calibration,
}

impl Bound<'_> {
    /// The chance of a draft of `depth` tokens and chance `reach` with one more; `None` if that is too little.
    fn extend(&self, reach: f64, depth: usize, guess: &Guess) -> Option<f64> {
        let reach = reach * self.calibration.chance(depth, guess.confidence);
        (reach >= self.least.chance || depth < self.least.spared).then_some(reach)
    }

    /// Whether a chain whose chance is `reach` ends as it is, without a further token being drafted.
    fn ends(&self, reach: f64) -> bool {
        reach < self.least.further
    }
}

/// Runs ahead of the target.
///
/// There is no rollback: a drafter compares `context` with what it has cached, forgets what differs
/// and feeds what is missing. The same rule serves rejected drafts, the next turn and an edit.
pub trait Drafter: Send {
    fn kind(&self) -> DrafterKind;

    /// Makes ready to draft after `context`, where that takes long: calls `on_progress(done, total)`
    /// with tokens now and then, and ends early when that says `Break`. Drafting without it is only
    /// slower.
    ///
    /// # Errors
    /// As [`Self::draft`].
    fn prepare(
        &mut self,
        _context: &[TokenId],
        _on_progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    /// What `order` asks for, to follow `context` (prompt and reply so far, never empty), in the way
    /// `sampler` is set.
    ///
    /// # Errors
    /// When guessing fails; the reply then goes on without this drafter.
    fn draft(&mut self, context: &[TokenId], order: &Order<'_>, sampler: &mut Sampler) -> Result<Draft>;

    /// Hears what the target thought of what may follow `token`, which is part of the text now.
    fn observe(&mut self, _token: TokenId, _row: Row<'_>) {}

    /// Texts of other conversations that this one may repeat, in place of those before.
    fn remember(&mut self, _texts: &[Vec<TokenId>]) {}

    /// Forgets what it has learned from texts so far, and what it has read.
    fn forget(&mut self) {}

    /// How many tokens of `context` it still has to read before it can draft after it.
    fn behind(&self, _context: &[TokenId]) -> usize {
        0
    }

    /// Whether asking it for a draft takes next to no time.
    fn is_cheap(&self) -> bool {
        true
    }
}
