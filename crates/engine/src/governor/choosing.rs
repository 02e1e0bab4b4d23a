//! Chooses a drafter's plan for the next round: whether it drafts, by the expected speed of chains,
//! and the prices by which the draft grows.

use super::costs::MAX_ROWS;
use super::plan::{Plan, Prospect};
use super::{Governor, HYSTERESIS, highest};
use crate::speculation::{DraftLength, MAX_DRAFT_LENGTH, Room, Speculation, Staged, Threshold};
use crate::trace::LengthReason;

/// Tokens within which a drafter's prefill must pay, in addition to those already written: a text
/// that is long already tends to continue.
const HORIZON: usize = 64;
/// Prefill tokens beyond what a few rounds of other drafters leave.
const FAR_BEHIND: usize = 32;

/// Largest cost of a new drafter's first trial, in plain rounds, for which no time was saved.
const NEW_TRIAL: f64 = 0.4;

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
            self.price(&mut plan, speculation);
        }
        plan
    }

    /// Records that a round was planned this way, whoever drafts it.
    pub fn commit(&mut self, plan: &Plan) {
        let account = &mut self.drafters[plan.drafter];
        account.plans += 1;
        account.length = plan.best;
        account.requested = plan.length;
        account.is_on_trial = plan.is_trial();
        if plan.is_trial() {
            account.probes.begin(plan.trial_ms.max(0.0));
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
        let longest = room.longest().min(self.drafters[drafter].longest());
        if longest == 0 {
            return Plan::chain(drafter, 0, LengthReason::NoRoom, prospects[0]);
        }
        let rates = prospects.map(Prospect::rate);
        let best = 1 + highest(&rates[1..=longest]);
        // A draft that ends by its worth brings more than the best chain of a fixed length.
        let drafted = self.stats(drafter).drafted.prospect(prospects[best], self.time(0));
        let plain = Plan::chain(drafter, 0, LengthReason::WouldNotPay, prospects[0]);
        let draft = Plan { best, ..Plan::chain(drafter, best, LengthReason::Governed, drafted) };
        // Drafting begins where it gains something for sure, and ends where it gains nothing.
        let least = if self.drafters[drafter].length > 0 { 1.0 } else { HYSTERESIS };
        let prefill_ms = self.prefill_ms(drafter, behind);
        let ms_a_token = 1.0 / drafted.rate() + prefill_ms / self.horizon(room);
        let pays = drafted.rate() >= rates[0] * least
            && ms_a_token < self.ms_without(behind)
            && self.round_value(drafted) >= self.round_value(plain.prospect);
        if pays && self.plain.due(drafted.rate() / rates[0]) {
            return Plan { best, reason: LengthReason::Probe, ..plain };
        }
        if pays {
            return draft;
        }
        if !self.may_pay(drafter, staged) {
            return Plan { reason: LengthReason::CannotPay, ..plain };
        }
        // A trial drafts, but verifies only what is worth its row.
        let loss = self.drafted_time(drafter, 0, self.drafters[drafter].chain_ms(1, staged)) - self.time(0);
        let trial_ms = loss + prefill_ms;
        let probes = &self.drafters[drafter].probes;
        if probes.due(trial_ms) || (probes.is_new() && trial_ms <= self.time(0) * NEW_TRIAL) {
            return Plan { trial_ms, best: 0, reason: LengthReason::Probe, ..draft };
        }
        plain
    }

    /// Returns false if drafts would gain nothing even with every token accepted. An interrupted
    /// first pass must not end all trials, so costs have to be settled for that.
    fn may_pay(&self, drafter: usize, staged: bool) -> bool {
        let settled = self.verify.is_settled(2) && self.drafters[drafter].has_settled(staged);
        let best_case = self.prospects(drafter, &[1.0; MAX_DRAFT_LENGTH], staged).map(Prospect::rate);
        !settled || best_case[1..].iter().any(|&rate| rate > best_case[0] * HYSTERESIS)
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

    /// Sets what ends a draft: prices, a least chance, or nothing but its fixed shape.
    fn price(&self, plan: &mut Plan, speculation: &Speculation) {
        let prices = self.prices(plan.drafter, plan.staged);
        match speculation.threshold {
            Threshold::Fixed(least) => {
                (plan.prices, plan.least_survival) = (Some(prices.free()), f64::from(least));
            }
            Threshold::Off if speculation.length != DraftLength::Auto => {}
            Threshold::Off | Threshold::Auto => plan.prices = Some(prices),
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
