//! Costs of a new pair: assumed from plain passes of the first reply, and measured by its rounds.
//! No pass is run for a measurement.

use super::Drafters;
use crate::draft::Drafter;
use crate::draft::member::Member;
use crate::governor::{AssumedDraft, Governor, RowRatios};
use crate::speculation::{DraftLength, Speculation};

/// Plain rounds before the first draft of a new pair. The first pass follows the prompt and is not
/// counted.
const PLAIN_ROUNDS: usize = 3;

/// Least tokens of a prompt whose time says what a long one costs.
const LEAST_PROMPT: usize = 24;

/// Assumed cost of a drafter's step against a pass of its target, if their sizes are not known.
const ASSUMED_SHARE: f64 = 0.25;
/// Least and largest assumption: a step has fixed costs, and a larger one would never be tried.
const LEAST_SHARE: f64 = 0.02;
const LARGEST_SHARE: f64 = 0.5;

/// Assumptions about the costs of a pair that was never measured.
#[derive(Debug, Clone, Default)]
pub struct Assumptions {
    /// Cost of the target's passes by rows.
    pub ratios: RowRatios,
    /// Weights that a drafter's step reads over those of the target's pass; `None` if unknown or on
    /// another device.
    pub share: Option<f64>,
    /// Milliseconds of the plain passes of the present reply.
    plain_ms: Vec<f64>,
    /// Milliseconds in which the target read a token of the last long prompt.
    prompt_ms: Option<f64>,
}

impl Drafters {
    /// Replaces the assumptions about costs that were never measured.
    pub fn assume(&mut self, ratios: RowRatios, share: Option<f64>) {
        self.assumptions = Assumptions { ratios, share, ..Assumptions::default() };
    }

    /// Assumed cost of passes by rows.
    pub fn ratios(&self) -> &RowRatios {
        &self.assumptions.ratios
    }

    /// Starts a reply of drafters that were never measured. A fixed draft length needs no costs, so
    /// drafts begin at once, and its rounds measure them.
    pub(super) fn begin_costs(&mut self, speculation: &Speculation) {
        self.assumptions.plain_ms.clear();
        let drafts = || self.members.iter().any(|member| member.drafts_in(speculation));
        if self.governor.is_none() && speculation.length != DraftLength::Auto && drafts() {
            self.governor = Some(self.assumed(None));
        }
    }

    /// Returns true if plain passes have to be measured before anything is drafted in a reply with
    /// `speculation`.
    pub(crate) fn needs_plain_rounds(&self, speculation: &Speculation) -> bool {
        let is_measured = self.governor.as_ref().is_some_and(Governor::has_measured_plain);
        let governed = speculation.length == DraftLength::Auto;
        governed && !is_measured && self.members.iter().any(|member| member.drafts_in(speculation))
    }

    /// Measures the target's prefill of `tokens` tokens in `ms` milliseconds.
    pub(crate) fn learn_prompt(&mut self, tokens: usize, ms: f64) {
        if tokens >= LEAST_PROMPT {
            self.assumptions.prompt_ms = Some(ms / tokens as f64);
        }
    }

    /// Measures a plain pass of `ms` milliseconds. After [`PLAIN_ROUNDS`] of them all other costs
    /// are assumed.
    pub(crate) fn learn_plain_pass(&mut self, ms: f64) {
        if self.governor.is_some() {
            return;
        }
        self.assumptions.plain_ms.push(ms);
        if self.assumptions.plain_ms.len() >= PLAIN_ROUNDS {
            // Interrupted passes take longer and never shorter.
            let plain_ms = self.assumptions.plain_ms[1..].iter().copied().fold(f64::INFINITY, f64::min);
            let mut governor = self.assumed(Some(plain_ms));
            governor.begin_reply(self.kind);
            self.governor = Some(governor);
        }
    }

    fn assumed(&self, plain_ms: Option<f64>) -> Governor {
        let share = self.assumptions.share.unwrap_or(ASSUMED_SHARE).clamp(LEAST_SHARE, LARGEST_SHARE);
        let prompt_ms = self.assumptions.prompt_ms;
        let draft = |member: &Member| {
            let at_once = member.drafter.cost().at_once().is_some();
            (member.kind(), (!member.is_free()).then_some(AssumedDraft { share, at_once, prompt_ms }))
        };
        let drafters = self.members.iter().map(draft).collect();
        let mut governor = Governor::assumed(plain_ms, &self.assumptions.ratios, drafters);
        Self::set_block_lengths(&self.members, &mut governor);
        governor
    }

    /// Sets the maximum block length of drafters that draft in one pass.
    pub(super) fn set_block_lengths(members: &[Member], governor: &mut Governor) {
        for member in members {
            if let Some(longest) = member.drafter.cost().at_once() {
                governor.set_block_length(member.number(), longest);
            }
        }
    }
}
