//! Measured cost of passes and drafts on this device, updated by every round.

use crate::speculation::MAX_DRAFT_LENGTH;

/// Rows of the longest draft and the token before it.
pub const MAX_ROWS: usize = MAX_DRAFT_LENGTH + 1;

/// Lower limit of a cost: a millionth of a millisecond.
pub(super) const SMALLEST: f64 = 1e-6;
/// Upper limit of a cost: an hour.
pub(super) const LARGEST: f64 = 3.6e6;

/// Weight of a new measurement.
const SPEED: f64 = 0.3;
/// Weight for a single number of rows, which changes less than the common factor.
const OWN_SPEED: f64 = 0.15;
/// Largest factor between a measurement and the estimate that counts fully: interrupted passes take
/// many times as long, and never shorter.
const OUTLIER: f64 = 1.1;
/// Surprises in a row on the same side are no outliers: each doubles the logarithm of the allowed
/// factor, up to this number.
const LONGEST_STREAK: i32 = 4;

/// Estimate in small logarithmic steps, close to a running median. The steps grow if the value
/// changed for good.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    value: f64,
    /// Surprises in a row: positive above the estimate, negative below.
    streak: i32,
}

impl Estimate {
    pub fn new(value: f64) -> Self {
        Self { value: value.max(SMALLEST), streak: 0 }
    }

    pub fn get(self) -> f64 {
        self.value
    }

    pub fn learn(&mut self, value: f64) {
        self.follow(value, SPEED);
    }

    fn follow(&mut self, value: f64, speed: f64) {
        let surprise = (value.max(SMALLEST) / self.value).ln();
        let outlier = OUTLIER.ln();
        self.streak = match surprise {
            more if more > outlier => (self.streak.max(0) + 1).min(LONGEST_STREAK),
            less if less < -outlier => (self.streak.min(0) - 1).max(-LONGEST_STREAK),
            _ => 0,
        };
        let most = outlier * 2f64.powi(self.streak.abs() - 1).max(1.0);
        self.value *= (surprise.clamp(-most, most) * speed).exp();
    }
}

/// Measurements of a number that are averaged before it only follows slowly.
const FIRST_CASES: u8 = 4;
/// Restored costs: measurements that correct the common factor quickly, for a computer that became
/// slower or faster meanwhile.
const QUICK_CASES: u8 = 4;
/// Largest factor by which one of the first measurements corrects an estimate.
const LARGEST_CORRECTION: f64 = 4.0;

/// Measurements of 1 alone after which numbers that are not settled are assumed again: an
/// interrupted measurement may be the reason why they are not tried.
const PATIENCE: u16 = 128;

/// Milliseconds by number: T_v(M) of the target's pass over M rows with all their logits, of
/// judging M rows, or of a draft of N tokens.
///
/// The first measurement is corrected twice: by a factor for all numbers, since a longer context or
/// another program slows down all of them, and by one for each number. Where the first values are
/// [assumed](Self::assumed), the first measurements replace them, and numbers that were never
/// measured are corrected as much as the measured ones next to them.
#[derive(Debug, Clone)]
pub struct Costs {
    first: [f64; MAX_ROWS],
    pace: Estimate,
    own: [Estimate; MAX_ROWS],
    /// Measurements of each number, at most [`FIRST_CASES`].
    cases: [u8; MAX_ROWS],
    /// Measurements that still correct the common factor quickly.
    quick: u8,
    /// Measurements of 1 since another number was measured.
    alone: u16,
}

impl Costs {
    /// Interpolates costs from measured `points` (number, ms), ascending by number and not empty.
    /// Results never decrease: more rows cannot cost less, even if a measurement was interrupted.
    pub fn measured(points: &[(usize, f64)]) -> Self {
        let mut first = [0.0; MAX_ROWS];
        let mut least = SMALLEST;
        for (number, cost) in (1..).zip(&mut first) {
            let after = points.iter().position(|&(at, _)| at >= number).unwrap_or(points.len() - 1).max(1);
            let line = match points {
                [only] => only.1,
                _ => {
                    let ((x0, y0), (x1, y1)) = (points[after - 1], points[after]);
                    y0 + (y1 - y0) * (number as f64 - x0 as f64) / (x1 - x0) as f64
                }
            };
            least = line.max(least);
            *cost = least;
        }
        Self::starting(first, [FIRST_CASES; MAX_ROWS])
    }

    /// Assumed costs, to be replaced by the first measurements.
    pub fn assumed(cost: impl Fn(usize) -> f64) -> Self {
        Self::starting(std::array::from_fn(|index| cost(index + 1).max(SMALLEST)), [0; MAX_ROWS])
    }

    fn starting(first: [f64; MAX_ROWS], cases: [u8; MAX_ROWS]) -> Self {
        Self {
            first,
            pace: Estimate::new(1.0),
            own: [Estimate::new(1.0); MAX_ROWS],
            cases,
            quick: 0,
            alone: 0,
        }
    }

    /// Returns true if this number was measured.
    pub fn is_measured(&self, number: usize) -> bool {
        self.cases[number.clamp(1, MAX_ROWS) - 1] > 0
    }

