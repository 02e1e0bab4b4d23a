//! How often drafted tokens are accepted, by how far ahead they are, by how many were guessed before them
//! in the same place, and by how sure the drafter was. Learns from judged tokens only: what was discarded
//! says nothing.

use serde::{Deserialize, Serialize};

use crate::speculation::{MAX_DRAFT_LENGTH, MAX_TREE_WIDTH};

/// A share that is estimated from cases, of which later ones count more (a decayed Beta estimate).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f32; 2]", into = "[f32; 2]")]
struct Share {
    yes: f64,
    all: f64,
}

impl From<[f32; 2]> for Share {
    fn from([yes, all]: [f32; 2]) -> Self {
        Self { yes: f64::from(yes), all: f64::from(all) }
    }
}

impl From<Share> for [f32; 2] {
    fn from(Share { yes, all }: Share) -> Self {
        [yes as f32, all as f32]
    }
}

impl Share {
    /// `keep` is what a case counts after the next.
    fn learn(&mut self, yes: bool, keep: f64) {
        self.yes = self.yes * keep + f64::from(u8::from(yes));
        self.all = self.all * keep + 1.0;
    }

    /// Lets all cases so far count as at most so many.
    fn fade(&mut self, most: f64) {
        let scale = (most / self.all.max(most)).min(1.0);
        (self.yes, self.all) = (self.yes * scale, self.all * scale);
    }

    /// Whether it can have come of cases.
    fn is_sound(&self) -> bool {
        self.all.is_finite() && (0.0..=self.all).contains(&self.yes)
    }

    /// With `expected` counting as much as `strength` cases.
    fn mean(&self, expected: f64, strength: f64) -> f64 {
        (self.yes + expected * strength) / (self.all + strength)
    }
}

/// The chance of acceptance by depth, and by rank among siblings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Acceptance {
    depths: [Share; MAX_DRAFT_LENGTH],
    /// Where the first guess was not accepted: whether the second was, and so on.
    ranks: [Share; MAX_TREE_WIDTH],
}

/// What is expected of the first drafted token before anything is known.
const FIRST: f64 = 0.7;
/// What is expected of the next sibling after those before were rejected.
const SIBLING: f64 = 0.3;
/// What a case counts after the next of its kind: about the last fifty decide.
const KEEP: f64 = 0.98;
/// In a new text, those of the ones before count as at most so many.
const CARRIED: f64 = 12.0;
/// In another run of the program, what a confidence was worth before counts as at most so many cases.
const RECALLED: f64 = 40.0;

impl Acceptance {
    /// Whether it can have come of judged tokens.
    pub(super) fn is_sound(&self) -> bool {
        self.depths.iter().chain(&self.ranks).all(Share::is_sound)
    }

    /// Another text begins, which may be easier or harder.
    pub fn begin_text(&mut self) {
        self.depths.iter_mut().for_each(|share| share.fade(CARRIED));
    }

    /// A token at `depth` (0 is the first) was judged; all before it had been accepted.
    pub fn learn(&mut self, depth: usize, accepted: bool) {
        if let Some(share) = self.depths.get_mut(depth) {
            share.learn(accepted, KEEP);
        }
    }

    /// A further sibling, number `rank` from 1 on, was judged; all before it had been rejected.
    pub fn learn_rank(&mut self, rank: usize, accepted: bool) {
        if let Some(share) = self.ranks.get_mut(rank) {
            share.learn(accepted, KEEP);
        }
    }

    /// a_1 to a_16: the chance that a token is accepted when all before it are. A depth that was seldom
    /// judged is expected to be like the one before.
    pub fn by_depth(&self) -> [f64; MAX_DRAFT_LENGTH] {
        let (mut expected, mut strength) = (FIRST, 2.0);
        self.depths.map(|share| {
            expected = share.mean(expected, strength);
            strength = 4.0;
            expected
        })
    }

    /// The chances of each rank, [`Self::by_rank`], for the first `depths` depths.
    pub fn by_depth_and_rank(&self, depths: usize) -> Vec<[f64; MAX_TREE_WIDTH]> {
        self.by_depth()[..depths].iter().map(|&first| self.by_rank(first)).collect()
    }

