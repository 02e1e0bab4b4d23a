//! Picks one of several drafters' plans for a round: the one with the highest value, and now and
//! then another as a trial.

use super::Governor;
use super::plan::Plan;
use crate::trace::LengthReason;

impl Governor {
    /// Index of the plan to carry out; `plans` has one for each drafter whose drafts take time.
    /// `None` if there are no plans. A plan that is tried in place of a better one becomes a trial.
    pub fn pick(&self, plans: &mut [Plan]) -> Option<usize> {
        let worth = |plan: &Plan| self.round_value(plan.prospect);
        let drafts = |plan: &Plan| plan.length > 0 && !plan.is_trial();
        let most = |of: &dyn Fn(&Plan) -> bool| {
            let numbers = (0..plans.len()).filter(|&number| of(&plans[number]));
            numbers.max_by(|&a, &b| worth(&plans[a]).total_cmp(&worth(&plans[b])))
        };
        let Some(best) = most(&drafts) else {
            return most(&Plan::is_trial).or((!plans.is_empty()).then_some(0));
        };
        let others = (0..plans.len()).filter(|&number| number != best);
        let loss = |number: usize| plans[number].trial_ms.max(self.loss(&plans[best], &plans[number]));
        let due = |&number: &usize| {
            let plan = &plans[number];
            let auto = matches!(plan.reason, LengthReason::Governed | LengthReason::Probe);
            auto && plan.length > 0 && self.drafters[plan.drafter].probes.due(loss(number))
        };
        let tried = others.into_iter().find(due);
        let Some(number) = tried else { return Some(best) };
        let trial_ms = loss(number);
        plans[number] = Plan { trial_ms, reason: LengthReason::Probe, ..plans[number].clone() };
        Some(number)
    }

    /// Milliseconds lost by a round of `plan` in place of `best`.
    fn loss(&self, best: &Plan, plan: &Plan) -> f64 {
        (self.round_value(best.prospect) - self.round_value(plan.prospect)) / self.plain_rate()
    }
}
