//! Storage for the engine's statistics: acceptance of drafts by pair of models, and times per
//! device.

use std::error::Error;

use foretoken_engine::governor::{GovernorStats, RowRatios};
use foretoken_engine::session::{Learning, Pair, TokenTimes};
use foretoken_library::{Folders, SavedStats};

/// Stores them in `learned.json`, `ratios.json` and `devices.json`.
pub struct StatsFile(pub Folders);

impl Learning for StatsFile {
    fn load(&self, pair: &Pair) -> Option<GovernorStats> {
        SavedStats::about(&self.0, &pair.models, &pair.devices).load()
    }

    fn save(&self, pair: &Pair, stats: &GovernorStats) -> Result<(), Box<dyn Error>> {
        Ok(SavedStats::about(&self.0, &pair.models, &pair.devices).save(stats)?)
    }

    fn load_ratios(&self, class: &str) -> Option<RowRatios> {
        SavedStats::ratios_of(&self.0, class).load()
    }

    fn save_ratios(&self, class: &str, ratios: &RowRatios) -> Result<(), Box<dyn Error>> {
        Ok(SavedStats::ratios_of(&self.0, class).save(ratios)?)
    }

    fn load_times(&self, pair: &Pair) -> Option<TokenTimes> {
        SavedStats::times_of(&self.0, &pair.models, &pair.devices).load()
    }

    fn save_times(&self, pair: &Pair, times: &TokenTimes) -> Result<(), Box<dyn Error>> {
        Ok(SavedStats::times_of(&self.0, &pair.models, &pair.devices).save(times)?)
    }
}
