//! Explains a choice in the trace: the speed curve behind it, when it changed and now and then.

use super::costs::MAX_ROWS;
use super::plan::{Plan, Prospect};
use super::{Explained, Governor};
use crate::speculation::MAX_DRAFT_LENGTH;
use crate::trace::Decision;

/// Rounds after which an unchanged choice is explained again: its curve has moved.
pub(super) const DECISION_AGE: usize = 64;

impl Governor {
    /// Curve behind a plan, unless the trace has a recent one.
    pub fn explain(&self, plan: &Plan) -> Option<Decision> {
        if self.is_explained(plan) {
            return None;
        }
        let staged = plan.staged;
        let acceptance = self.stats(plan.drafter).acceptance.by_depth();
        let rates = self.prospects(plan.drafter, &acceptance, staged).map(Prospect::rate);
        let draft_ms = |length| self.drafters[plan.drafter].chain_ms(length, staged) as f32;
        Some(Decision {
            before: self.explained.map(|explained| explained.length as u32),
            chosen: plan.length as u32,
            drafting_ms: (1..=MAX_DRAFT_LENGTH).map(draft_ms).collect(),
            verify_ms: (1..=MAX_ROWS).map(|rows| self.verify.get(rows) as f32).collect(),
            acceptance: acceptance.iter().map(|&chance| chance as f32).collect(),
            tokens_per_second: rates.iter().map(|&rate| (rate * 1e3) as f32).collect(),
        })
    }

    /// Records that the trace has the explanation of `plan`.
    pub fn commit_explanation(&mut self, plan: &Plan) {
        let age =
            if self.is_explained(plan) { self.explained.map_or(0, |explained| explained.age + 1) } else { 0 };
        self.explained = Some(Explained { drafter: plan.drafter, length: plan.length, age });
    }

    fn is_explained(&self, plan: &Plan) -> bool {
        let choice = (plan.drafter, plan.length);
        self.explained.is_some_and(|explained| {
            (explained.drafter, explained.length) == choice && explained.age + 1 < DECISION_AGE
        })
    }
}
