//! What a finished round teaches the governor: what passes and drafts cost, and how often guesses are right.

use super::Governor;
use crate::accept::{Guess, depths, is_chain};
use crate::speculation::LONGEST_DRAFT;
use crate::trace::{DrafterKind, Outcome, Round, TokenId};

/// Tokens that a draft reads in its first pass at next to no cost: the one that was added last time, and one that
/// was drafted and not fed.
const ALONG: usize = 2;

/// Reading that so many tokens take can be told from a draft's own time.
const MUCH_READING: usize = 24;

impl Governor {
    /// Takes in a finished round. `guesses` are what was drafted, and `behind` the tokens that the draft model
    /// had to read for it.
    pub fn learn(&mut self, round: &Round, guesses: &[Guess], behind: usize) {
        let times = &round.times;
        let (drafted, tokens) = (guesses.len(), round.emitted().count());
        if self.plain.learn(drafted) {
            self.verify.learn(drafted + 1, f64::from(times.verify_ms));
        }
        self.judge.learn(drafted + 1, f64::from(times.sample_ms + times.rest_ms));
        let by_model = guesses.iter().filter(|guess| guess.drafter == DrafterKind::Model).count();
        // What the model drafted would have come plain without it: where others had more to offer, they drafted.
        let mut rounds = tokens as f64;
        if by_model > 0 {
            self.learn_draft_cost(&guesses[..by_model], f64::from(times.draft_ms), round.staged, behind);
            self.probes.drafted(self.length > 0);
        } else {
            self.probes.waited(tokens, f64::from(times.verify_ms));
            rounds = self.time(drafted, 0.0) / self.time(0, 0.0);
        }
        self.texts[self.kind.index()].alone.learn(tokens, rounds);
        self.written += tokens;
        self.learn_acceptance(round, guesses);
    }

    /// The draft model read `tokens` of the context in `ms`. That is seldom seen and takes so long that little
    /// disturbs it, so each time counts for as much as all before.
    pub fn learn_reading(&mut self, tokens: usize, ms: f64) {
        if tokens >= MUCH_READING && ms > 0.0 {
            self.reading = (self.reading * ms / tokens as f64).sqrt();
        }
    }

    /// Milliseconds in which the draft model reads what it is `behind`, beyond what it always does.
    pub(super) fn reading_ms(&self, behind: usize) -> f64 {
        behind.saturating_sub(ALONG) as f64 * self.reading
    }

    /// `guesses` are the model's.
    fn learn_draft_cost(&mut self, guesses: &[Guess], ms: f64, staged: bool, behind: usize) {
        if behind >= MUCH_READING {
            let drafting = self.draft[usize::from(staged)].get(guesses.len());
            self.learn_reading(behind, ms - drafting);
            return;
        }
        let ms = ms - self.reading_ms(behind);
        if is_chain(guesses) {
            self.draft[usize::from(staged)].learn(guesses.len(), ms);
            return;
        }
        let inner = |index: usize| guesses.iter().any(|guess| guess.parent == Some(index));
        let mut widths = [0; LONGEST_DRAFT];
        for (index, depth) in depths(guesses).into_iter().enumerate() {
            widths[depth.min(LONGEST_DRAFT - 1)] += usize::from(inner(index));
        }
        let levels = widths.iter().filter(|&&rows| rows > 0);
        let expected: f64 = levels.map(|&rows| self.level_ms(rows, staged)).sum();
        let first = self.draft[usize::from(staged)].get(1);
        if expected > 0.0 && ms > first {
            self.level.learn((ms - first) / expected);
        }
    }

    fn learn_acceptance(&mut self, round: &Round, guesses: &[Guess]) {
        let depths = depths(guesses);
        let records = &mut self.texts[self.kind.index()].records;
        for (index, guess) in guesses.iter().enumerate() {
            if round.drafted[index].outcome == Outcome::Discarded {
                continue;
            }
            let accepted = round.drafted[index].outcome == Outcome::Accepted;
            // Who goes on where another ended begins anew.
            let first = guesses.iter().position(|other| other.drafter == guess.drafter).unwrap_or(index);
            let depth = depths[index] - depths[first];
            let record = &mut records[guess.drafter as usize];
            if guess.drafter == DrafterKind::Model || first > 0 {
                // What guesses alone is scored on every text that comes.
                record.calibration.learn(depth, guess.confidence, accepted);
            }
            let rank = guesses[..index].iter().filter(|other| other.parent == guess.parent).count();
            if rank == 0 {
                record.acceptance.learn(depth, accepted);
                continue;
            }
            // A certain sibling is judged at the same time as the others: it had its chance only if those
            // before it were rejected.
            let before = (0..index).filter(|&other| guesses[other].parent == guess.parent);
            if before.into_iter().all(|other| round.drafted[other].outcome == Outcome::Rejected) {
                record.acceptance.learn_rank(rank, accepted);
            }
        }
    }

    /// What a drafter guessed, whether it was verified or not, against the text that came.
    pub fn score(&mut self, guesses: &[Guess], emitted: &[TokenId]) {
        for (depth, (guess, &token)) in guesses.iter().zip(emitted).enumerate() {
            let right = guess.token == token;
            let record = &mut self.texts[self.kind.index()].records[guess.drafter as usize];
            record.calibration.learn(depth, guess.confidence, right);
            if !right {
                break;
            }
        }
    }
}
