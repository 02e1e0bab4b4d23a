//! What a pass and a draft cost on this device, measured when a pair begins to work together and kept
//! current by every round.

use crate::speculation::LONGEST_DRAFT;

/// The longest draft and the token before it.
pub const MOST_ROWS: usize = LONGEST_DRAFT + 1;

/// How much a new measurement changes an estimate.
const SPEED: f64 = 0.3;
/// The same of what is particular to one number of rows, which changes less than what is common to all.
const OWN_SPEED: f64 = 0.15;
/// What is measured counts as at most so many times more or less than was expected: a pass that was
/// interrupted takes many times as long, and interruptions come one-sided.
const OUTLIER: f64 = 1.1;

/// A value that is followed by its logarithm and in small steps, close to its running median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate(f64);

impl Estimate {
    pub fn new(value: f64) -> Self {
        Self(value.max(1e-6))
    }

    pub fn get(self) -> f64 {
        self.0
    }

    pub fn learn(&mut self, value: f64) {
        self.follow(value, SPEED);
    }

    fn follow(&mut self, value: f64, speed: f64) {
        let surprise = (value.max(1e-6) / self.0).clamp(1.0 / OUTLIER, OUTLIER);
        self.0 *= surprise.powf(speed);
    }
}

/// T_v(M): milliseconds of a pass of the target over M rows with all their scores.
///
/// What was measured at first is corrected twice: for all numbers of rows together, as a context that grows
/// or another program slows all of them down, and for each by itself.
#[derive(Debug, Clone)]
pub struct VerifyCosts {
    first: [f64; MOST_ROWS],
    pace: Estimate,
    own: [Estimate; MOST_ROWS],
}

impl VerifyCosts {
    /// From what some numbers of rows cost, ascending and never none; in between and beyond by straight
    /// lines.
    pub fn measured(points: &[(usize, f64)]) -> Self {
        let mut first = [0.0; MOST_ROWS];
        for (rows, cost) in (1..).zip(&mut first) {
            let after = points.iter().position(|&(at, _)| at >= rows).unwrap_or(points.len() - 1).max(1);
            *cost = match points {
                [only] => only.1,
                _ => {
                    let ((x0, y0), (x1, y1)) = (points[after - 1], points[after]);
                    y0 + (y1 - y0) * (rows as f64 - x0 as f64) / (x1 - x0) as f64
                }
            };
        }
        Self { first, pace: Estimate::new(1.0), own: [Estimate::new(1.0); MOST_ROWS] }
    }

    /// # Panics
    /// For no rows.
    pub fn get(&self, rows: usize) -> f64 {
        let index = rows.min(MOST_ROWS) - 1;
        self.first[index] * self.pace.get() * self.own[index].get()
    }

    pub fn learn(&mut self, rows: usize, ms: f64) {
        if (1..=MOST_ROWS).contains(&rows) {
            let expected = self.get(rows);
            self.pace.learn(self.pace.get() * ms / expected);
            let own = self.own[rows - 1].get() * ms / self.get(rows);
            self.own[rows - 1].follow(own, OWN_SPEED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_between_and_beyond_the_points_lie_on_lines() {
        let costs = VerifyCosts::measured(&[(1, 10.0), (5, 14.0), (9, 22.0)]);
        for (rows, expected) in [(1, 10.0), (3, 12.0), (5, 14.0), (7, 18.0), (9, 22.0), (17, 38.0)] {
            assert!((costs.get(rows) - expected).abs() < 1e-9, "{rows} rows: {}", costs.get(rows));
        }
        assert!((VerifyCosts::measured(&[(1, 3.0)]).get(9) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_slower_computer_is_slower_for_all_numbers_of_rows() {
        let mut costs = VerifyCosts::measured(&[(1, 10.0), (9, 20.0)]);
        (0..100).for_each(|_| costs.learn(5, 30.0));
        assert!((costs.get(5) - 30.0).abs() < 1.0, "{}", costs.get(5));
        assert!(costs.get(1) > 15.0, "{}", costs.get(1));
    }

    #[test]
    fn one_outlier_changes_little() {
        let mut costs = VerifyCosts::measured(&[(1, 10.0)]);
        costs.learn(1, 10_000.0);
        assert!(costs.get(1) < 13.0, "{}", costs.get(1));
    }
}
