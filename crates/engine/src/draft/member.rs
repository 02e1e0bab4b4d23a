//! One of several drafters: it is left out of the rest of a reply once it failed.

use foretoken_forward::Taps;
use foretoken_model::Error;

use super::caught::CaughtDrafter;
use super::drafting::{Drafting, RoundInput};
use super::{Draft, DraftRequest, Drafter, Observation};
use crate::context::{After, Context};
use crate::drafter_kind::DrafterKind;
use crate::governor::{Governor, Plan, Worth};
use crate::sampler::Sampler;
use crate::speculation::{DraftLength, DrafterChoice, MAX_TREE_WIDTH, Speculation, Tree};

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
        let draft = self.drafter.draft(context, request, sampler).and_then(|draft| {
            if draft.guesses.iter().any(|guess| guess.token as usize >= vocabulary) {
                return Ok(None);
            }
            let mut guesses =
                sampler.allowed(After { text: context, guesses: request.ahead }, draft.guesses)?;
            guesses.truncate(request.nodes);
            Ok(Some(Draft { guesses, ..draft }))
        });
        match draft {
            Ok(Some(draft)) => Some(draft),
            Ok(None) => {
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
    pub(super) fn guess(&mut self, input: RoundInput<'_>, sampler: &mut Sampler) -> Option<Draft> {
        let RoundInput { speculation, room, .. } = input;
        let length = room.fit(speculation.length);
        // With several drafters, trees are left to those that are planned.
        let is_alone = speculation.drafter != DrafterChoice::Combined;
        let request = match speculation.tree {
            Tree::Width(width @ 2..) if is_alone && self.drafter.grows_trees() => {
                DraftRequest::tree(length, width as usize, room.longest())
            }
            _ => DraftRequest::chain(length),
        };
        self.draft(input, &request, sampler)
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
        let request = self.request(governor, plan, input, sampler);
        let draft = self.draft(input, &request, sampler)?;
        let depths = draft.guesses.depths();
        let drafting = Drafting {
            // Where a draft ends by its worth, the planned length is only its limit.
            length: match request.worth {
                Some(_) => depths.into_iter().max().map_or(0, |depth| depth + 1),
                None => plan.length,
            },
            reason: draft.shortened.unwrap_or(plan.reason),
            threshold: (plan.least_survival > 0.0).then_some(plan.least_survival as f32),
            staged: plan.staged,
            row_price: request.worth.and_then(|worth| worth.prices.shown(draft.guesses.len())),
            survivals: governor.survivals(self.number, &draft.guesses, 1.0),
            steps: draft.steps,
            candidates: draft.candidates,
            ..Drafting::default()
        };
        Some(drafting.made_by(self.number, draft.guesses))
    }

    /// Request for what the governor planned.
    fn request<'a>(
        &self,
        governor: &'a Governor,
        plan: &'a Plan,
        RoundInput { speculation, room, .. }: RoundInput<'_>,
        sampler: &Sampler,
    ) -> DraftRequest<'a> {
        let chances = governor.chances(self.number);
        let worth = |prices| Worth { prices, chances, least_survival: plan.least_survival };
        let worth = plan.prices.as_ref().map(worth);
        // The length of a one-pass draft does not depend on how likely its first tokens are.
        let grows = worth.is_some()
            && speculation.length == DraftLength::Auto
            && self.drafter.cost().at_once().is_none();
        let length = if grows { room.longest() } else { plan.length };
        let width = match speculation.tree {
            _ if !self.drafter.grows_trees() || plan.staged => 1,
            Tree::Off => 1,
            Tree::Width(width) => width as usize,
            // Drawn chains are verified as a block, which accepts more than a tree of as many
            // guesses.
            Tree::Auto if worth.is_none() || sampler.draws() => 1,
            Tree::Auto => MAX_TREE_WIDTH,
        };
        let nodes = if width > 1 { room.longest() } else { length };
        DraftRequest { length, width, nodes, worth, staged: plan.staged, ahead: &[] }
    }
}
