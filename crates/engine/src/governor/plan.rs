//! Plan of a drafter for a round, and the expected result.

use super::worth::Prices;
use crate::accept::Guess;
use crate::trace::LengthReason;

/// Consecutive guesses of a draft by one drafter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub drafter: usize,
    pub guesses: usize,
}

/// Work on a round's draft, beside the guesses that were verified.
#[derive(Debug, Clone, Copy, Default)]
pub struct DraftWork<'a> {
    /// Consecutive parts of the guesses by drafter.
    pub parts: &'a [Part],
    /// Tokens that the first of these drafters had to prefill.
    pub behind: usize,
    /// Rows of each of its steps.
    pub steps: &'a [usize],
    /// Its certain candidates, verified or not; empty if they were not recorded.
    pub candidates: &'a [Guess],
}

/// Plan of a drafter for a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub drafter: usize,
    /// Tokens of a chain: of a fixed one, or of the one with the best expected speed; 0 for no
    /// draft.
    pub length: usize,
    /// Prices by which a draft ends; `None` for a draft of a fixed shape.
    pub prices: Option<Prices>,
    /// Least chance that a guess and all its ancestors are accepted.
    pub least_survival: f64,
    pub staged: bool,
    pub reason: LengthReason,
    /// Expected result of the chain.
    pub prospect: Prospect,
    /// Length with the best expected speed; a trial has another.
    pub(super) best: usize,
    /// Milliseconds to take from the time saved for trials.
    pub(super) trial_ms: f64,
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

impl Plan {
    /// Returns true if this is a draft on trial, which was not the best choice.
    pub fn is_trial(&self) -> bool {
        self.reason == LengthReason::Probe && self.length > 0
    }

    pub(super) fn chain(drafter: usize, length: usize, reason: LengthReason, prospect: Prospect) -> Self {
        Self {
            drafter,
            length,
            prices: None,
            least_survival: 0.0,
            staged: false,
            reason,
            prospect,
            best: length,
            trial_ms: 0.0,
        }
    }
}
