//! Storage for the engine's statistics: acceptance of drafts by pair of models, and times per
//! device.

use std::error::Error;

use foretoken_engine::governor::Knowledge;
use foretoken_engine::session::{Learning, Pair, TokenTimes};
use foretoken_library::{Folders, Learned};

/// Stores them in `learned.json` and `devices.json`.
pub struct LearnedFile(pub Folders);

impl Learning for LearnedFile {
    fn recall(&self, pair: &Pair) -> Option<Knowledge> {
        Learned::about(&self.0, &pair.models, &pair.devices).recall()
    }

    fn keep(&self, pair: &Pair, knowledge: &Knowledge) -> Result<(), Box<dyn Error>> {
        Ok(Learned::about(&self.0, &pair.models, &pair.devices).keep(knowledge)?)
    }

    fn recall_times(&self, pair: &Pair) -> Option<TokenTimes> {
        Learned::times_of(&self.0, &pair.models, &pair.devices).recall()
    }

    fn keep_times(&self, pair: &Pair, times: &TokenTimes) -> Result<(), Box<dyn Error>> {
        Ok(Learned::times_of(&self.0, &pair.models, &pair.devices).keep(times)?)
    }
}
