//! Acceptance statistics of drafted tokens, by depth, and by depth, rank among siblings and the
//! drafter's confidence.

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

/// Chance of acceptance of the likeliest guess by depth.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Acceptance {
    /// The present text.
    depths: [Share; MAX_DRAFT_LENGTH],
    /// All texts of the kind, with which a text begins.
    #[serde(default)]
    texts: [Share; MAX_DRAFT_LENGTH],
}

/// Prior for the first drafted token.
const FIRST: f64 = 0.6;
/// Weight of this prior in cases.
const FIRST_CASES: f64 = 6.0;
/// Decay per case: about the last fifty decide.
const KEEP: f64 = 0.98;
/// Decay of a depth per case of each smaller depth.
const KEEP_UNSEEN: f64 = 0.995;
/// Decay per case over texts: about the last five hundred decide.
const KEEP_TEXTS: f64 = 0.998;
/// Maximum weight of earlier texts' cases in a new text.
const CARRIED: f64 = 12.0;
/// Maximum weight of saved confidence statistics, in cases.
const RESTORED: f64 = 40.0;

impl Acceptance {
    /// Returns true if the counts are possible.
    pub(super) fn is_sound(&self) -> bool {
        self.depths.iter().chain(&self.texts).all(Share::is_sound)
    }

    /// Starts another text, which may be easier or harder than the last. It begins with the mean of
    /// all texts: after one that was not worth drafting the next one may be.
    pub fn begin_text(&mut self) {
        for (share, texts) in self.depths.iter_mut().zip(&self.texts) {
            *share = if texts.all > 0.0 { *texts } else { *share };
            share.fade(CARRIED);
        }
    }

    /// Adds a judged token at `depth` (0 is the first); all its ancestors were accepted.
    pub fn learn(&mut self, depth: usize, accepted: bool) {
        if let (Some(share), Some(texts)) = (self.depths.get_mut(depth), self.texts.get_mut(depth)) {
            share.learn(accepted, KEEP);
            texts.learn(accepted, KEEP_TEXTS);
        }
        // Depths that are no longer drafted become like the one before again.
        for share in self.depths.iter_mut().skip(depth + 1) {
            (share.yes, share.all) = (share.yes * KEEP_UNSEEN, share.all * KEEP_UNSEEN);
        }
    }

    /// a_1 to a_16: P(accepted, given that all ancestors were). The prior of a depth is the
    /// estimate of the depth before.
    pub fn by_depth(&self) -> [f64; MAX_DRAFT_LENGTH] {
        let (mut expected, mut strength) = (FIRST, FIRST_CASES);
        self.depths.map(|share| {
            expected = share.mean(expected, strength);
            strength = 4.0;
            expected
        })
    }
}

const BINS: usize = 10;

/// Depths with statistics of their own; the last includes all deeper ones.
const DEPTHS: usize = 4;

/// Weight of the prior of a calibrated chance in cases, for the likeliest guess and for its later
/// siblings, of which there are more to try and fewer to learn from.
const PRIOR: [f64; 2] = [4.0, 16.0];

/// Share of the confidence in a likeliest guess that it reaches in replays of recorded drafts,
/// until it is measured: 0.6 to 0.9 by drafter and sampling.
const OPTIMISM: f64 = 0.85;

/// Decay of calibration cases: about the last hundred decide.
const KEEP_CALIBRATION: f64 = 0.99;

/// Calibration of a drafter's confidence: the share of accepted tokens by depth, rank among
/// siblings and confidence.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    bins: [[Share; BINS]; DEPTHS],
    /// By depth, rank after the first and confidence.
    #[serde(default, skip_serializing_if = "Siblings::is_empty")]
    siblings: Siblings,
}

/// Shares of later siblings; drafters that draft no trees have none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Siblings([[[Share; BINS]; MAX_TREE_WIDTH - 1]; DEPTHS]);

impl Siblings {
    fn is_empty(&self) -> bool {
        self.iter().all(|share| share.all == 0.0)
    }

    fn iter(&self) -> impl Iterator<Item = &Share> {
        self.0.iter().flatten().flatten()
    }
}

