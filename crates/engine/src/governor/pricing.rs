//! Chances and prices of a drafter's guesses, from the governor's statistics.

use super::Governor;
use super::worth::{Chances, Prices};

impl Governor {
    /// Chances of a drafter's guesses in the present kind of text.
    pub fn chances(&self, drafter: usize) -> Chances<'_> {
        let stats = self.stats(drafter);
        Chances { calibration: &stats.calibration, by_depth: stats.acceptance.by_depth() }
    }

    /// Prices of a round that `drafter` drafts.
    pub(super) fn prices(&self, drafter: usize, staged: bool) -> Prices {
        Prices {
            rate: self.recent.rate(self.time(0)),
            rows_ms: std::array::from_fn(|guesses| self.time(guesses)),
            step_ms: std::array::from_fn(|index| self.step_ms(drafter, index + 1, staged)),
        }
    }

    /// Milliseconds of the drafter's step over several rows; more rows are assumed to cost as much
    /// more as for the target, corrected by what wide steps took.
    pub(super) fn step_ms(&self, drafter: usize, rows: usize, staged: bool) -> f64 {
        let account = &self.drafters[drafter];
        let more =
            if rows > 1 { self.verify.get(rows) / self.verify.get(1) * account.level.get() } else { 1.0 };
        account.token_ms(staged) * more
    }
}