    /// The chance that the sibling of each rank is the accepted one, where the first is with chance `first`.
    pub fn by_rank(&self, first: f64) -> [f64; MAX_TREE_WIDTH] {
        let mut left = 1.0;
        let mut chances = [0.0; MAX_TREE_WIDTH];
        for (rank, chance) in chances.iter_mut().enumerate() {
            let share = if rank == 0 { first } else { self.ranks[rank].mean(SIBLING, 6.0) };
            *chance = left * share;
            left -= *chance;
        }
        chances
    }
}

const BINS: usize = 10;

/// Depths that are told apart; what is deeper counts as the last.
const DEPTHS: usize = 4;

/// What a drafter's confidence is worth: the share of accepted tokens among those it was about as sure of,
/// as far ahead.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    bins: [[Share; BINS]; DEPTHS],
}

impl Calibration {
    /// Whether it can have come of judged tokens.
    pub(super) fn is_sound(&self) -> bool {
        self.bins.iter().flatten().all(Share::is_sound)
    }

    /// Lets what was learned count for less than what comes.
    pub(super) fn fade(&mut self) {
        self.bins.iter_mut().flatten().for_each(|share| share.fade(RECALLED));
    }

    /// A token at `depth` (0 is the first) was judged; all before it had been accepted.
    pub fn learn(&mut self, depth: usize, confidence: f32, accepted: bool) {
        self.bins[depth.min(DEPTHS - 1)][bin(confidence)].learn(accepted, 0.99);
    }

    /// The chance that a guess of this confidence is accepted when all before it are. As long as little is
    /// known, what it is worth one token nearer, and at first the confidence itself.
    pub fn chance(&self, depth: usize, confidence: f32) -> f64 {
        let expected = f64::from(confidence).clamp(0.0, 1.0);
        let depths = &self.bins[..=depth.min(DEPTHS - 1)];
        depths.iter().fold(expected, |expected, bins| bins[bin(confidence)].mean(expected, 4.0))
    }
}

fn bin(confidence: f32) -> usize {
    ((confidence * BINS as f32) as usize).min(BINS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_cases_outweigh_what_was_expected() {
        let mut acceptance = Acceptance::default();
        for case in 0..300 {
            acceptance.learn(0, case % 4 == 0);
        }
        let found = acceptance.by_depth();
        assert!((found[0] - 0.25).abs() < 0.05, "{found:?}");
        assert!((found[5] - found[0]).abs() < 1e-9, "a depth nobody judged is like the one before");
    }

    #[test]
    fn a_new_text_is_judged_by_its_own_within_few_cases() {
        let mut acceptance = Acceptance::default();
        (0..1000).for_each(|_| acceptance.learn(0, true));
        acceptance.begin_text();
        assert!(acceptance.by_depth()[0] > 0.9, "what was is the best guess");
        (0..8).for_each(|_| acceptance.learn(0, false));
        assert!(acceptance.by_depth()[0] < 0.65);
    }

    #[test]
    fn a_change_is_noticed_within_a_hundred_cases() {
        let mut acceptance = Acceptance::default();
        (0..1000).for_each(|_| acceptance.learn(0, true));
        (0..100).for_each(|_| acceptance.learn(0, false));
        assert!(acceptance.by_depth()[0] < 0.3);
    }

    #[test]
    fn ranks_share_what_the_first_leaves() {
        let mut acceptance = Acceptance::default();
        (0..500).for_each(|case| acceptance.learn_rank(1, case % 2 == 0));
        let chances = acceptance.by_rank(0.6);
        assert!((chances[1] - 0.2).abs() < 0.02, "{chances:?}");
        assert!(chances.iter().sum::<f64>() <= 1.0);
    }

    #[test]
    fn confidence_is_worth_what_was_accepted() {
        let mut calibration = Calibration::default();
        assert!((calibration.chance(0, 0.95) - 0.95).abs() < 1e-6);
        (0..200).for_each(|case| calibration.learn(0, 0.95, case % 2 == 0));
        assert!((calibration.chance(0, 0.95) - 0.5).abs() < 0.05);
        assert!((calibration.chance(0, 0.45) - 0.45).abs() < 1e-6, "other bins know nothing of it");
        assert!((calibration.chance(7, 0.95) - 0.5).abs() < 0.05, "further ahead nothing else is known");
        (0..200).for_each(|_| calibration.learn(9, 0.95, false));
        assert!(calibration.chance(7, 0.95) < 0.1 && calibration.chance(1, 0.95) > 0.4);
    }
}
