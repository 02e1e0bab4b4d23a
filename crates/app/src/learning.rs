//! What the engine learned about models that draft for each other, kept in the data folder.

use std::error::Error;

use foretoken_engine::governor::Knowledge;
use foretoken_engine::session::{Learning, Pair};
use foretoken_library::{Folders, Learned};

/// Keeps it in `learned.json`.
pub struct LearnedFile(pub Folders);

impl Learning for LearnedFile {
    fn recall(&self, pair: &Pair) -> Option<Knowledge> {
        Learned::about(&self.0, &pair.models, &pair.devices).recall()
    }

    fn keep(&self, pair: &Pair, knowledge: &Knowledge) -> Result<(), Box<dyn Error>> {
        Ok(Learned::about(&self.0, &pair.models, &pair.devices).keep(knowledge)?)
    }
}
