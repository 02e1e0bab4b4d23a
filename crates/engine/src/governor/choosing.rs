//! Chooses a drafter's plan for the next round: its length, by expected speed, and where a chain
//! ends early. `growing` decides on trees.

use super::costs::MAX_ROWS;
use super::plan::{Cutoff, Plan, Prospect};
use super::probe::Probes;
use super::shape::Shape;
use super::{Governor, HYSTERESIS, highest};
use crate::speculation::{DraftLength, MAX_DRAFT_LENGTH, Room, Speculation, Staged, Threshold};
use crate::trace::LengthReason;

/// Tokens within which a drafter's prefill must pay, in addition to those already written: a text
/// that is long already tends to continue.
const HORIZON: usize = 64;
/// Prefill tokens beyond what a few rounds of other drafters leave.
const FAR_BEHIND: usize = 32;

/// One in this many drafts is made the other way, staged or not, to compare both.
const STAGED_TRIAL: usize = 24;

impl Governor {
    /// Plan of a drafter for the next round, if it has to prefill `behind` tokens first. Changes no
    /// state until the plan is [committed](Self::commit).
    pub fn plan(&self, drafter: usize, speculation: &Speculation, room: Room, behind: usize) -> Plan {
        let staged = self.staged(drafter, speculation.staged);
        let acceptance = self.stats(drafter).acceptance.by_depth();
        let prospects = self.prospects(drafter, &acceptance, staged);
        let mut plan = match speculation.length {
            DraftLength::Fixed(_) => self.fixed(drafter, speculation.length, room, &prospects),
            DraftLength::Auto => self.choose(drafter, room, behind, &prospects, staged),
            DraftLength::Off => Plan::chain(drafter, 0, LengthReason::Off, prospects[0]),
        };
        plan.staged = staged;
        if plan.length > 0 {
            self.spread(&mut plan, speculation, room);
            self.bound(&mut plan, speculation, room);
        }
        plan
    }

    /// Records that a round was planned this way, whoever drafts it.
    pub fn commit(&mut self, plan: &Plan) {
        let account = &mut self.drafters[plan.drafter];
        account.plans += 1;
        account.length = plan.best;
        account.requested = plan.shape.as_ref().map_or(plan.length, Shape::depth);
        account.is_on_trial = plan.is_trial();
        if plan.is_trial() {
            account.probes.begin(plan.trial_ms.max(0.0));
        }
        if let Some(tree) = &plan.tree {
            account.tree = tree.clone();
        }
    }

    /// Charges `ms` milliseconds of prefill to a drafter's trials.
    pub fn charge_trial(&mut self, drafter: usize, ms: f64) {
        self.drafters[drafter].probes.charge(ms);
    }

    fn fixed(&self, drafter: usize, length: DraftLength, room: Room, prospects: &[Prospect]) -> Plan {
        let reason = if room.cuts(length) { LengthReason::NoRoom } else { LengthReason::Fixed };
        let length = room.fit(length).min(self.drafters[drafter].longest());
        Plan::chain(drafter, length, reason, prospects[length])
    }

    fn choose(
        &self,
        drafter: usize,
        room: Room,
        behind: usize,
        prospects: &[Prospect; MAX_ROWS],
        staged: bool,
    ) -> Plan {
        let rates = prospects.map(Prospect::rate);
        let longest = room.longest().min(self.drafters[drafter].longest());
        let best = highest(&rates[..=longest]);
        let kept = self.drafters[drafter].length.min(longest);
        // Plain decoding wins immediately: its cost is known, and a draft's gain is not.
        let stays = best > 0 && rates[kept] >= rates[0] && rates[best] < rates[kept] * HYSTERESIS;
        let mut length = if stays { kept } else { best };
        let prefill_ms = self.prefill_ms(drafter, behind);
        let ms_a_token = 1.0 / rates[length] + prefill_ms / self.horizon(room);
        if ms_a_token >= self.ms_without(behind)
            || self.round_value(prospects[length]) < self.round_value(prospects[0])
        {
            length = 0;
        }
        let best = length;
        let plan =
            |length: usize, reason| Plan { best, ..Plan::chain(drafter, length, reason, prospects[length]) };
        if length > 0 && self.plain.due(rates[length] / rates[0]) {
            return plan(0, LengthReason::Probe);
        }
        if length > 0 {
            return plan(length, LengthReason::Governed);
        }
        let best_case = self.prospects(drafter, &[1.0; MAX_DRAFT_LENGTH], staged).map(Prospect::rate);
        if !best_case[1..].iter().any(|&rate| rate > best_case[0] * HYSTERESIS) {
            return plan(0, LengthReason::CannotPay);
        }
        let loss = self.chain_time(drafter, Probes::LENGTH, staged) - self.time(0);
        let trial = Probes::LENGTH.min(self.drafters[drafter].longest());
        if longest >= trial && self.drafters[drafter].probes.due(loss + prefill_ms) {
            return Plan { trial_ms: loss + prefill_ms, ..plan(trial, LengthReason::Probe) };
        }
        plan(0, LengthReason::WouldNotPay)
    }

    /// Tokens within which a prefill has to pay.
    fn horizon(&self, room: Room) -> f64 {
        (HORIZON + self.written).min(room.left()) as f64
    }

    /// Milliseconds per token without the drafter: of plain decoding, or of the other drafters if
    /// this one is far behind.
    fn ms_without(&self, behind: usize) -> f64 {
        let plain = self.time(0);
        let unpaid = self.texts[self.kind.index()].unpaid.tokens();
        if behind < FAR_BEHIND { plain } else { plain / unpaid.max(1.0) }
    }

    /// Ends a chain early where it becomes unlikely, and allows a longer one where it does not.
    fn bound(&self, plan: &mut Plan, speculation: &Speculation, room: Room) {
        if plan.shape.is_some() || plan.reason == LengthReason::Probe {
            return;
        }
        let cutoff = match speculation.threshold {
            Threshold::Off => return,
            Threshold::Fixed(least) => Cutoff { survival: f64::from(least), min_length: 0, to_go_on: 0.0 },
            // Verifying a token takes dT_v, in which `rate` gives as many other tokens; drafting it
            // takes T_s more. Drafted tokens are already paid for and only left out where verifying
            // them does not pay.
            Threshold::Auto => {
                let step = (self.verify.get(MAX_ROWS) - self.verify.get(2)) / (MAX_ROWS - 2) as f64;
                let (verify_ms, draft_ms) =
                    (step.max(0.0), self.drafters[plan.drafter].token_ms(plan.staged));
                let rate = plan.prospect.rate();
                let first = self.stats(plan.drafter).acceptance.by_depth()[0].max(0.1);
                let to_go_on = (rate * (draft_ms + verify_ms) / first).min(1.0);
                Cutoff { survival: (rate * verify_ms).min(1.0), min_length: 1, to_go_on }
            }
        };
        plan.cutoff = Some(cutoff);
        // The length of a one-pass draft does not depend on how likely its first tokens are.
        if speculation.length == DraftLength::Auto && self.drafters[plan.drafter].at_once.is_none() {
            plan.length = room.longest();
        }
    }

    fn staged(&self, drafter: usize, wanted: Staged) -> bool {
        let account = &self.drafters[drafter];
        match wanted {
            Staged::Off => false,
            Staged::On => true,
            Staged::Auto => {
                let faster = account.token_ms(true) < account.token_ms(false);
                faster != (account.plans + 1).is_multiple_of(STAGED_TRIAL)
            }
        }
    }
}
