//! Plan of a drafter for a round, and the expected result.

use super::shape::{CachedTree, Shape};
use crate::trace::LengthReason;

/// Consecutive guesses of a draft by one drafter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub drafter: usize,
    pub guesses: usize,
}

/// Plan of a drafter for a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub drafter: usize,
    /// Maximum tokens on a path; 0 for no draft.
    pub length: usize,
    pub shape: Option<Shape>,
    pub cutoff: Option<Cutoff>,
    pub staged: bool,
    pub reason: LengthReason,
    /// Expected result.
    pub prospect: Prospect,
    /// Length with the best expected speed; a trial has another.
    pub(super) best: usize,
    /// Milliseconds to take from the time saved for trials.
    pub(super) trial_ms: f64,
    /// Best tree, if it was computed; it is cached for a while.
    pub(super) tree: Option<CachedTree>,
}

/// Expected tokens and time of a round.
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

/// End of a chain, by its survival: the chance that all of it is accepted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cutoff {
    /// Least survival of a token that is verified.
    pub survival: f64,
    /// Tokens that are drafted in any case.
    pub min_length: usize,
    /// Least survival for drafting a further token; those already drafted are verified.
    pub to_go_on: f64,
}

impl Plan {
    /// Returns true if this is a draft on trial, which was not the best choice.
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
