//! Drafters: the trait, its requests and its drafts. Acceptance is in `accept`.

mod caught;
mod chain;
mod cost;
mod drafters;
mod drafting;
mod evaluation;
mod head;
mod measure;
mod member;
mod model;
mod ngram;
mod observation;
mod recycling;
mod suffix_automaton;

mod vocabulary;

use std::ops::ControlFlow;

use foretoken_forward::Taps;
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use crate::accept::{Guess, Guesses};
use crate::context::Context;
use crate::drafter_kind::DrafterKind;
use crate::governor::{Calibration, Cutoff, Shape};
use crate::sampler::Sampler;
use crate::trace::LengthReason;

pub use caught::CaughtDrafter;
pub(crate) use caught::caught;
pub(crate) use chain::Chain;
pub use cost::Cost;
pub use drafters::Drafters;
pub(crate) use drafters::FeatureGap;
pub(crate) use drafting::{Drafting, RoundInput};
pub use evaluation::{Evaluation, EvaluationText};
pub use head::{HeadDrafter, head_drafter};
pub use model::ModelDrafter;
pub use ngram::NgramDrafter;
pub use observation::{Observation, replay_for};
pub use recycling::RecyclingDrafter;
pub use vocabulary::{Intersection, Vocabulary};

/// Guesses of a drafter, and why there are no more of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    pub guesses: Guesses,
    /// Why there are fewer guesses than requested; `None` if there are not.
    pub shortened: Option<LengthReason>,
}

/// Request for a draft.
#[derive(Debug, Clone, Copy)]
pub struct DraftRequest<'a> {
    /// Maximum number of guesses on a path.
    pub length: usize,
    /// Tree shape to draft; `None` for a chain. Drafters without tree support draft a chain.
    pub shape: Option<&'a Shape>,
    /// Early stop of a chain, before `length` is reached.
    pub bound: Option<Bound<'a>>,
    /// True for staged drafting: the draft model verifies guesses of a drafter of its own.
    pub staged: bool,
    /// Tokens that another drafter appended to the context; the guesses follow them. Only set for
    /// drafters that [draft at no cost](Cost::Free).
    pub ahead: &'a [TokenId],
}

impl DraftRequest<'_> {
    /// Requests a chain of up to `length` tokens.
    pub fn chain(length: usize) -> Self {
        Self { length, shape: None, bound: None, staged: false, ahead: &[] }
    }
}

/// Early stop of a chain. A drafter's confidence is calibrated into the chance that the whole chain
/// is accepted.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    pub cutoff: Cutoff,
    pub calibration: &'a Calibration,
}

impl Bound<'_> {
    /// Chance that a draft of `depth` tokens, with chance `survival`, is accepted with one more.
    /// `None` if that chance is below the cutoff.
    fn extend(&self, survival: f64, depth: usize, guess: &Guess) -> Option<f64> {
        let survival = survival * self.calibration.chance(depth, guess.confidence);
        (survival >= self.cutoff.survival || depth < self.cutoff.min_length).then_some(survival)
    }

    /// Returns true if a chain with chance `survival` ends without drafting a further token.
    fn ends(&self, survival: f64) -> bool {
        survival < self.cutoff.to_go_on
    }
}

/// Drafts tokens for a target.
///
/// There is no rollback. A drafter compares `context` with its cache, drops what differs and feeds
/// what is missing. Rejected drafts, the next turn and edits are all handled this way. A
/// [`Context`] records how much of it is [unchanged](Context::unchanged_since), so that only new
/// tokens are compared.
pub trait Drafter: Send {
    fn kind(&self) -> DrafterKind;

    /// Prefills `context`, where that takes long. Calls `on_progress(done, total)` with token
    /// counts and stops early when it returns `Break`. Optional: without it the next draft is only
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

    /// Drafts what `request` asks for after `context` (prompt and reply so far, never empty),
    /// sampling with `sampler`.
    ///
    /// # Errors
    /// When drafting fails; the reply then continues without this drafter.
    fn draft(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        sampler: &mut Sampler,
    ) -> Result<Draft>;

    /// Observes tokens that the target ran: each part of a prompt, and after each round the kept
    /// tokens, whoever drafted. When drafting starts with an empty context, every position but the
    /// last is observed once, in order.
    ///
    /// # Errors
    /// When processing them fails; the reply then continues without this drafter.
    fn observe(&mut self, _observed: &Observation<'_>) -> Result<()> {
        Ok(())
    }

    /// Hidden states of the target that this drafter reads; `None` if it reads none.
    fn taps(&self) -> Option<&Taps> {
        None
    }

    /// Number of tokens at the end of `context` whose hidden states this drafter still needs. The
    /// last token is not counted, since the target has yet to run it. The target runs the missing
    /// tokens again before this drafter drafts.
    fn missing_features(&self, _context: &Context) -> usize {
        0
    }

    /// Returns true if this drafter can draft trees when asked to.
    fn grows_trees(&self) -> bool {
        false
    }

    /// Replaces the texts of other conversations that this one may repeat.
    fn remember(&mut self, _texts: &[Vec<TokenId>]) {}

    /// Drops everything learned and cached from texts so far.
    fn forget(&mut self) {}

    /// Number of tokens of `context` to read before drafting after it.
    fn behind(&self, _context: &Context) -> usize {
        0
    }

    /// Cost of a draft.
    fn cost(&self) -> Cost {
        Cost::Free
    }
}
