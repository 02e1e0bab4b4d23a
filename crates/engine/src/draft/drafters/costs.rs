//! What the target's passes and the drafters' drafts cost: measured before the first reply, and of one who reads what
//! the target ran once it has heard some.

use super::Drafters;
use crate::context::Context;
use crate::draft::Drafter;
use crate::draft::measure::{self, Sample};
use crate::draft::member::Member;
use crate::error::Result;
use crate::forward::Model;
use crate::governor::{Costs, DraftCosts, Governor};

/// Tokens after which a draft is measured, of a text that it was measured on reading.
const FEW: usize = 16;

/// What a token is taken to cost a drafter that has heard nothing yet of what it reads, in passes of the target.
/// It is measured once it has.
const ASSUMED: f64 = 0.25;

impl Drafters {
    /// Measures what the target's passes and drafts cost on `text`, where nothing is known. The target's
    /// cache stays what it is, the drafters' may be emptied.
    ///
    /// # Errors
    /// When the target fails. A drafter that does is not asked in this reply.
    pub(crate) fn measure(&mut self, target: &mut dyn Model, text: &Sample<'_>) -> Result<()> {
        let mut governor = self.measured(target, text)?;
        governor.begin_reply(self.kind);
        self.governor = Some(governor);
        Ok(())
    }

    /// The same, and where it is known by what was learned before, looks whether it is still so.
    ///
    /// # Errors
    /// As [`Self::measure`].
    pub(crate) fn check_costs(&mut self, target: &mut dyn Model, text: &Sample<'_>) -> Result<()> {
        let Some(mut governor) = self.governor.take() else { return self.measure(target, text) };
        if !governor.holds(&measure::glance(target, &text.text)?) {
            tracing::info!("passes no longer cost what they did and are measured again");
            governor.cost(self.measured(target, text)?);
        }
        self.governor = Some(governor);
        Ok(())
    }

    fn measured(&mut self, target: &mut dyn Model, text: &Sample<'_>) -> Result<Governor> {
        let verify = measure::verify(target, &text.text)?;
        let mut drafters = Vec::new();
        let mut readings = Vec::new();
        for member in &mut self.members {
            if member.is_free() {
                drafters.push((member.kind(), None));
                continue;
            }
            let measured = Self::measured_draft(target, member.drafter.as_mut(), text);
            let measured = measured.unwrap_or_else(|error| {
                member.fail(&error);
                None
            });
            member.is_measured = measured.is_some() || member.drafter.taps().is_none();
            readings.extend(measured.iter().filter_map(|&(ms, _)| Some((member.number(), ms?))));
            // One that cannot be measured is not taken for free.
            let share = if member.is_measured { 1.0 } else { ASSUMED };
            let token_ms = share * verify.get(1);
            let second = if member.drafter.cost().at_once().is_some() { token_ms } else { 2.0 * token_ms };
            let assumed =
                || DraftCosts { draft: Costs::measured(&[(1, token_ms), (2, second)]), pollution: 1.0 };
            drafters.push((member.kind(), Some(measured.map_or_else(assumed, |(_, costs)| costs))));
        }
        let mut governor = Governor::new(verify, drafters);
        Self::tell_who_drafts_at_once(&self.members, &mut governor);
        readings.into_iter().for_each(|(number, ms)| governor.learn_reading(number, text.text.len(), ms));
        Ok(governor)
    }

    /// Of those who draft several tokens at once the governor knows how many.
    pub(super) fn tell_who_drafts_at_once(members: &[Member], governor: &mut Governor) {
        for member in members {
            if let Some(longest) = member.drafter.cost().at_once() {
                governor.drafts_at_once(member.number(), longest);
            }
        }
    }

    /// What a drafter's drafts cost, and the milliseconds in which it reads `text`; the latter `None` for one that
    /// reads what the target ran, which drafts after nothing else.
    fn measured_draft(
        target: &mut dyn Model,
        drafter: &mut dyn Drafter,
        text: &Sample<'_>,
    ) -> Result<Option<(Option<f64>, DraftCosts)>> {
        let Sample { context, text } = text;
        if drafter.taps().is_none() {
            let reading = measure::reading(drafter, &text[..].into())?;
            let draft = measure::draft(drafter, &text[..FEW.min(text.len())].into(), target, text)?;
            return Ok(draft.map(|costs| (Some(reading), costs)));
        }
        if context.is_empty() || drafter.deaf(context) > 0 {
            return Ok(None);
        }
        Ok(measure::draft(drafter, context, target, text)?.map(|costs| (None, costs)))
    }

    /// Measures who had heard nothing when the others were measured, and has heard all of `context` since.
    pub(crate) fn measure_heard(&mut self, target: &mut dyn Model, context: &Context) {
        let Some(governor) = &mut self.governor else { return };
        for member in self.members.iter_mut().filter(|member| !member.is_measured && !member.failed) {
            if member.is_free() || !member.has_heard(context) {
                continue;
            }
            member.is_measured = true;
            match measure::draft(member.drafter.as_mut(), context, target, context) {
                Ok(Some(costs)) => governor.cost_of(member.number(), costs),
                Ok(None) => {}
                Err(error) => member.fail(&error),
            }
        }
    }
}
