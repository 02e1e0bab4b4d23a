//! Drafters: the trait, its requests and its drafts. Acceptance is in `accept`.

mod caught;
mod cost;
mod drafters;
mod drafting;
mod evaluation;
mod forced;
mod head;
mod measure;
mod member;
mod model;
mod ngram;
mod observation;
mod parked;
mod recycling;
mod search;
mod suffix_automaton;

mod vocabulary;

use std::ops::ControlFlow;

use foretoken_forward::Taps;
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use crate::accept::{Guess, Guesses};
use crate::context::Context;
use crate::drafter_kind::DrafterKind;
use crate::governor::Worth;
use crate::sampler::Sampler;
use crate::trace::LengthReason;

pub use caught::CaughtDrafter;
pub(crate) use caught::caught;
pub use cost::Cost;
pub use drafters::Drafters;
pub(crate) use drafters::FeatureGap;
pub(crate) use drafting::{Drafting, RoundInput};
pub use evaluation::{Evaluation, EvaluationText};
pub use forced::ForcedDrafter;
pub use head::{HeadDrafter, head_drafter};
pub use model::ModelDrafter;
pub use ngram::NgramDrafter;
pub use observation::{Observation, replay_for};
pub use parked::{ParkedDrafter, ParkedHead};
pub use recycling::RecyclingDrafter;
pub use search::Search;
pub use vocabulary::{Intersection, Vocabulary};

/// Guesses of a drafter, and why there are no more of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    pub guesses: Guesses,
    /// Why there are fewer guesses than requested; `None` if there are not.
    pub shortened: Option<LengthReason>,
    /// Rows of each step of a drafter that searched.
    pub steps: Vec<usize>,
    /// All guesses of a search, verified or not; parents are indices of this list.
    pub candidates: Vec<Guess>,
}

/// Request for a draft.
#[derive(Debug, Clone, Copy)]
pub struct DraftRequest<'a> {
    /// Maximum number of guesses on a path.
    pub length: usize,
    /// Maximum number of guesses that follow one token; 1 for a chain.
    pub width: usize,
    /// Maximum number of guesses.
    pub nodes: usize,
    /// Worth of guesses, which ends the draft early; `None` for as many as requested.
    pub worth: Option<Worth<'a>>,
    /// True for staged drafting: the draft model verifies guesses of a drafter of its own.
    pub staged: bool,
    /// Tokens that another drafter appended to the context; the guesses follow them. Only set for
    /// drafters that [draft at no cost](Cost::Free).
    pub ahead: &'a [TokenId],
}

impl DraftRequest<'_> {
    /// Requests a chain of up to `length` tokens.
    pub fn chain(length: usize) -> Self {
        Self { length, width: 1, nodes: length, worth: None, staged: false, ahead: &[] }
    }

    /// Requests up to `nodes` guesses, up to `width` of which follow one token, on paths of up to
    /// `length`.
    pub fn tree(length: usize, width: usize, nodes: usize) -> Self {
        Self { width, nodes, ..Self::chain(length) }
    }

    /// Limits the request to the `room` of a drafter's context.
    #[must_use]
    pub fn within(self, room: usize) -> Self {
        Self { length: self.length.min(room), nodes: self.nodes.min(room), ..self }
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

    /// Puts the caches of the present text aside, which this drafter goes on to share. `None` if it
    /// has none, or its engine cannot share them.
    fn park(&self) -> Option<ParkedDrafter> {
        None
    }

    /// Replaces the caches by those that a drafter of the same model parked.
    fn resume(&mut self, _parked: &ParkedDrafter) {}

    /// Number of tokens of `context` to read before drafting after it.
    fn behind(&self, _context: &Context) -> usize {
        0
    }

    /// Cost of a draft.
    fn cost(&self) -> Cost {
        Cost::Free
    }
}
