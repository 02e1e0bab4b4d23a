//! Costs of the target's passes and of drafts, measured before the first reply. Drafters that read
//! hidden states are measured once they have some.

use foretoken_forward::{Model, Taps};
use foretoken_model::error::Result;

use super::Drafters;
use crate::context::Context;
use crate::draft::Drafter;
use crate::draft::measure::{self, Sample};
use crate::draft::member::Member;
use crate::governor::{Costs, DraftCosts, Governor};

/// Context length that drafts are measured after.
const SAMPLE_CONTEXT: usize = 16;

/// Assumed cost per token of a drafter that has no hidden states yet, in passes of the target.
/// Replaced by a measurement once it has some.
const ASSUMED_COST: f64 = 0.25;

impl Drafters {
    /// Measures the target's passes and all drafts on `text`. The target's cache is unchanged; the
    /// drafters' caches may be emptied.
    ///
    /// # Errors
    /// Errors of the target. A drafter that fails is not asked in this reply.
    pub(crate) fn measure(&mut self, target: &mut dyn Model, text: &Sample<'_>) -> Result<()> {
        let mut governor = self.measured(target, text)?;
        governor.begin_reply(self.kind);
        self.governor = Some(governor);
        Ok(())
    }

    /// Measures if nothing is known yet; otherwise spot-checks the restored costs.
    ///
    /// # Errors
    /// As [`Self::measure`].
    pub(crate) fn check_costs(&mut self, target: &mut dyn Model, text: &Sample<'_>) -> Result<()> {
        let Some(mut governor) = self.governor.take() else { return self.measure(target, text) };
        if !governor.matches_costs(&measure::glance(target, &text.text, &self.read_taps())?) {
            tracing::info!("passes no longer cost what they did and are measured again");
            governor.replace_costs(self.measured(target, text)?);
        }
        self.governor = Some(governor);
        Ok(())
    }

    fn measured(&mut self, target: &mut dyn Model, text: &Sample<'_>) -> Result<Governor> {
        let verify = measure::verify(target, &text.text, &self.read_taps())?;
        let mut drafters = Vec::new();
        let mut prefills = Vec::new();
        for member in &mut self.members {
            if member.is_free() {
                drafters.push((member.kind(), None));
                continue;
            }
            let measured = Self::measured_draft(target, &mut member.drafter, text);
            let measured = measured.unwrap_or_else(|error| {
                member.fail(&error);
                None
            });
            member.is_measured = measured.is_some() || member.drafter.taps().is_none();
            prefills.extend(measured.iter().filter_map(|&(ms, _)| Some((member.number(), ms?))));
            // A drafter that cannot be measured is not assumed to be free.
            let share = if member.is_measured { 1.0 } else { ASSUMED_COST };
            let token_ms = share * verify.get(1);
            let second = if member.drafter.cost().at_once().is_some() { token_ms } else { 2.0 * token_ms };
            let assumed =
                || DraftCosts { draft: Costs::measured(&[(1, token_ms), (2, second)]), eviction_cost: 1.0 };
            drafters.push((member.kind(), Some(measured.map_or_else(assumed, |(_, costs)| costs))));
        }
        let mut governor = Governor::new(verify, drafters);
        Self::set_block_lengths(&self.members, &mut governor);
        prefills.into_iter().for_each(|(number, ms)| governor.learn_prefill(number, text.text.len(), ms));
        Ok(governor)
    }

    /// Hidden states that a reply with all drafters taps.
    fn read_taps(&self) -> Taps {
        self.members.iter().find_map(|member| member.drafter.taps()).cloned().unwrap_or_default()
    }

    /// Sets the maximum block length of drafters that draft in one pass.
    pub(super) fn set_block_lengths(members: &[Member], governor: &mut Governor) {
        for member in members {
            if let Some(longest) = member.drafter.cost().at_once() {
                governor.set_block_length(member.number(), longest);
            }
        }
    }

    /// Costs of a drafter's drafts, and the milliseconds it takes to prefill `text`. The latter is
    /// `None` for a drafter that reads hidden states, which can draft only after the target's own
    /// text.
    fn measured_draft(
        target: &mut dyn Model,
        drafter: &mut dyn Drafter,
        text: &Sample<'_>,
    ) -> Result<Option<(Option<f64>, DraftCosts)>> {
        let Sample { context, text } = text;
        if drafter.taps().is_none() {
            let prefill_ms = measure::prefill(drafter, &text[..].into())?;
            let draft =
                measure::draft(drafter, &text[..SAMPLE_CONTEXT.min(text.len())].into(), target, text)?;
            return Ok(draft.map(|costs| (Some(prefill_ms), costs)));
        }
        if context.is_empty() || drafter.missing_features(context) > 0 {
            return Ok(None);
        }
        Ok(measure::draft(drafter, context, target, text)?.map(|costs| (None, costs)))
    }

    /// Measures drafters that lacked hidden states at the first measurement and have all of
    /// `context` now.
    pub(crate) fn measure_remaining(&mut self, target: &mut dyn Model, context: &Context) {
        let Some(governor) = &mut self.governor else { return };
        for member in self.members.iter_mut().filter(|member| !member.is_measured && !member.has_failed()) {
            if member.is_free() || !member.has_features(context) {
                continue;
            }
            member.is_measured = true;
            match measure::draft(&mut member.drafter, context, target, context) {
                Ok(Some(costs)) => governor.set_draft_costs(member.number(), costs),
                Ok(None) => {}
                Err(error) => member.fail(&error),
            }
        }
    }
}
