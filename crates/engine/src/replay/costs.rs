//! Simulated times of a replay.

use serde::{Deserialize, Serialize};

/// Milliseconds of a pair's passes and drafts on a computer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayCosts {
    /// Passes of the target that were measured: rows and milliseconds, ascending by rows and not
    /// empty. Those between are interpolated.
    pub verify: Vec<(usize, f64)>,
    /// Rest of a round for each row: distributions and verification.
    pub judge_row: f64,
    /// The drafter's pass over one row, and over each row beyond it.
    pub step: f64,
    pub step_row: f64,
    /// Factor of a pass of the target after a draft, whose weights took its place in the cache.
    pub eviction: f64,
}

impl ReplayCosts {
    /// Milliseconds of a pass over `rows` rows.
    pub fn verify_ms(&self, rows: usize) -> f64 {
        let after = self.verify.iter().position(|&(at, _)| at >= rows);
        let after = after.unwrap_or(self.verify.len() - 1).max(1);
        let ((x0, y0), (x1, y1)) = (self.verify[after - 1], self.verify[after]);
        y0 + (y1 - y0) * (rows as f64 - x0 as f64) / (x1 - x0) as f64
    }

    /// Milliseconds of the rest of a round with `rows` rows.
    pub fn judge_ms(&self, rows: usize) -> f64 {
        self.judge_row * rows as f64
    }

    /// Milliseconds of a plain round.
    pub fn plain_ms(&self) -> f64 {
        self.verify_ms(1) + self.judge_ms(1)
    }

    /// Milliseconds of the drafter's pass over `rows` rows.
    pub fn step_ms(&self, rows: usize) -> f64 {
        self.step + self.step_row * (rows - 1) as f64
    }

    /// Cost of a draft step over that of a plain pass.
    pub fn step_share(&self) -> f64 {
        self.step / self.verify_ms(1)
    }
}
