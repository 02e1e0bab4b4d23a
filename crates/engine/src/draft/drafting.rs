//! Draft of a round, with the reason for its length.

use super::Draft;
use crate::accept::{Guess, Guesses};
use crate::context::Context;
use crate::governor::{DraftWork, Governor, Part};
use crate::speculation::{DraftLength, Room, Speculation, Threshold};
use crate::trace::{Decision, LengthReason};

/// Inputs of a round's drafts.
#[derive(Clone, Copy)]
pub(crate) struct RoundInput<'a> {
    pub context: &'a Context,
    pub speculation: &'a Speculation,
    /// Number of tokens that may be drafted.
    pub room: Room,
    /// Number of token ids that the target has.
    pub vocabulary: usize,
}

/// Draft of a round, with the reason for its length.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Drafting {
    pub guesses: Guesses,
    /// Consecutive parts of the draft by drafter.
    pub parts: Vec<Part>,
    /// Maximum path length that was requested.
    pub length: usize,
    pub reason: LengthReason,
    pub threshold: Option<f32>,
    pub staged: bool,
    pub decision: Option<Decision>,
    /// Chance that each guess and all its ancestors are accepted; empty if it is not known.
    pub survivals: Vec<f32>,
    /// Price in tokens of verifying one more guess; `None` if the draft does not end by prices.
    pub row_price: Option<f32>,
    /// Rows of each step of the first drafter, and all its candidates, as of a [`Draft`].
    pub steps: Vec<usize>,
    pub candidates: Vec<Guess>,
    /// Tokens that the first drafter had to prefill.
    pub behind: usize,
}

impl Drafting {
    /// A round without a draft.
    pub(crate) fn none(reason: LengthReason) -> Self {
        Self { reason, ..Self::default() }
    }

    /// Work on the draft beside its guesses.
    pub(crate) fn work(&self) -> DraftWork<'_> {
        let certain = self.candidates.iter().all(|guess| guess.drawn_from.is_none());
        DraftWork {
            parts: &self.parts,
            behind: self.behind,
            steps: &self.steps,
            candidates: if certain { &self.candidates } else { &[] },
        }
    }

    /// Expected tokens of the round, with the one that the target adds; `None` if nobody drafted or
    /// a chance is not known.
    pub(crate) fn expected(&self) -> Option<f32> {
        let known = !self.parts.is_empty() && self.survivals.len() == self.guesses.len();
        known.then(|| 1.0 + self.survivals.iter().sum::<f32>())
    }

    /// Cuts an existing draft to the part worth verifying. Returns it with the value of that round.
    pub(super) fn take(
        governor: &Governor,
        drafter: usize,
        draft: Draft,
        RoundInput { speculation, room, .. }: RoundInput<'_>,
    ) -> (Self, f64) {
        let Draft { mut guesses, shortened, .. } = draft;
        let whole = speculation.length != DraftLength::Auto;
        let mut drafting = Self { length: guesses.len(), ..Self::default() };
        if !guesses.is_chain() {
            drafting.reason = shortened.unwrap_or(LengthReason::Fixed);
            return (drafting.made_by(drafter, guesses), 1.0);
        }
        if let Threshold::Fixed(least) = speculation.threshold {
            drafting.threshold = Some(least);
            guesses.truncate(governor.likely(drafter, &guesses, f64::from(least)));
        }
        let (length, prospect) = governor.verifiable(drafter, &guesses, whole);
        let nothing = guesses.is_empty();
        drafting.reason = match speculation.length {
            DraftLength::Off => LengthReason::Off,
            DraftLength::Fixed(_) if room.cuts(speculation.length) => LengthReason::NoRoom,
            DraftLength::Fixed(_) => shortened.unwrap_or(LengthReason::Fixed),
            DraftLength::Auto if nothing => LengthReason::NoMatch,
            DraftLength::Auto if length == 0 => LengthReason::WouldNotPay,
            DraftLength::Auto => LengthReason::Governed,
        };
        drafting.length = if whole { room.fit(speculation.length) } else { length };
        guesses.truncate(length);
        drafting.survivals = governor.survivals(drafter, &guesses, 1.0);
        (drafting.made_by(drafter, guesses), governor.round_value(prospect))
    }

    /// Returns `self` with `guesses` of one drafter.
    pub(super) fn made_by(self, drafter: usize, guesses: Guesses) -> Self {
        let part = Part { drafter, guesses: guesses.len() };
        let parts = if guesses.is_empty() && self.steps.is_empty() { Vec::new() } else { vec![part] };
        Self { parts, guesses, ..self }
    }

    /// Returns `self`, with the guesses of a free draft if it has none that are worth verifying.
    pub(super) fn or(mut self, free: Self) -> Self {
        if self.guesses.is_empty() && !free.guesses.is_empty() {
            self.parts.extend(free.parts);
            (self.guesses, self.survivals) = (free.guesses, free.survivals);
            (self.length, self.reason) = (free.length, free.reason);
        }
        self
    }

    /// Appends another drafter's chain.
    pub(super) fn extend(&mut self, drafter: usize, guesses: Guesses, survivals: Vec<f32>) {
        self.survivals.extend(survivals);
        self.parts.push(Part { drafter, guesses: guesses.len() });
        guesses.into_iter().for_each(|guess| self.guesses.follow(guess));
        self.length = self.length.max(self.guesses.len());
    }
}
