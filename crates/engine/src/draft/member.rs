//! One who drafts beside others: asked for a draft, and left out of the reply once it failed.

use super::drafting::Drafting;
use super::{Bound, Draft, DraftRequest, Drafter, Seen};
use crate::context::Context;
use crate::drafter_kind::DrafterKind;
use crate::forward::Taps;
use crate::governor::{Governor, Plan};
use crate::sampler::Sampler;
use crate::speculation::{DrafterChoice, Room, Speculation, Tree};

pub(super) struct Member {
    /// Its place among the drafters, by which the governor tells it.
    number: usize,
    pub(super) drafter: Box<dyn Drafter>,
    pub(super) failed: bool,
    /// What its drafts cost is known, and not assumed.
    pub(super) is_measured: bool,
}

impl Member {
    pub(super) fn new(number: usize, drafter: Box<dyn Drafter>) -> Self {
        Self { number, drafter, failed: false, is_measured: true }
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn kind(&self) -> DrafterKind {
        self.drafter.kind()
    }

    /// Whether its drafts take no time.
    pub(super) fn is_free(&self) -> bool {
        self.drafter.cost().is_free()
    }

    /// Whether it may draft where a person has chosen so.
    pub(super) fn drafts_in(&self, speculation: &Speculation) -> bool {
        !self.failed && !speculation.is_off() && speculation.drafter.allows(self.kind())
    }

    /// Tokens of `context` that it, or the target for it, has to read before it can draft.
    pub(super) fn behind(&self, context: &Context) -> usize {
        self.drafter.behind(context) + self.drafter.deaf(context)
    }

    /// Whether it has heard all that it reads of what the target ran.
    pub(super) fn has_heard(&self, context: &Context) -> bool {
        self.drafter.deaf(context) == 0
    }

    /// The reply goes on without it.
    pub(super) fn fail(&mut self, why: &dyn std::fmt::Display) {
        tracing::warn!("a drafter failed, and the reply goes on without it: {why}");
        self.failed = true;
    }

    /// Hears what the target ran, with the hidden states if it reads just those that were tapped.
    pub(super) fn observe(&mut self, seen: &Seen<'_>, tapped: &Taps) {
        if self.failed {
            return;
        }
        let features = seen.features.filter(|_| self.drafter.taps() == Some(tapped));
        if let Err(error) = self.drafter.observe(&Seen { features, ..*seen }) {
            self.fail(&error);
        }
    }

    pub(super) fn draft(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        vocabulary: usize,
        sampler: &mut Sampler,
    ) -> Option<Draft> {
        if self.failed {
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

    /// As much as it can guess, at next to no cost.
    pub(super) fn guess(
        &mut self,
        governor: &Governor,
        context: &Context,
        speculation: &Speculation,
        room: Room,
        vocabulary: usize,
        sampler: &mut Sampler,
    ) -> Option<Draft> {
        let length = room.fit(speculation.length);
        // Trees beside others are the governor's choice, for those it plans.
        let is_alone = speculation.drafter != DrafterChoice::Combined;
        let shape = match speculation.tree {
            Tree::Width(width @ 2..) if is_alone && self.drafter.grows_trees() => {
                Some(governor.tree(self.number, width as usize, length, room.longest()))
            }
            _ => None,
        };
        let request = DraftRequest { shape: shape.as_ref(), ..DraftRequest::chain(length) };
        let mut draft = self.draft(context, &request, vocabulary, sampler)?;
        if shape.is_none() {
            draft.guesses.truncate(length);
        }
        Some(draft)
    }

    /// Carries out the governor's plan.
    pub(super) fn follow(
        &mut self,
        governor: &Governor,
        plan: &Plan,
        context: &Context,
        vocabulary: usize,
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
        let draft = self.draft(context, &request, vocabulary, sampler)?;
        let mut guesses = draft.guesses;
        if plan.shape.is_none() {
            guesses.truncate(plan.length);
        }
        let drafting = Drafting {
            length: plan.length,
            reason: draft.shortened.unwrap_or(plan.reason),
            threshold: plan.cutoff.map(|cutoff| cutoff.survival.max(cutoff.to_go_on) as f32),
            staged: plan.staged && plan.shape.is_none(),
            ..Drafting::default()
        };
        Some(drafting.made_by(self.number, guesses))
    }
}
