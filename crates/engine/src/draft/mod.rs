//! Who guesses: what a drafter is asked for and what it gives. Does not judge.

mod model;
mod ngram;
mod suffix_automaton;

use std::ops::ControlFlow;

use crate::accept::Guess;
use crate::error::Result;
use crate::sampler::Sampler;
use crate::trace::{DrafterKind, LengthReason, TokenId};

pub use model::ModelDrafter;
pub use ngram::NgramDrafter;

/// A chain of guesses, each following the one before.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    pub guesses: Vec<Guess>,
    /// Why there are fewer guesses than were asked for; `None` when there are not.
    pub shortened: Option<LengthReason>,
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

    /// Up to `length` tokens to follow `context` (prompt and reply so far, never empty), in the way
    /// `sampler` is set.
    ///
    /// # Errors
    /// When guessing fails; the reply then goes on without this drafter.
    fn draft(&mut self, context: &[TokenId], length: usize, sampler: &mut Sampler) -> Result<Draft>;
}
