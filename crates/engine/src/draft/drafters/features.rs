//! Hidden states for drafters: which are tapped, and what the target runs again for a drafter that
//! missed some.

use std::time::Instant;

use foretoken_forward::Taps;

use super::Drafters;
use crate::context::Context;
use crate::draft::drafting::RoundInput;
use crate::draft::member::Member;
use crate::draft::{Drafter, Observation};
use crate::speculation::Speculation;

/// Tokens that the target may rerun together with the next pass, so that a drafter is not left with
/// a gap.
const MAX_RERUN: usize = 16;

/// Tokens at the end of the context that the target must run again for the planned drafter, and
/// whether its draft is a trial.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FeatureGap {
    pub drafter: usize,
    pub tokens: usize,
    is_trial: bool,
}

impl Drafters {
    /// Hidden states tapped in the present reply: those of the first drafter that reads any. A
    /// drafter that reads others gets none.
    pub(crate) fn taps(&self) -> &Taps {
        &self.taps
    }

    /// Number of the `cached` first tokens of `context` that the target keeps. It is smaller where
    /// a drafter lacks only the last few hidden states, so that it can observe them.
    pub(crate) fn kept(&self, context: &Context, speculation: &Speculation, cached: usize) -> usize {
        let readers = self.members.iter().filter(|member| member.drafts_in(speculation));
        let observed = readers.map(|member| context.len() - 1 - member.drafter.missing_features(context));
        observed
            .filter(|observed| observed + MAX_RERUN >= cached)
            .min()
            .map_or(cached, |observed| observed.min(cached))
    }

    /// Passes tokens that the target ran to all drafters.
    pub(crate) fn observe(&mut self, observed: &Observation<'_>) {
        self.members.iter_mut().for_each(|member| member.observe(observed, &self.taps));
    }

    /// Passes tokens that the target reran since `start` to the drafter that was missing them.
    pub(crate) fn observe_again(&mut self, gap: &FeatureGap, observed: &Observation<'_>, start: Instant) {
        self.members[gap.drafter].observe(observed, &self.taps);
        let Some(governor) = &mut self.governor else { return };
        let ms = start.elapsed().as_secs_f64() * 1e3;
        governor.learn_prefill(gap.drafter, observed.tokens.len(), ms);
        if gap.is_trial {
            governor.charge_trial(gap.drafter, ms);
        }
    }

    /// Fails a drafter that still lacks hidden states after everything was rerun.
    pub(crate) fn require_features(&mut self, gap: &FeatureGap, context: &Context) {
        let member = &mut self.members[gap.drafter];
        if !member.has_features(context) {
            member.fail(&"it did not take in what the target ran for it");
        }
    }

    /// Missing hidden states of the planned drafter.
    pub(crate) fn feature_gap(&self, input: RoundInput<'_>) -> Option<FeatureGap> {
        let RoundInput { context, speculation, .. } = input;
        let incomplete = |member: &Member| member.drafts_in(speculation) && !member.has_features(context);
        if !self.members.iter().any(incomplete) {
            return None;
        }
        let plan = self.wanted(input)?;
        let tokens = self.members[plan.drafter].drafter.missing_features(context);
        (tokens > 0).then(|| FeatureGap { drafter: plan.drafter, tokens, is_trial: plan.is_trial() })
    }
}