impl Calibration {
    /// Returns true if the counts are possible.
    pub(super) fn is_sound(&self) -> bool {
        self.bins.iter().flatten().chain(self.siblings.iter()).all(Share::is_sound)
    }

    /// Reduces the weight of earlier cases.
    pub(super) fn fade(&mut self) {
        let siblings = self.siblings.0.iter_mut().flatten().flatten();
        self.bins.iter_mut().flatten().chain(siblings).for_each(|share| share.fade(RESTORED));
    }

    /// Adds a guess at `depth` (0 is the first), number `rank` after its parent, which was
    /// accepted.
    pub fn learn(&mut self, depth: usize, rank: usize, confidence: f32, accepted: bool) {
        let depth = depth.min(DEPTHS - 1);
        let share = match rank {
            0 => &mut self.bins[depth][bin(confidence)],
            _ => &mut self.siblings.0[depth][rank.min(MAX_TREE_WIDTH - 1) - 1][sibling_bin(confidence)],
        };
        share.learn(accepted, KEEP_CALIBRATION);
    }

    /// P(accepted, given that the parent was) for this confidence. The prior is the estimate one
    /// token nearer, and at depth 0 the confidence, less what is usual for certain guesses: a guess
    /// that is drawn is accepted at least as often as its likeliest token.
    pub fn chance(&self, depth: usize, rank: usize, confidence: f32, is_drawn: bool) -> f64 {
        let share = |depth: usize| match rank {
            0 => self.bins[depth][bin(confidence)],
            _ => self.siblings.0[depth][rank.min(MAX_TREE_WIDTH - 1) - 1][sibling_bin(confidence)],
        };
        let prior = PRIOR[rank.min(1)];
        let sure = if rank > 0 || is_drawn { 1.0 } else { OPTIMISM };
        let expected = f64::from(confidence).clamp(0.0, 1.0) * sure;
        (0..=depth.min(DEPTHS - 1)).fold(expected, |expected, depth| share(depth).mean(expected, prior))
    }
}

fn bin(confidence: f32) -> usize {
    ((confidence * BINS as f32) as usize).min(BINS - 1)
}

/// Bin of a later sibling, whose confidence is a half at most.
fn sibling_bin(confidence: f32) -> usize {
    bin(2.0 * confidence)
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
        assert!(acceptance.by_depth()[0] > 0.85, "what was is the best guess");
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
    fn confidence_is_calibrated_by_acceptance() {
        let mut calibration = Calibration::default();
        assert!((calibration.chance(0, 0, 0.95, false) - 0.95 * OPTIMISM).abs() < 1e-6);
        assert!((calibration.chance(0, 0, 0.95, true) - 0.95).abs() < 1e-6, "a drawn guess");
        (0..200).for_each(|case| calibration.learn(0, 0, 0.95, case % 2 == 0));
        assert!((calibration.chance(0, 0, 0.95, false) - 0.5).abs() < 0.05);
        assert!(
            (calibration.chance(0, 0, 0.45, false) - 0.45 * OPTIMISM).abs() < 1e-6,
            "other bins know nothing of it"
        );
        assert!(
            (calibration.chance(7, 0, 0.95, false) - 0.5).abs() < 0.05,
            "further ahead nothing else is known"
        );
        (0..200).for_each(|_| calibration.learn(9, 0, 0.95, false));
        assert!(calibration.chance(7, 0, 0.95, false) < 0.1 && calibration.chance(1, 0, 0.95, false) > 0.4);
    }

    #[test]
    fn later_siblings_have_a_calibration_of_their_own() {
        let mut calibration = Calibration::default();
        (0..400).for_each(|case| calibration.learn(0, 1, 0.2, case % 10 == 0));
        assert!((calibration.chance(0, 1, 0.2, false) - 0.1).abs() < 0.03);
        assert!((calibration.chance(0, 2, 0.2, false) - 0.2).abs() < 1e-6, "another rank");
        assert!((calibration.chance(0, 0, 0.2, false) - 0.2 * OPTIMISM).abs() < 1e-6, "the likeliest guess");
        assert!(calibration.chance(3, 1, 0.2, false) < 0.15, "further ahead nothing else is known");
    }
}