    /// Returns true if a number of at least `least` was measured so often that no interrupted
    /// measurement decides.
    pub(super) fn is_settled(&self, least: usize) -> bool {
        self.cases[least - 1..].iter().any(|&cases| cases >= FIRST_CASES)
    }

    /// Largest number that was measured; 0 if none was.
    pub fn largest_measured(&self) -> usize {
        (0..MAX_ROWS).rev().find(|&index| self.cases[index] > 0).map_or(0, |index| index + 1)
    }

    /// A bit for each measured number, from the lowest.
    pub(super) fn measured_bits(&self) -> u32 {
        (0..MAX_ROWS).filter(|&index| self.cases[index] > 0).map(|index| 1_u32 << index).sum()
    }

    /// Costs of 1 to [`MAX_ROWS`].
    pub(super) fn to_vec(&self) -> Vec<f32> {
        (1..=MAX_ROWS).map(|number| self.get(number) as f32).collect()
    }

    /// Restores the results of [`Self::to_vec`] and [`Self::measured_bits`]; `None` if they are
    /// impossible.
    pub(super) fn from_slice(costs: &[f32], measured: u32) -> Option<Self> {
        let first = <[f32; MAX_ROWS]>::try_from(costs).ok()?.map(f64::from);
        let sound = first.iter().all(|&cost| cost > 0.0 && cost < LARGEST);
        let cases = std::array::from_fn(|index| if (measured >> index) & 1 > 0 { FIRST_CASES } else { 0 });
        sound.then(|| Self { quick: QUICK_CASES, ..Self::starting(first, cases) })
    }

    /// # Panics
    /// For 0.
    pub fn get(&self, number: usize) -> f64 {
        let index = number.min(MAX_ROWS) - 1;
        self.first[index] * self.pace.get() * self.own[index].get()
    }

    pub fn learn(&mut self, number: usize, ms: f64) {
        if !(1..=MAX_ROWS).contains(&number) {
            return;
        }
        let index = number - 1;
        self.alone = if index > 0 { 0 } else { self.alone + 1 };
        if self.alone >= PATIENCE {
            self.alone = 0;
            self.cases[1..].iter_mut().filter(|cases| **cases < FIRST_CASES).for_each(|cases| *cases = 0);
        }
        if self.cases.iter().all(|&cases| cases == 0) {
            let pace = self.pace.get() * correction(ms / self.get(number), 0, f64::INFINITY);
            (self.pace, self.cases[index]) = (Estimate::new(pace), 1);
            return;
        }
        let surprise = ms / self.get(number);
        if self.cases[index] < FIRST_CASES {
            let own = self.own[index].get() * correction(surprise, self.cases[index], LARGEST_CORRECTION);
            self.own[index] = Estimate::new(own);
            self.cases[index] += 1;
        } else if self.quick > 0 {
            let pace = correction(surprise, 1, LARGEST_CORRECTION);
            self.pace = Estimate::new(self.pace.get() * pace);
            self.quick -= 1;
        } else {
            self.pace.learn(self.pace.get() * surprise);
            let own = self.own[index].get() * ms / self.get(number);
            self.own[index].follow(own, OWN_SPEED);
        }
        self.interpolate();
    }

    /// Corrects numbers that were never measured by the measured ones next to them. Once 1 is
    /// measured, a correction applies to what further rows or tokens cost.
    fn interpolate(&mut self) {
        let base = if self.cases[0] > 0 { self.get(1) } else { 0.0 };
        let level = if base > 0.0 { base / self.first[0] } else { self.pace.get() };
        let assumed = |index: usize| (self.first[index] * level - base).max(0.0);
        let measured: Vec<(usize, f64)> = (0..MAX_ROWS)
            .filter(|&index| self.cases[index] > 0 && (index > 0 || base == 0.0))
            .map(|index| {
                let further = (self.get(index + 1) - base).max(0.0) / assumed(index).max(SMALLEST);
                (index, further.clamp(1.0 / LARGEST_CORRECTION, LARGEST_CORRECTION))
            })
            .collect();
        for index in (0..MAX_ROWS).filter(|&index| self.cases[index] == 0) {
            let after = measured.partition_point(|&(other, _)| other < index);
            let factor = match (after.checked_sub(1).map(|before| measured[before]), measured.get(after)) {
                (Some((below, low)), Some(&(above, high))) => {
                    let share = (index - below) as f64 / (above - below) as f64;
                    low.powf(1.0 - share) * high.powf(share)
                }
                (Some((_, nearest)), None) | (None, Some(&(_, nearest))) => nearest,
                (None, None) => 1.0,
            };
            let cost = base + factor * assumed(index);
            self.own[index] = Estimate::new(cost / (self.first[index] * self.pace.get()));
        }
    }
}

/// Factor by which one of the first measurements corrects an estimate that `cases` measurements
/// made, if it is `surprise` times as large. An interrupted pass takes longer and never shorter, so
/// a shorter one counts fully.
fn correction(surprise: f64, cases: u8, largest: f64) -> f64 {
    let surprise = surprise.max(SMALLEST);
    let weight = if surprise < 1.0 / OUTLIER { 1.0 } else { 1.0 / (1.0 + f64::from(cases)) };
    surprise.min(largest).powf(weight)
}

