//! Hidden states for drafters: which are tapped, and what the target runs again for a drafter that
//! missed some.

use std::time::Instant;

use super::Drafters;
use crate::context::Context;
use crate::draft::Seen;
use crate::draft::member::Member;
use crate::forward::Taps;
use crate::speculation::{Room, Speculation};

/// Tokens that the target may rerun together with the next pass, so that a drafter is not left with
/// a gap.
const LITTLE: usize = 16;

/// Tokens at the end of the context that the target must run again for the planned drafter, and
/// whether its draft is a trial.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unheard {
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
        let heard = readers.map(|member| context.len() - 1 - member.drafter.deaf(context));
        heard.filter(|heard| heard + LITTLE >= cached).min().map_or(cached, |heard| heard.min(cached))
    }

    /// Passes tokens that the target ran to all drafters.
    pub(crate) fn observe(&mut self, seen: &Seen<'_>) {
        self.members.iter_mut().for_each(|member| member.observe(seen, &self.taps));
    }

    /// Passes tokens that the target reran since `start` to the drafter that was missing them.
    pub(crate) fn observe_again(&mut self, unheard: &Unheard, seen: &Seen<'_>, start: Instant) {
        self.members[unheard.drafter].observe(seen, &self.taps);
        let Some(governor) = &mut self.governor else { return };
        let ms = start.elapsed().as_secs_f64() * 1e3;
        governor.learn_reading(unheard.drafter, seen.tokens.len(), ms);
        if unheard.is_trial {
            governor.charge_trial(unheard.drafter, ms);
        }
    }

    /// Fails a drafter that still lacks hidden states after everything was rerun.
    pub(crate) fn expect_heard(&mut self, unheard: &Unheard, context: &Context) {
        let member = &mut self.members[unheard.drafter];
        if !member.has_heard(context) {
            member.fail(&"it did not take in what the target ran for it");
        }
    }

    /// Missing hidden states of the planned drafter.
    pub(crate) fn unheard(
        &self,
        context: &Context,
        speculation: &Speculation,
        room: Room,
    ) -> Option<Unheard> {
        let deaf = |member: &Member| member.drafts_in(speculation) && !member.has_heard(context);
        if !self.members.iter().any(deaf) {
            return None;
        }
        let plan = self.wanted(context, speculation, room)?;
        let tokens = self.members[plan.drafter].drafter.deaf(context);
        (tokens > 0).then(|| Unheard { drafter: plan.drafter, tokens, is_trial: plan.is_trial() })
    }
}
