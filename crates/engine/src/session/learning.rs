//! Storage for statistics of models that draft for each other, and for measured device times. The
//! client provides it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::governor::{GovernorStats, RowRatios};

/// Key of saved statistics: models that work together, and their devices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pair {
    /// The target, then the draft models.
    pub models: Vec<PathBuf>,
    /// Labels of their devices, and other properties that change their costs.
    pub devices: Vec<String>,
}

/// Milliseconds per token of a model on a GPU and on the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TokenTimes {
    pub gpu_ms: f64,
    pub cpu_ms: f64,
}

/// Saves and restores statistics.
pub trait Learning: Send + Sync {
    /// Statistics of `pair`; `None` if there are none that can be read.
    fn load(&self, pair: &Pair) -> Option<GovernorStats>;

    /// Saves `stats`, replacing earlier statistics.
    ///
    /// # Errors
    /// The reason why saving failed.
    fn save(&self, pair: &Pair, stats: &GovernorStats) -> Result<(), Box<dyn std::error::Error>>;

    /// Row ratios measured with models of this class, the key of a `CostClass`; `None` if there are
    /// none that can be read.
    fn load_ratios(&self, class: &str) -> Option<RowRatios>;

    /// Saves `ratios` of a class of models, replacing earlier ones.
    ///
    /// # Errors
    /// The reason why saving failed.
    fn save_ratios(&self, class: &str, ratios: &RowRatios) -> Result<(), Box<dyn std::error::Error>>;

    /// Measured times of the one model of `pair`.
    fn load_times(&self, pair: &Pair) -> Option<TokenTimes>;

    /// Saves `times`, replacing earlier ones.
    ///
    /// # Errors
    /// The reason why saving failed.
    fn save_times(&self, pair: &Pair, times: &TokenTimes) -> Result<(), Box<dyn std::error::Error>>;
}
