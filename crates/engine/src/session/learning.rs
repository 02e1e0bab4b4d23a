//! Where it is kept what was learned about models that draft for each other, and on which device a model is faster, from
//! one start of the program to the next. The session says what it is about; files are for others.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::governor::Knowledge;

/// The models that work together, and what computes for them: what was learned about one pair says nothing about
/// another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pair {
    /// The target, then those that draft.
    pub models: Vec<PathBuf>,
    /// Labels of their devices, and what else changes their costs.
    pub devices: Vec<String>,
}

/// What a token of a model takes on a GPU and on the CPU, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TokenTimes {
    pub gpu_ms: f64,
    pub cpu_ms: f64,
}

/// Remembers what was learned about pairs.
pub trait Learning: Send + Sync {
    /// What was learned about `pair`; `None` where nothing was, or nothing that is understood.
    fn recall(&self, pair: &Pair) -> Option<Knowledge>;

    /// Keeps `knowledge` in the place of what was learned before.
    ///
    /// # Errors
    /// Why it cannot be kept.
    fn keep(&self, pair: &Pair, knowledge: &Knowledge) -> Result<(), Box<dyn std::error::Error>>;

    /// What a token takes on two devices, about the one model of `pair`.
    fn recall_times(&self, pair: &Pair) -> Option<TokenTimes>;

    /// Keeps `times` in the place of what was measured before.
    ///
    /// # Errors
    /// Why it cannot be kept.
    fn keep_times(&self, pair: &Pair, times: &TokenTimes) -> Result<(), Box<dyn std::error::Error>>;
}