/// Cost of a drafter's drafts.
#[derive(Debug, Clone)]
pub struct DraftCosts {
    /// Cost by length.
    pub draft: Costs,
    /// Time of the target's pass after a draft against one after a pass: the draft evicted the
    /// target's weights from the processor's cache.
    pub eviction_cost: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_between_and_beyond_points_are_linear() {
        let costs = Costs::measured(&[(1, 10.0), (5, 14.0), (9, 22.0)]);
        for (rows, expected) in [(1, 10.0), (3, 12.0), (5, 14.0), (7, 18.0), (9, 22.0), (17, 38.0)] {
            assert!((costs.get(rows) - expected).abs() < 1e-9, "{rows} rows: {}", costs.get(rows));
        }
        assert!((Costs::measured(&[(1, 3.0)]).get(9) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn costs_never_decrease_and_are_never_zero() {
        let interrupted = Costs::measured(&[(1, 300.0), (4, 240.0)]);
        assert!((1..17).all(|number| interrupted.get(number + 1) >= interrupted.get(number)));
        let mut nothing = Costs::measured(&[(1, 0.0)]);
        (0..5000).for_each(|_| nothing.learn(4, 2.0));
        assert!((1.5..2.5).contains(&nothing.get(4)), "{}", nothing.get(4));
        assert!((1..=17).all(|number| nothing.get(number).is_finite()));
    }

    #[test]
    fn a_slower_computer_is_slower_for_all_numbers_of_rows() {
        let mut costs = Costs::measured(&[(1, 10.0), (9, 20.0)]);
        (0..100).for_each(|_| costs.learn(5, 30.0));
        assert!((costs.get(5) - 30.0).abs() < 1.0, "{}", costs.get(5));
        assert!(costs.get(1) > 15.0, "{}", costs.get(1));
    }

    #[test]
    fn the_first_measurement_sets_all_assumed_costs_and_later_ones_their_own_and_the_next() {
        let mut costs = Costs::assumed(|rows| 0.9 + 0.1 * rows as f64);
        assert!((1..=17).all(|rows| !costs.is_measured(rows)));
        costs.learn(1, 40.0);
        assert!((costs.get(1) - 40.0).abs() < 1e-9 && (costs.get(11) - 80.0).abs() < 1e-9);
        costs.learn(11, 160.0);
        assert!((costs.get(1) - 40.0).abs() < 1e-9, "a row costs what it cost");
        assert!((costs.get(11) - 160.0).abs() < 1e-9);
        assert!((costs.get(17) - 232.0).abs() < 1e-9, "a further row costs three times as much");
        assert!((costs.get(6) - 100.0).abs() < 1e-9, "in between, too: {}", costs.get(6));
        assert_eq!(costs.measured_bits(), 0b100_0000_0001);
    }

    #[test]
    fn an_interrupted_first_measurement_is_soon_corrected() {
        let mut costs = Costs::assumed(|_| 1.0);
        costs.learn(1, 400.0);
        costs.learn(1, 40.0);
        assert!((costs.get(1) - 40.0).abs() < 1e-9, "a pass is never too short");
        costs.learn(5, 400.0);
        assert!((costs.get(5) - 160.0).abs() < 1e-9, "a correction is fourfold at most");
    }

    #[test]
    fn restored_costs_follow_a_slower_computer_within_four_passes() {
        let known = Costs::measured(&[(1, 10.0), (9, 20.0)]);
        let mut restored = Costs::from_slice(&known.to_vec(), known.measured_bits()).unwrap();
        (0..2).for_each(|_| [(1, 25.0), (5, 37.5)].iter().for_each(|&(rows, ms)| restored.learn(rows, ms)));
        assert!((22.0..26.0).contains(&restored.get(1)), "{}", restored.get(1));
        assert!((44.0..52.0).contains(&restored.get(9)), "{}", restored.get(9));
    }

    #[test]
    fn a_permanent_change_is_noticed_within_ten_measurements() {
        let mut estimate = Estimate::new(1.0);
        (0..10).for_each(|_| estimate.learn(4.0));
        assert!((3.5..4.2).contains(&estimate.get()), "{}", estimate.get());
        (0..10).for_each(|_| estimate.learn(1.0));
        assert!((0.95..1.2).contains(&estimate.get()), "{}", estimate.get());
    }

    #[test]
    fn an_interruption_every_fourth_time_changes_little() {
        let mut estimate = Estimate::new(1.0);
        (0..400).for_each(|pass| estimate.learn(if pass % 4 == 0 { 10.0 } else { 1.0 }));
        assert!(estimate.get() < 1.1, "{}", estimate.get());
    }

    #[test]
    fn one_outlier_changes_an_estimate_little() {
        let mut costs = Costs::measured(&[(1, 10.0)]);
        costs.learn(1, 10_000.0);
        assert!(costs.get(1) < 13.0, "{}", costs.get(1));
    }
}
