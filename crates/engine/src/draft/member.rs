//! One of several drafters: it is left out of the rest of a reply once it failed.

use foretoken_forward::Taps;
use foretoken_model::Error;

use super::caught::CaughtDrafter;
use super::drafting::{Drafting, RoundInput};
use super::{Bound, Draft, DraftRequest, Drafter, Observation};
use crate::context::Context;
use crate::drafter_kind::DrafterKind;
use crate::governor::{Governor, Plan};
use crate::sampler::Sampler;
use crate::speculation::{DrafterChoice, Speculation, Tree};
use crate::trace::LengthReason;

pub(super) struct Member {
    /// Index among the drafters; also its index in the governor.
    number: usize,
    pub(super) drafter: CaughtDrafter,
    /// Reason why it is left out of the reply; `None` while it drafts.
    failure: Option<String>,
}

impl Member {
    pub(super) fn new(number: usize, drafter: Box<dyn Drafter>) -> Self {
        Self { number, drafter: CaughtDrafter::new(drafter), failure: None }
    }

    /// Returns true if it is left out of the reply.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some() || self.drafter.panicked()
    }

    /// Reason why it is left out of the reply, as a sentence.
    pub(super) fn failure(&self) -> Option<String> {
        let panicked = || self.drafter.panicked().then(|| Error::DraftPanicked.to_string());
        self.failure.clone().or_else(panicked)
    }

    /// Lets it draft again, in a new reply. A drafter that panicked stays excluded.
    pub(super) fn begin_reply(&mut self) {
        self.failure = None;
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn kind(&self) -> DrafterKind {
        self.drafter.kind()
    }

    /// Returns true if its drafts are free.
    pub(super) fn is_free(&self) -> bool {
        self.drafter.cost().is_free()
    }

    /// Returns true if the settings allow it to draft.
    pub(super) fn drafts_in(&self, speculation: &Speculation) -> bool {
        !self.has_failed() && !speculation.is_off() && speculation.drafter.allows(self.kind())
    }

    /// Tokens of `context` that it, or the target on its behalf, has to read before it can draft.
    pub(super) fn behind(&self, context: &Context) -> usize {
        self.drafter.behind(context) + self.drafter.missing_features(context)
    }

    /// Returns true if it has all hidden states it needs.
    pub(super) fn has_features(&self, context: &Context) -> bool {
        self.drafter.missing_features(context) == 0
    }

    /// Excludes it from the rest of the reply.
    pub(super) fn fail(&mut self, why: &dyn std::fmt::Display) {
        tracing::warn!("a drafter failed, and the reply continues without it: {why}");
        self.failure.get_or_insert(why.to_string());
    }

    /// Passes on tokens that the target ran, with hidden states if it reads exactly the tapped
    /// ones.
    pub(super) fn observe(&mut self, observed: &Observation<'_>, tapped: &Taps) {
        if self.has_failed() {
            return;
        }
        let features = observed.features.filter(|_| self.drafter.taps() == Some(tapped));
        if let Err(error) = self.drafter.observe(&Observation { features, ..*observed }) {
            self.fail(&error);
        }
    }

    pub(super) fn draft(
        &mut self,
        RoundInput { context, vocabulary, .. }: RoundInput<'_>,
        request: &DraftRequest<'_>,
        sampler: &mut Sampler,
    ) -> Option<Draft> {
        if self.has_failed() {
            return None;
        }
        match self.drafter.draft(context, request, sampler) {
            Ok(draft) if draft.guesses.iter().all(|guess| (guess.token as usize) < vocabulary) => Some(draft),
            Ok(_) => {
                self.fail(&"it drafted a token the target does not have");
                None
            }
            Err(error) => {
                self.fail(&error);
                None
            }
        }
    }

    /// Longest draft of a free drafter.
    pub(super) fn guess(
        &mut self,
        governor: &Governor,
        input: RoundInput<'_>,
        sampler: &mut Sampler,
    ) -> Option<Draft> {
        let RoundInput { speculation, room, .. } = input;
        let length = room.fit(speculation.length);
        // With several drafters, the governor chooses trees for those it plans.
        let is_alone = speculation.drafter != DrafterChoice::Combined;
        let shape = match speculation.tree {
            Tree::Width(width @ 2..) if is_alone && self.drafter.grows_trees() => {
                Some(governor.tree(self.number, width as usize, length, room.longest()))
            }
            _ => None,
        };
        let request = DraftRequest { shape: shape.as_ref(), ..DraftRequest::chain(length) };
        let mut draft = self.draft(input, &request, sampler)?;
        if shape.is_none() {
            draft.guesses.truncate(length);
        }
        Some(draft)
    }

    /// Drafts as the governor planned.
    pub(super) fn follow(
        &mut self,
        governor: &Governor,
        plan: &Plan,
        input: RoundInput<'_>,
        sampler: &mut Sampler,
    ) -> Option<Drafting> {
        if plan.length == 0 {
            return Some(Drafting::none(plan.reason));
        }
        let calibration = governor.calibration(self.number);
        let request = DraftRequest {
            length: plan.length,
            shape: plan.shape.as_ref(),
            bound: plan.cutoff.map(|cutoff| Bound { cutoff, calibration }),
            staged: plan.staged,
            ahead: &[],
        };
        let draft = self.draft(input, &request, sampler)?;
        let mut guesses = draft.guesses;
        if plan.shape.is_none() {
            guesses.truncate(plan.length);
        }
        // Where confidence ends a governed chain, the planned length is only the room for it.
        let ends_by_confidence = plan.cutoff.is_some() && plan.reason == LengthReason::Governed;
        let drafting = Drafting {
            length: if ends_by_confidence { guesses.len() } else { plan.length },
            reason: draft.shortened.unwrap_or(plan.reason),
            threshold: plan.cutoff.map(|cutoff| cutoff.survival.max(cutoff.to_go_on) as f32),
            staged: plan.staged && plan.shape.is_none(),
            ..Drafting::default()
        };
        Some(drafting.made_by(self.number, guesses))
    }
}
