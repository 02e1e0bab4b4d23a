//! Updates of costs and acceptance after a round.

use foretoken_model::token::TokenId;

use super::Governor;
use super::plan::Part;
use super::probe::PassCost;
use crate::accept::{Guess, Guesses};
use crate::speculation::MAX_DRAFT_LENGTH;
use crate::trace::{Outcome, Round};

/// Context tokens that a draft reads in its first pass at nearly no cost: the last added one, and
/// one that was drafted and not fed.
const ALONG: usize = 2;

/// Least prefill tokens whose time can be separated from drafting.
const MIN_PREFILL: usize = 24;

impl Governor {
    /// Updates all statistics from a finished round. `guesses` is its draft, `parts` their
    /// drafters, and `behind` the tokens that the first of these had to prefill.
    pub fn learn(&mut self, round: &Round, guesses: &Guesses, parts: &[Part], behind: usize) {
        let times = &round.times;
        let (drafted, tokens) = (guesses.len(), round.emitted().count());
        let paid = parts.first().filter(|part| !self.drafters[part.drafter].is_free);
        self.learn_pass(drafted + 1, f64::from(times.verify_ms), paid.map(|part| part.drafter));
        self.judge.learn(drafted + 1, f64::from(times.sample_ms + times.rest_ms));
        // Without a paid drafter, its tokens would have been written by plain decoding: if a free
        // drafter had had more to offer, it would have drafted.
        let mut rounds = tokens as f64;
        if let Some(part) = paid {
            self.learn_draft_cost(part, guesses, round, behind);
            let account = &mut self.drafters[part.drafter];
            account.probes.drafted(!account.is_on_trial);
        } else {
            rounds = self.time(drafted) / self.time(0);
        }
        let prefill_ms = paid.map_or(0.0, |part| self.prefill_ms(part.drafter, behind));
        let drafting = paid.map(|part| part.drafter);
        let waiting = self.drafters.iter_mut().enumerate().filter(|(number, _)| Some(*number) != drafting);
        waiting.for_each(|(_, account)| account.probes.waited(tokens, f64::from(times.verify_ms)));
        self.texts[self.kind.index()].unpaid.learn(tokens, rounds);
        self.written += tokens;
        let ms = f64::from(times.draft_ms + times.verify_ms + times.sample_ms + times.rest_ms);
        self.recent.learn(tokens, (ms - prefill_ms).max(0.0));
        self.learn_acceptance(round, guesses, parts);
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

    /// `part` is the first of `guesses`.
    fn learn_draft_cost(&mut self, part: &Part, guesses: &Guesses, round: &Round, behind: usize) {
        let (drafter, ms, staged) = (part.drafter, f64::from(round.times.draft_ms), round.staged);
        let ms = if behind >= MIN_PREFILL {
            let drafting = self.drafters[drafter].chain_ms(part.guesses, staged);
            self.learn_prefill(drafter, behind, ms - drafting);
            return;
        } else {
            ms - self.prefill_ms(drafter, behind)
        };
        // A one-pass draft took the time of the requested length.
        let at_once = self.drafters[drafter].at_once.is_some();
        if guesses.is_chain() || at_once {
            let drafted = if at_once { self.drafters[drafter].requested } else { part.guesses };
            self.drafters[drafter].learn_chain(drafted, staged, ms);
            return;
        }
        // The first draft of all measures a chain as deep.
        if self.drafters[drafter].draft[usize::from(staged)].measured_bits() == 0 {
            let depth = guesses.depths().into_iter().max().map_or(1, |depth| depth + 1);
            self.drafters[drafter].learn_chain(depth, staged, ms);
            return;
        }
        let inner = |index: usize| guesses.iter().any(|guess| guess.parent == Some(index));
        let mut widths = [0; MAX_DRAFT_LENGTH];
        for (index, depth) in guesses.depths().into_iter().enumerate() {
            widths[depth.min(MAX_DRAFT_LENGTH - 1)] += usize::from(inner(index));
        }
        let levels = widths.iter().filter(|&&rows| rows > 0);
        let expected: f64 = levels.map(|&rows| self.level_ms(drafter, rows, staged)).sum();
        let account = &mut self.drafters[drafter];
        let first = account.chain_ms(1, staged);
        if expected > 0.0 && ms > first {
            account.level.learn((ms - first) / expected);
        }
    }

    fn learn_acceptance(&mut self, round: &Round, guesses: &Guesses, parts: &[Part]) {
        let mut first = 0;
        for part in parts {
            self.learn_part(round, guesses, *part, first);
            first += part.guesses;
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
            if calibrates {
                record.calibration.learn(depth, guess.confidence, accepted);
            }
            let rank = guesses[..index].iter().filter(|other| other.parent == guess.parent).count();
            if rank == 0 {
                record.acceptance.learn(depth, accepted);
                continue;
            }
            // Certain siblings are judged together; a later one had a chance only if those before
            // it were rejected.
            let before = (0..index).filter(|&other| guesses[other].parent == guess.parent);
            if before.into_iter().all(|other| round.drafted[other].outcome == Outcome::Rejected) {
                record.acceptance.learn_rank(rank, accepted);
            }
        }
    }

    /// Updates a free drafter's calibration with the text that was written, verified or not.
    pub fn score(&mut self, drafter: usize, guesses: &[Guess], emitted: &[TokenId]) {
        let record = &mut self.texts[self.kind.index()].records[drafter];
        for (depth, (guess, &token)) in guesses.iter().zip(emitted).enumerate() {
            let right = guess.token == token;
            record.calibration.learn(depth, guess.confidence, right);
            if !right {
                break;
            }
        }
    }
}
