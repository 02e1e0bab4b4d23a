//! Acceptance statistics of drafted tokens, by depth, by rank among siblings, and by the drafter's
//! confidence. Learns from judged tokens only: discarded ones carry no information.

use serde::{Deserialize, Serialize};

use crate::speculation::{MAX_DRAFT_LENGTH, MAX_TREE_WIDTH};

/// Decayed Beta estimate of a probability.
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
    /// Adds a case; earlier ones are weighted by `keep`.
    fn learn(&mut self, yes: bool, keep: f64) {
        self.yes = self.yes * keep + f64::from(u8::from(yes));
        self.all = self.all * keep + 1.0;
    }

    /// Limits the weight of all cases so far to `most`.
    fn fade(&mut self, most: f64) {
        let scale = (most / self.all.max(most)).min(1.0);
        (self.yes, self.all) = (self.yes * scale, self.all * scale);
    }

    /// Returns true if the counts are possible.
    fn is_sound(&self) -> bool {
        self.all.is_finite() && (0.0..=self.all).contains(&self.yes)
    }

    /// Mean with a prior of `expected` that weighs `strength` cases.
    fn mean(&self, expected: f64, strength: f64) -> f64 {
        (self.yes + expected * strength) / (self.all + strength)
    }
}

/// Chance of acceptance by depth, and by rank among siblings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Acceptance {
    depths: [Share; MAX_DRAFT_LENGTH],
    /// Chance of each later sibling, given that those before it were rejected.
    ranks: [Share; MAX_TREE_WIDTH],
}

/// Prior for the first drafted token.
const FIRST: f64 = 0.7;
/// Prior for the next sibling after those before it were rejected.
const SIBLING: f64 = 0.3;
/// Decay per case: about the last fifty decide.
const KEEP: f64 = 0.98;
/// Maximum weight of earlier texts' cases in a new text.
const CARRIED: f64 = 12.0;
/// Maximum weight of saved confidence statistics, in cases.
const RESTORED: f64 = 40.0;

impl Acceptance {
    /// Returns true if the counts are possible.
    pub(super) fn is_sound(&self) -> bool {
        self.depths.iter().chain(&self.ranks).all(Share::is_sound)
    }

    /// Starts another text, which may be easier or harder.
    pub fn begin_text(&mut self) {
        self.depths.iter_mut().for_each(|share| share.fade(CARRIED));
    }

    /// Adds a judged token at `depth` (0 is the first); all its ancestors were accepted.
    pub fn learn(&mut self, depth: usize, accepted: bool) {
        if let Some(share) = self.depths.get_mut(depth) {
            share.learn(accepted, KEEP);
        }
    }

    /// Adds a judged sibling of rank 1 or more; all siblings before it were rejected.
    pub fn learn_rank(&mut self, rank: usize, accepted: bool) {
        if let Some(share) = self.ranks.get_mut(rank) {
            share.learn(accepted, KEEP);
        }
    }

    /// a_1 to a_16: P(accepted, given that all ancestors were). The prior of a depth is the
    /// estimate of the depth before.
    pub fn by_depth(&self) -> [f64; MAX_DRAFT_LENGTH] {
        let (mut expected, mut strength) = (FIRST, 2.0);
        self.depths.map(|share| {
            expected = share.mean(expected, strength);
            strength = 4.0;
            expected
        })
    }

    /// [Chances by rank](Self::by_rank) for the first `depths` depths.
    pub fn by_depth_and_rank(&self, depths: usize) -> Vec<[f64; MAX_TREE_WIDTH]> {
        self.by_depth()[..depths].iter().map(|&first| self.by_rank(first)).collect()
    }

    /// Chance that the sibling of each rank is the accepted one, if the first has chance `first`.
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

/// Depths with statistics of their own; the last includes all deeper ones.
const DEPTHS: usize = 4;

/// Calibration of a drafter's confidence: the share of accepted tokens by confidence and depth.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    bins: [[Share; BINS]; DEPTHS],
}

impl Calibration {
    /// Returns true if the counts are possible.
    pub(super) fn is_sound(&self) -> bool {
        self.bins.iter().flatten().all(Share::is_sound)
    }

    /// Reduces the weight of earlier cases.
    pub(super) fn fade(&mut self) {
        self.bins.iter_mut().flatten().for_each(|share| share.fade(RESTORED));
    }

    /// Adds a judged token at `depth` (0 is the first); all its ancestors were accepted.
    pub fn learn(&mut self, depth: usize, confidence: f32, accepted: bool) {
        self.bins[depth.min(DEPTHS - 1)][bin(confidence)].learn(accepted, 0.99);
    }

    /// P(accepted, given that all ancestors were) for this confidence. The prior is the estimate
    /// one token nearer, and at depth 0 the confidence itself.
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
    fn many_cases_outweigh_the_prior() {
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
    fn later_ranks_share_the_remaining_probability() {
        let mut acceptance = Acceptance::default();
        (0..500).for_each(|case| acceptance.learn_rank(1, case % 2 == 0));
        let chances = acceptance.by_rank(0.6);
        assert!((chances[1] - 0.2).abs() < 0.02, "{chances:?}");
        assert!(chances.iter().sum::<f64>() <= 1.0);
    }

    #[test]
    fn confidence_is_calibrated_by_acceptance() {
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
