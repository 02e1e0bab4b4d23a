//! Number of free and certain guesses, as repetition gives them, to verify.

use super::plan::Prospect;
use super::{Governor, HYSTERESIS};
use crate::accept::Guess;
use crate::drafter_kind::DrafterKind;

impl Governor {
    /// Number of a drafter's certain guesses to verify, and the expected result. With `whole`, all
    /// of them.
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

    /// Number of a drafter's certain guesses to verify after the chain `drafted` of `author`, and
    /// the expected gain in tokens over other rounds of the same time.
    pub fn further(
        &self,
        author: usize,
        drafted: &[Guess],
        drafter: usize,
        guesses: &[Guess],
    ) -> (usize, f64) {
        let reached: Vec<f64> = self.chain_survivals(author, drafted, 1.0).collect();
        let survival = reached.last().copied().unwrap_or(1.0);
        let before = 1.0 + reached.iter().sum::<f64>();
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

    /// Expected accepted tokens of the first guess, the first two, and so on. `survival` is the
    /// chance of the chain before.
    fn tokens(&self, drafter: usize, guesses: &[Guess], survival: f64) -> impl Iterator<Item = f64> {
        let mut tokens = 0.0;
        self.chain_survivals(drafter, guesses, survival).map(move |survival| {
            tokens += survival;
            tokens
        })
    }

    /// Chance of each guess of a chain that it and all before it are accepted, if `survival` is
    /// that of what they follow.
    fn chain_survivals(
        &self,
        drafter: usize,
        guesses: &[Guess],
        mut survival: f64,
    ) -> impl Iterator<Item = f64> {
        guesses.iter().enumerate().map(move |(depth, guess)| {
            survival *= self.chance(drafter, depth, guess);
            survival
        })
    }

    /// Chance of each of a drafter's guesses that it and all its ancestors are accepted, if
    /// `survival` is that of what they follow.
    pub fn survivals(&self, drafter: usize, guesses: &[Guess], survival: f64) -> Vec<f32> {
        let chances = self.chances(drafter);
        let mut survivals: Vec<f64> = Vec::with_capacity(guesses.len());
        let mut depths: Vec<usize> = Vec::with_capacity(guesses.len());
        for (index, guess) in guesses.iter().enumerate() {
            let siblings = (0..index).filter(|&other| guesses[other].parent == guess.parent);
            let siblings: Vec<usize> = siblings.collect();
            let (depth, before) =
                guess.parent.map_or((0, survival), |parent| (depths[parent] + 1, survivals[parent]));
            // A drawn guess has its chance only after its siblings were rejected.
            let taken: f64 = siblings.iter().map(|&sibling| survivals[sibling]).sum();
            let is_drawn = guess.drawn_from.is_some();
            let left = if is_drawn { (before - taken).max(0.0) } else { before };
            let chance = match guess.drafter {
                DrafterKind::Forced => 1.0,
                _ => chances.of(depth, siblings.len(), guess.confidence, is_drawn),
            };
            survivals.push(left * chance);
            depths.push(depth);
        }
        survivals.into_iter().map(|survival| survival as f32).collect()
    }

    /// Number of leading certain guesses that are all accepted with at least the chance `least`.
    pub fn likely(&self, drafter: usize, guesses: &[Guess], least: f64) -> usize {
        self.chain_survivals(drafter, guesses, 1.0).take_while(|&survival| survival >= least).count()
    }
}
