//! Updates of costs and acceptance after a round.

use foretoken_model::token::TokenId;

use super::Governor;
use super::plan::{DraftWork, Part};
use super::probe::PassCost;
use crate::accept::{Guess, Guesses};
use crate::trace::{Outcome, Round};

/// Context tokens that a draft reads in its first pass at nearly no cost: the last added one, and
/// one that was drafted and not fed.
const ALONG: usize = 2;

/// Least prefill tokens whose time can be separated from drafting.
const MIN_PREFILL: usize = 24;

impl Governor {
    /// Updates all statistics from a finished round with the draft `guesses`.
    pub fn learn(&mut self, round: &Round, guesses: &Guesses, work: &DraftWork<'_>) {
        let &DraftWork { parts, behind, .. } = work;
        let times = &round.times;
        let (drafted, tokens) = (guesses.len(), round.emitted().count());
        let paid = parts.first().filter(|part| !self.drafters[part.drafter].is_free);
        self.learn_pass(drafted + 1, f64::from(times.verify_ms), paid.map(|part| part.drafter));
        self.judge.learn(drafted + 1, f64::from(times.sample_ms + times.rest_ms));
        // Without a paid drafter, its tokens would have been written by plain decoding: if a free
        // drafter had had more to offer, it would have drafted.
        let mut rounds = tokens as f64;
        if let Some(part) = paid {
            self.learn_draft_cost(part, work, round);
            let account = &mut self.drafters[part.drafter];
            account.probes.drafted(!account.is_on_trial);
        } else {
            rounds = self.time(drafted) / self.time(0);
        }
        let prefill_ms = paid.map_or(0.0, |part| self.prefill_ms(part.drafter, behind));
        let drafting = paid.map(|part| part.drafter);
        let waiting = self.drafters.iter_mut().enumerate().filter(|(number, _)| Some(*number) != drafting);
        for (number, account) in waiting {
            account.probes.waited(tokens, f64::from(times.verify_ms));
            self.texts[self.kind.index()].records[number].drafted.wait();
        }
        self.texts[self.kind.index()].unpaid.learn(tokens, rounds);
        self.written += tokens;
        let ms = f64::from(times.draft_ms + times.verify_ms + times.sample_ms + times.rest_ms);
        self.recent.learn(tokens, (ms - prefill_ms).max(0.0));
        self.learn_acceptance(round, guesses, work);
        if let (Some(part), Some(expected), Some(_)) = (paid, round.expected, round.row_price) {
            let time = (ms - prefill_ms).max(0.0) / self.time(0);
            let record = &mut self.texts[self.kind.index()].records[part.drafter];
            record.drafted.learn(f64::from(expected), time);
        }
    }

    /// Updates the cost of a pass over `rows` rows that took `ms` milliseconds after a draft of
    /// `drafter`. Right after a plain run the difference is the draft's effect, and later the
    /// computer's. For a number of rows that was never measured it is the cost itself.
    fn learn_pass(&mut self, rows: usize, ms: f64, drafter: Option<usize>) {
        let measured = self.plain.learn(drafter.is_some());
        if drafter.is_some() && !self.verify.is_measured(rows) {
            self.verify.learn(rows, ms);
            return;
        }
        let eviction_cost = drafter.map(|drafter| &mut self.drafters[drafter].eviction_cost);
        match (measured, eviction_cost) {
            (PassCost::Plain, _) => self.verify.learn(rows, ms),
            (PassCost::Eviction, Some(eviction_cost)) => eviction_cost.learn(ms / self.verify.get(rows)),
            (PassCost::Both, Some(eviction_cost)) => self.verify.learn(rows, ms / eviction_cost.get()),
            _ => {}
        }
    }

    /// Updates the prefill cost of a drafter that read `tokens` of the context in `ms`
    /// milliseconds.
    pub fn learn_prefill(&mut self, drafter: usize, tokens: usize, ms: f64) {
        if tokens >= MIN_PREFILL && ms > 0.0 {
            self.drafters[drafter].learn_prefill(ms / tokens as f64);
        }
    }

    /// Milliseconds to prefill `behind` tokens, without those that every draft reads.
    pub(super) fn prefill_ms(&self, drafter: usize, behind: usize) -> f64 {
        behind.saturating_sub(ALONG) as f64 * self.drafters[drafter].token_prefill_ms
    }

