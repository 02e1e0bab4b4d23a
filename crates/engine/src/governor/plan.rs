//! What a drafter shall do in a round, and what is expected of it. Chooses nothing.

use super::shape::{KnownTree, Shape};
use crate::trace::LengthReason;

/// How many of a draft's guesses, one after the other, a drafter made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub drafter: usize,
    pub guesses: usize,
}

/// What a drafter shall do in a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub drafter: usize,
    /// Most tokens on a path; 0 for no draft.
    pub length: usize,
    pub shape: Option<Shape>,
    pub cutoff: Option<Cutoff>,
    pub staged: bool,
    pub reason: LengthReason,
    /// What to expect of it.
    pub prospect: Prospect,
    /// The length that is thought best, which a trial departs from.
    pub(super) best: usize,
    /// Milliseconds that it takes from what was set aside for trials.
    pub(super) trial_ms: f64,
    /// The best tree, where it was looked for: nobody needs to look again for a while.
    pub(super) tree: Option<KnownTree>,
}

/// What a round is expected to bring.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prospect {
    pub tokens: f64,
    pub ms: f64,
}

impl Prospect {
    /// Tokens per millisecond.
    pub fn rate(self) -> f64 {
        self.tokens / self.ms
    }
}

/// Where a chain ends, by its survival: the chance that all of it is accepted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cutoff {
    /// A token with which it is less is left out.
    pub survival: f64,
    /// So many tokens are drafted in any case.
    pub min_length: usize,
    /// Where it is less no further token is drafted, though those that were are verified.
    pub to_go_on: f64,
}

impl Plan {
    /// Whether a draft is tried that was not chosen.
    pub fn is_trial(&self) -> bool {
        self.reason == LengthReason::Probe && self.length > 0
    }

    pub(super) fn chain(drafter: usize, length: usize, reason: LengthReason, prospect: Prospect) -> Self {
        Self {
            drafter,
            length,
            shape: None,
            cutoff: None,
            staged: false,
            reason,
            prospect,
            best: length,
            trial_ms: 0.0,
            tree: None,
        }
    }
}
