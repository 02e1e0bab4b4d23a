//! Worth of guesses: calibrated chances of acceptance, and prices of rows and of the drafter's
//! steps, in tokens.

use super::acceptance::Calibration;
use super::costs::MAX_ROWS;
use crate::speculation::MAX_DRAFT_LENGTH;

/// Prices in tokens: those usually written in the time that something takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    /// Tokens usually written in a millisecond.
    pub(super) rate: f64,
    /// Milliseconds of verifying 1 to [`MAX_ROWS`] rows.
    pub(super) rows_ms: [f64; MAX_ROWS],
    /// Milliseconds of a step of the drafter over 1 to [`MAX_DRAFT_LENGTH`] rows.
    pub(super) step_ms: [f64; MAX_DRAFT_LENGTH],
}

impl Prices {
    /// Price of verifying a further guess beside `guesses` others.
    pub fn row(&self, guesses: usize) -> f64 {
        let ms = |guesses: usize| self.rows_ms[guesses.min(MAX_ROWS - 1)];
        self.rate * (ms(guesses + 1) - ms(guesses))
    }

    /// Mean price of verifying the next two guesses beside `guesses` others. Single rows are
    /// measured less exactly.
    pub fn next_rows(&self, guesses: usize) -> f64 {
        (self.row(guesses) + self.row(guesses + 1)) / 2.0
    }

    /// Price of the next guess to show; `None` if time costs nothing.
    pub fn shown(&self, guesses: usize) -> Option<f32> {
        (self.rate > 0.0).then(|| self.next_rows(guesses) as f32)
    }

    /// Price of a step over `rows` rows.
    pub fn step(&self, rows: usize) -> f64 {
        self.rate * self.step_ms[rows.clamp(1, MAX_DRAFT_LENGTH) - 1]
    }

    /// Prices if time cost nothing.
    pub(super) fn free(self) -> Self {
        Self { rate: 0.0, ..self }
    }
}

/// Chances of a drafter's guesses in a kind of text.
#[derive(Debug, Clone, Copy)]
pub struct Chances<'a> {
    pub(super) calibration: &'a Calibration,
    pub(super) by_depth: [f64; MAX_DRAFT_LENGTH],
}

impl Chances<'_> {
    /// P(accepted, given that all ancestors were) for the guess number `rank` after its parent.
    pub fn of(&self, depth: usize, rank: usize, confidence: f32, is_drawn: bool) -> f64 {
        self.calibration.chance(depth, rank, confidence, is_drawn)
    }

    /// Expected chance of the likeliest guess at `depth`, before it is drafted.
    pub fn next(&self, depth: usize) -> f64 {
        self.by_depth[depth.min(MAX_DRAFT_LENGTH - 1)]
    }
}

/// Decides which guesses of a draft are worth their time.
#[derive(Debug, Clone, Copy)]
pub struct Worth<'a> {
    pub prices: &'a Prices,
    pub chances: Chances<'a>,
    /// Least chance that a guess and all its ancestors are accepted.
    pub least_survival: f64,
}