    /// Updates the cost of a draft that `part`, its first part, paid for.
    fn learn_draft_cost(&mut self, part: &Part, work: &DraftWork<'_>, round: &Round) {
        let &DraftWork { behind, steps, .. } = work;
        let (drafter, ms, staged) = (part.drafter, f64::from(round.times.draft_ms), round.staged);
        let account = &self.drafters[drafter];
        // A one-pass draft took the time of the requested length, and a staged step brings several
        // tokens.
        let length = match account.at_once {
            Some(_) => account.requested,
            None if staged || steps.is_empty() => part.guesses,
            None => steps.len(),
        };
        if behind >= MIN_PREFILL {
            let drafting = account.chain_ms(length, staged);
            self.learn_prefill(drafter, behind, ms - drafting);
            return;
        }
        let ms = ms - self.prefill_ms(drafter, behind);
        let is_narrow = account.at_once.is_some() || steps.iter().all(|&rows| rows == 1);
        // The first draft of all measures a chain as long.
        if is_narrow || account.draft[usize::from(staged)].measured_bits() == 0 {
            self.drafters[drafter].learn_chain(length, staged, ms);
            return;
        }
        let wide: f64 = steps[1..].iter().map(|&rows| self.step_ms(drafter, rows, staged)).sum();
        let account = &mut self.drafters[drafter];
        let first = account.chain_ms(1, staged);
        if wide > 0.0 && ms > first {
            account.level.learn(account.level.get() * (ms - first) / wide);
        }
    }

    fn learn_acceptance(&mut self, round: &Round, guesses: &Guesses, work: &DraftWork<'_>) {
        let mut first = 0;
        for (number, part) in work.parts.iter().enumerate() {
            if number == 0 && !work.candidates.is_empty() {
                self.learn_candidates(part.drafter, work.candidates, round);
            } else {
                self.learn_part(round, guesses, *part, first);
            }
            first += part.guesses;
        }
    }

    /// Updates a drafter with its certain candidates whose parents became part of the text,
    /// verified or not: judged by those alone that were verified, chances would be too high.
    fn learn_candidates(&mut self, drafter: usize, candidates: &[Guess], round: &Round) {
        let record = &mut self.texts[self.kind.index()].records[drafter];
        let mut parent = None;
        for (depth, (token, _)) in round.emitted().enumerate() {
            let children = candidates.iter().enumerate().filter(|(_, guess)| guess.parent == parent);
            let mut next = None;
            for (rank, (index, guess)) in children.enumerate() {
                let accepted = guess.token == token;
                record.calibration.learn(depth, rank, guess.confidence, accepted);
                if rank == 0 {
                    record.acceptance.learn(depth, accepted);
                }
                next = next.or(accepted.then_some(index));
            }
            if next.is_none() {
                return;
            }
            parent = next;
        }
    }

    /// Updates a part that begins with guess number `first`. A drafter that continues another's
    /// draft starts at depth 0.
    fn learn_part(&mut self, round: &Round, guesses: &Guesses, part: Part, first: usize) {
        let depths = guesses.depths();
        let record = &mut self.texts[self.kind.index()].records[part.drafter];
        // A free drafter that drafts first is scored on every text instead.
        let calibrates = !self.drafters[part.drafter].is_free || first > 0;
        for (index, guess) in guesses.iter().enumerate().skip(first).take(part.guesses) {
            if round.drafted[index].outcome == Outcome::Discarded {
                continue;
            }
            let accepted = round.drafted[index].outcome == Outcome::Accepted;
            let depth = depths[index] - depths[first];
            let before: Vec<usize> =
                (0..index).filter(|&other| guesses[other].parent == guess.parent).collect();
            // A later drawn sibling had a chance only if those before it were rejected.
            if !before.iter().all(|&other| round.drafted[other].outcome == Outcome::Rejected) {
                continue;
            }
            if calibrates {
                record.calibration.learn(depth, before.len(), guess.confidence, accepted);
            }
            if before.is_empty() {
                record.acceptance.learn(depth, accepted);
            }
        }
    }

    /// Updates a free drafter's calibration with the text that was written, verified or not.
    pub fn score(&mut self, drafter: usize, guesses: &[Guess], emitted: &[TokenId]) {
        let record = &mut self.texts[self.kind.index()].records[drafter];
        for (depth, (guess, &token)) in guesses.iter().zip(emitted).enumerate() {
            let right = guess.token == token;
            record.calibration.learn(depth, 0, guess.confidence, right);
            if !right {
                break;
            }
        }
    }
}
