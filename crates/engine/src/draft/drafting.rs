//! Draft of a round, with the reason for its length.

use super::Draft;
use crate::accept::Guesses;
use crate::context::Context;
use crate::governor::{Governor, Part};
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
}

impl Drafting {
    /// A round without a draft.
    pub(crate) fn none(reason: LengthReason) -> Self {
        Self { reason, ..Self::default() }
    }

    /// Cuts an existing draft to the part worth verifying. Returns it with the value of that round.
    pub(super) fn take(
        governor: &Governor,
        drafter: usize,
        draft: Draft,
        RoundInput { speculation, room, .. }: RoundInput<'_>,
    ) -> (Self, f64) {
        let Draft { mut guesses, shortened } = draft;
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
        (drafting.made_by(drafter, guesses), governor.round_value(prospect))
    }

    /// Returns `self` with `guesses` of one drafter.
    pub(super) fn made_by(self, drafter: usize, guesses: Guesses) -> Self {
        let part = Part { drafter, guesses: guesses.len() };
        let parts = if guesses.is_empty() { Vec::new() } else { vec![part] };
        Self { parts, guesses, ..self }
    }

    /// Appends another drafter's chain.
    pub(super) fn extend(&mut self, drafter: usize, guesses: Guesses) {
        self.parts.push(Part { drafter, guesses: guesses.len() });
        guesses.into_iter().for_each(|guess| self.guesses.follow(guess));
        self.length = self.length.max(self.guesses.len());
    }
}
