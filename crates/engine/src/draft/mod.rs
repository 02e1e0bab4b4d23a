//! Who guesses: what a drafter is asked for and what it gives. Does not judge.

mod chain;
mod cost;
mod drafters;
mod drafting;
mod head;
mod measure;
mod member;
mod model;
mod ngram;
mod recycling;
mod seen;
mod suffix_automaton;
mod trial;
mod vocabulary;

use std::ops::ControlFlow;

use crate::accept::{Guess, Guesses};
use crate::context::Context;
use crate::drafter_kind::DrafterKind;
use crate::error::Result;
use crate::forward::Taps;
use crate::governor::{Calibration, Cutoff, Shape};
use crate::sampler::Sampler;
use crate::token::TokenId;
use crate::trace::LengthReason;

pub use cost::Cost;
pub use drafters::Drafters;
pub(crate) use drafters::Unheard;
pub(crate) use drafting::Drafting;
pub use head::{HeadDrafter, head_drafter};
pub(crate) use measure::Sample;
pub use model::ModelDrafter;
pub use ngram::NgramDrafter;
pub use recycling::RecyclingDrafter;
pub use seen::{Seen, let_hear};
pub use trial::{Ground, Trial};
pub use vocabulary::{Intersection, Vocabulary};

/// Guesses, and why there are no more.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    pub guesses: Guesses,
    /// Why there are fewer guesses than were asked for; `None` when there are not.
    pub shortened: Option<LengthReason>,
}

/// What is asked of a drafter.
#[derive(Debug, Clone, Copy)]
pub struct DraftRequest<'a> {
    /// Most tokens on a path.
    pub length: usize,
    /// How many guesses shall follow each; `None` for a chain. Drafters that cannot tell draft a chain.
    pub shape: Option<&'a Shape>,
    /// Where a chain ends before its length is reached.
    pub bound: Option<Bound<'a>>,
    /// Whether a draft model is drafted for.
    pub staged: bool,
    /// What another has drafted to follow the context, and the guesses shall follow. Asked of those alone
    /// that [guess at no cost](Cost::Free).
    pub ahead: &'a [TokenId],
}

impl DraftRequest<'_> {
    /// A chain of up to `length` tokens.
    pub fn chain(length: usize) -> Self {
        Self { length, shape: None, bound: None, staged: false, ahead: &[] }
    }
}

/// Where a chain ends, and how the chance that all of it is accepted is reckoned from a drafter's confidence.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    pub cutoff: Cutoff,
    pub calibration: &'a Calibration,
}

impl Bound<'_> {
    /// The chance of a draft of `depth` tokens and chance `survival` with one more; `None` if that is too little.
    fn extend(&self, survival: f64, depth: usize, guess: &Guess) -> Option<f64> {
        let survival = survival * self.calibration.chance(depth, guess.confidence);
        (survival >= self.cutoff.survival || depth < self.cutoff.min_length).then_some(survival)
    }

    /// Whether a chain whose chance is `survival` ends as it is, without a further token being drafted.
    fn ends(&self, survival: f64) -> bool {
        survival < self.cutoff.to_go_on
    }
}

/// Runs ahead of the target.
///
/// There is no rollback: a drafter compares `context` with what it has cached, forgets what differs
/// and feeds what is missing. The same rule serves rejected drafts, the next turn and an edit. A [`Context`]
/// knows what of it is [unchanged](Context::unchanged_since), so that only what is new need be looked at.
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
        _context: &Context,
        _on_progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    /// What `request` asks for, to follow `context` (prompt and reply so far, never empty), in the way
    /// `sampler` is set.
    ///
    /// # Errors
    /// When guessing fails; the reply then goes on without this drafter.
    fn draft(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        sampler: &mut Sampler,
    ) -> Result<Draft>;

    /// Hears what the target ran of the text: each part of a prompt, and after each round, whoever drafted, the
    /// tokens that were kept. Of a text that is drafted for from its beginning it hears every position but the
    /// last once, in order.
    ///
    /// # Errors
    /// When what it does with it fails; the reply then goes on without this drafter.
    fn observe(&mut self, _seen: &Seen<'_>) -> Result<()> {
        Ok(())
    }

    /// The hidden states it reads of what it hears; `None` for none.
    fn taps(&self) -> Option<&Taps> {
        None
    }

    /// Tokens at the end of `context`, less the last, which the target has yet to run, that it would have to have
    /// heard to draft after it and has not. The target runs these again where it shall draft.
    fn deaf(&self, _context: &Context) -> usize {
        0
    }

    /// Whether it can guess several tokens for one place, where it is told to.
    fn grows_trees(&self) -> bool {
        false
    }

    /// Texts of other conversations that this one may repeat, in place of those before.
    fn remember(&mut self, _texts: &[Vec<TokenId>]) {}

    /// Forgets what it has learned from texts so far, and what it has read.
    fn forget(&mut self) {}

    /// How many tokens of `context` it still has to read before it can draft after it.
    fn behind(&self, _context: &Context) -> usize {
        0
    }

    /// What asking it for a draft costs.
    fn cost(&self) -> Cost {
        Cost::Free
    }
}
