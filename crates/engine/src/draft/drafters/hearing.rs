//! What drafters hear of what the target ran, and what has to be run again for one that missed some of it.

use std::time::Instant;

use super::Drafters;
use crate::context::Context;
use crate::draft::Seen;
use crate::draft::member::Member;
use crate::forward::Taps;
use crate::speculation::{Room, Speculation};

/// Tokens that the target runs again with what follows them anyway, for one that would else join on to nothing.
const LITTLE: usize = 16;

/// The one that shall draft and cannot yet: how many tokens at the end of the context the target has to run again
/// for it, and whether it is tried.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unheard {
    pub drafter: usize,
    pub tokens: usize,
    is_trial: bool,
}

impl Drafters {
    /// The hidden states of the target that are read in the present reply: those of the first who reads any. Another
    /// who reads others gets none.
    pub(crate) fn taps(&self) -> &Taps {
        &self.taps
    }

    /// How many of the `cached` first tokens of `context` the target keeps, so that all who may draft can hear what
    /// follows them: fewer where one that heard nearly all of them has forgotten the last.
    pub(crate) fn kept(&self, context: &Context, speculation: &Speculation, cached: usize) -> usize {
        let readers = self.members.iter().filter(|member| member.drafts_in(speculation));
        let heard = readers.map(|member| context.len() - 1 - member.drafter.deaf(context));
        heard.filter(|heard| heard + LITTLE >= cached).min().map_or(cached, |heard| heard.min(cached))
    }

    /// What the target ran of the text, for all of them.
    pub(crate) fn observe(&mut self, seen: &Seen<'_>) {
        self.members.iter_mut().for_each(|member| member.observe(seen, &self.taps));
    }

    /// What the target ran again since `start`, for the one alone who had not heard it.
    pub(crate) fn observe_again(&mut self, unheard: &Unheard, seen: &Seen<'_>, start: Instant) {
        self.members[unheard.drafter].observe(seen, &self.taps);
        let Some(governor) = &mut self.governor else { return };
        let ms = start.elapsed().as_secs_f64() * 1e3;
        governor.learn_reading(unheard.drafter, seen.tokens.len(), ms);
        if unheard.is_trial {
            governor.charge_trial(unheard.drafter, ms);
        }
    }

    /// All was run again: one that still lacks something will never have it.
    pub(crate) fn expect_heard(&mut self, unheard: &Unheard, context: &Context) {
        let member = &mut self.members[unheard.drafter];
        if !member.has_heard(context) {
            member.fail(&"it did not take in what the target ran for it");
        }
    }

    /// What the one that shall draft has not heard of `context`.
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
