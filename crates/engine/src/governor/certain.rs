//! Guesses that cost nothing to make and are certain, as repetition gives them: how many of them to verify.

use super::plan::Prospect;
use super::{Governor, HYSTERESIS};
use crate::accept::Guess;

impl Governor {
    /// How many of a drafter's chain of certain guesses to verify, and what to expect of it. With `whole` all of
    /// them.
    pub fn verifiable(&self, drafter: usize, guesses: &[Guess], whole: bool) -> (usize, Prospect) {
        let plain = Prospect { tokens: 1.0, ms: self.time(0) };
        let mut best = (0, plain);
        let mut least = HYSTERESIS;
        for (length, tokens) in (1..).zip(self.tokens(drafter, guesses, 1.0)) {
            let prospect = Prospect { tokens: 1.0 + tokens, ms: self.time(length) };
            let worth = self.round_value(prospect);
            if worth > least || whole {
                (best, least) = ((length, prospect), worth);
            }
        }
        best
    }

    /// How many of a drafter's chain of certain guesses to verify beside the chain that they follow, given with
    /// its own drafter's number, and how many tokens more to expect of the time that takes than of other rounds.
    pub fn further(
        &self,
        (author, drafted): (usize, &[Guess]),
        drafter: usize,
        guesses: &[Guess],
    ) -> (usize, f64) {
        let chances = drafted.iter().enumerate();
        let chances = chances.map(|(depth, guess)| self.chance(author, depth, guess));
        let survival = chances.product();
        let before = 1.0 + self.tokens(author, drafted, 1.0).last().unwrap_or(0.0);
        let rate = before / self.chain_time(author, drafted.len(), false);
        let mut best = (0, 0.0);
        for (length, tokens) in (1..).zip(self.tokens(drafter, guesses, survival)) {
            let rows = drafted.len() + length;
            let gain = tokens - rate * (self.time(rows) - self.time(drafted.len()));
            if gain > best.1 {
                best = (length, gain);
            }
        }
        best
    }

    /// The accepted tokens to expect of the first, the first two and so on of a chain of certain guesses, where
    /// what they follow comes with the chance `survival`.
    fn tokens(&self, drafter: usize, guesses: &[Guess], mut survival: f64) -> impl Iterator<Item = f64> {
        let mut tokens = 0.0;
        guesses.iter().enumerate().map(move |(depth, guess)| {
            survival *= self.chance(drafter, depth, guess);
            tokens += survival;
            tokens
        })
    }

    /// How many of a drafter's chain of certain guesses all have at least the chance `least` to be accepted.
    pub fn likely(&self, drafter: usize, guesses: &[Guess], least: f64) -> usize {
        let mut survival = 1.0;
        let likely = |&(depth, guess): &(usize, &Guess)| {
            survival *= self.chance(drafter, depth, guess);
            survival >= least
        };
        guesses.iter().enumerate().take_while(likely).count()
    }
}
