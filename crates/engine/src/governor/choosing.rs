//! Choosing what a drafter shall do in the next round: how far ahead, from what lengths are expected to
//! bring, and where a chain ends before that. Whether it shall be a tree is for `growing.rs` to say.

use super::costs::MAX_ROWS;
use super::plan::{Cutoff, Plan, Prospect};
use super::probe::Probes;
use super::shape::Shape;
use super::{Governor, HYSTERESIS, highest};
use crate::speculation::{DraftLength, MAX_DRAFT_LENGTH, Room, Speculation, Staged, Threshold};
use crate::trace::LengthReason;

/// What a drafter has to read first must have paid after so many tokens, and as many as were written
/// already: a text that has gone on for long will go on.
const HORIZON: usize = 64;
/// So many tokens to read are more than what a few rounds of others' drafts leave behind.
const FAR_BEHIND: usize = 32;

/// A draft in this many is made the other way, staged or not, to see which is faster.
const STAGED_TRIAL: usize = 24;

impl Governor {
    /// What a drafter shall do in the next round, where it has to read `behind` tokens first. Asking changes
    /// nothing: what comes next only changes once a plan is [committed](Self::commit) to.
    pub fn plan(&self, drafter: usize, speculation: &Speculation, room: Room, behind: usize) -> Plan {
        let staged = self.staged(drafter, speculation.staged);
        let acceptance = self.record(drafter).acceptance.by_depth();
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

    /// A round was planned so, whether this drafter or others then drafted.
    pub fn commit(&mut self, plan: &Plan) {
        let account = &mut self.drafters[plan.drafter];
        account.plans += 1;
        account.length = plan.best;
        account.asked = plan.shape.as_ref().map_or(plan.length, Shape::depth);
        account.is_on_trial = plan.is_trial();
        if plan.is_trial() {
            account.probes.begin(plan.trial_ms.max(0.0));
        }
        if let Some(tree) = &plan.tree {
            account.tree = tree.clone();
        }
    }

    /// Reading for a trial of this drafter took `ms` milliseconds.
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
        // Not drafting wins at once: what it would cost to go on is known, what it might bring is not.
        let stays = best > 0 && rates[kept] >= rates[0] && rates[best] < rates[kept] * HYSTERESIS;
        let mut length = if stays { kept } else { best };
        let reading = self.reading_ms(drafter, behind);
        let ms_a_token = 1.0 / rates[length] + reading / self.horizon(room);
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
        if longest >= trial && self.drafters[drafter].probes.due(loss + reading) {
            return Plan { trial_ms: loss + reading, ..plan(trial, LengthReason::Probe) };
        }
        plan(0, LengthReason::WouldNotPay)
    }

    /// Tokens over which reading has to pay.
    fn horizon(&self, room: Room) -> f64 {
        (HORIZON + self.written).min(room.left()) as f64
    }

    /// Milliseconds a token without the drafter: plain, and where it is far behind, which others have seen
    /// to, as they do.
    fn ms_without(&self, behind: usize) -> f64 {
        let plain = self.time(0);
        let alone = self.texts[self.kind.index()].alone.tokens();
        if behind < FAR_BEHIND { plain } else { plain / alone.max(1.0) }
    }

    /// Lets a chain end where it gets unlikely, and be longer where it does not.
    fn bound(&self, plan: &mut Plan, speculation: &Speculation, room: Room) {
        if plan.shape.is_some() || plan.reason == LengthReason::Probe {
            return;
        }
        let cutoff = match speculation.threshold {
            Threshold::Off => return,
            Threshold::Fixed(least) => Cutoff { survival: f64::from(least), min_length: 0, to_go_on: 0.0 },
            // To verify a token takes dT_v, in which `rate` would bring as many others; to draft one first, T_s
            // more. What was drafted is there already, so it is only left out where verifying does not pay.
            Threshold::Auto => {
                let step = (self.verify.get(MAX_ROWS) - self.verify.get(2)) / (MAX_ROWS - 2) as f64;
                let (verify_ms, draft_ms) =
                    (step.max(0.0), self.drafters[plan.drafter].token_ms(plan.staged));
                let rate = plan.prospect.rate();
                let usual = self.record(plan.drafter).acceptance.by_depth()[0].max(0.1);
                let to_go_on = (rate * (draft_ms + verify_ms) / usual).min(1.0);
                Cutoff { survival: (rate * verify_ms).min(1.0), min_length: 1, to_go_on }
            }
        };
        plan.cutoff = Some(cutoff);
        // What is drafted at once does not get longer by its first tokens being likely.
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
