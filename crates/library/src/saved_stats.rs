//! Statistics about models across restarts, in the data folder: `learned.json` about pairs of
//! models, `speeds.json` about their speed, `devices.json` about the time per token on each device,
//! `ratios.json` about the cost of passes by rows.
//! The engine defines the contents; here they have a key that changes with the model files and the
//! device, and a bounded number of entries.

use std::fs::Metadata;
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json_file::JsonFile;
use crate::{Folders, Result};

/// Most entries that are kept; the least recently used are dropped first.
const MAX: usize = 24;

/// A statistics file and the key of one entry.
#[derive(Debug, Clone)]
pub struct SavedStats {
    file: JsonFile,
    pair: String,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    pair: String,
    #[serde(rename = "learned")]
    stats: Value,
}

impl SavedStats {
    /// Selects the entry of the models at these paths on the devices with these labels.
    pub fn about(folders: &Folders, models: &[impl AsRef<Path>], devices: &[impl AsRef<str>]) -> Self {
        let models = models.iter().map(|path| stamp(path.as_ref()));
        let devices = devices.iter().map(|device| device.as_ref().to_owned());
        let parts: Vec<String> = models.chain(devices).collect();
        Self { file: JsonFile::new(folders.root().join("learned.json")), pair: parts.join(" | ") }
    }

    /// Selects the speed of the model at this path on the device with this label; without a model,
    /// of the device itself.
    pub fn speed_of(folders: &Folders, model: Option<&Path>, device: &str) -> Self {
        let file = JsonFile::new(folders.root().join("speeds.json"));
        Self { file, ..Self::about(folders, model.as_slice(), &[device]) }
    }

    /// Selects the time per token of the model at this path on the devices with these labels.
    pub fn times_of(folders: &Folders, model: &[impl AsRef<Path>], devices: &[impl AsRef<str>]) -> Self {
        let file = JsonFile::new(folders.root().join("devices.json"));
        Self { file, ..Self::about(folders, model, devices) }
    }

    /// Selects the row ratios of a class of models.
    pub fn ratios_of(folders: &Folders, class: &str) -> Self {
        Self { file: JsonFile::new(folders.root().join("ratios.json")), pair: class.to_owned() }
    }

    /// Returns the entry; `None` if there is none or it cannot be parsed.
    pub fn load<T: DeserializeOwned>(&self) -> Option<T> {
        let entries: Vec<Entry> = self.file.read();
        let entry = entries.into_iter().find(|entry| entry.pair == self.pair)?;
        let known = serde_json::from_value(entry.stats);
        known
            .inspect_err(|error| {
                tracing::warn!(
                    "saved statistics of a pair of models cannot be read and are collected again: {error}"
                )
            })
            .ok()
    }

    /// Replaces the entry.
    ///
    /// # Errors
    /// `Error::Disk`.
    pub fn save(&self, stats: &impl Serialize) -> Result<()> {
        let Ok(stats) = serde_json::to_value(stats) else { return Ok(()) };
        self.file.change(|entries: &mut Vec<Entry>| {
            entries.retain(|entry| entry.pair != self.pair);
            entries.push(Entry { pair: self.pair.clone(), stats });
            entries.drain(..entries.len().saturating_sub(MAX));
        })
    }
}

/// Returns a key for a model that changes with its files.
fn stamp(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let about = |metadata: Metadata| {
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        (metadata.len(), modified.unwrap_or_default().as_secs())
    };
    let files: Vec<(u64, u64)> = match std::fs::read_dir(&path) {
        Ok(folder) => folder.flatten().filter_map(|file| file.path().metadata().ok()).map(about).collect(),
        Err(_) => path.metadata().into_iter().map(about).collect(),
    };
    let bytes: u64 = files.iter().map(|file| file.0).sum();
    let modified = files.iter().map(|file| file.1).max().unwrap_or_default();
    format!("{} {bytes} {modified}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_MODELS: &[&str] = &[];

    fn about(folders: &Folders, model: &Path, device: &str) -> SavedStats {
        SavedStats::about(folders, &[model], &[device])
    }

    #[test]
    fn an_entry_is_found_only_by_the_same_models_and_devices() {
        let folder = tempfile::tempdir().unwrap();
        let folders = Folders::at(folder.path().join("data"));
        let model = folder.path().join("a.gguf");
        std::fs::write(&model, "weights").unwrap();
        let pair = about(&folders, &model, "CPU, 2 threads");
        assert_eq!(pair.load::<u32>(), None);
        pair.save(&7).unwrap();
        assert_eq!(about(&folders, &model, "CPU, 2 threads").load(), Some(7));
        assert_eq!(about(&folders, &model, "CPU, 4 threads").load::<u32>(), None);
        std::fs::write(&model, "others").unwrap();
        assert_eq!(about(&folders, &model, "CPU, 2 threads").load::<u32>(), None, "the file changed");
    }

    #[test]
    fn two_programs_keep_each_others_entries_and_the_oldest_are_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let folders = Folders::at(folder.path());
        let of = |device: &str| SavedStats::about(&folders, NO_MODELS, &[device]);
        let (one, other) = (of("one"), of("other"));
        one.save(&1).unwrap();
        other.save(&2).unwrap();
        assert_eq!((one.load(), other.load()), (Some(1), Some(2)));
        (0..MAX - 1).for_each(|number| of(&number.to_string()).save(&number).unwrap());
        assert_eq!((one.load::<u32>(), other.load()), (None, Some(2)));
    }

    #[test]
    fn a_damaged_foreign_or_enormous_file_counts_as_empty_and_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let pair = SavedStats::about(&Folders::at(folder.path()), NO_MODELS, &["cpu"]);
        let enormous = format!("[{}]", " ".repeat(17 << 20)).into_bytes();
        for contents in [&b"[{\"pair\": \"cp"[..], b"{\"pairs\": 3}", b"\xff\x00", b"", &enormous[..]] {
            std::fs::write(folder.path().join("learned.json"), contents).unwrap();
            assert_eq!(pair.load::<u32>(), None);
            pair.save(&5).unwrap();
            assert_eq!(pair.load(), Some(5));
        }
        pair.save(&"something else").unwrap();
        assert_eq!(pair.load::<u32>(), None);
    }
}
