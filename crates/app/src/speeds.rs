//! How fast models write on this computer: as they did when they last replied, else reckoned from how fast it reads
//! weights. Kept in the data folder; measures nothing by itself.

use std::path::Path;

use foretoken_engine::forward::Bandwidth;
use foretoken_engine::trace::Summary;
use foretoken_library::{Folders, Learned};
use serde::{Deserialize, Serialize};

use crate::ipc::ModelSpeed;

/// Replies with fewer tokens say little.
const LEAST_TOKENS: u32 = 16;

/// Fewer bytes may lie in a cache of the processor, and say nothing about memory.
const LEAST_BYTES: usize = 64_000_000;

/// What is kept of how fast models were; see the module.
#[derive(Debug, Clone)]
pub struct Speeds(pub Folders);

/// Tokens per second of the last replies of a model, without drafts and with them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Measured {
    plain: Option<f64>,
    drafted: Option<f64>,
}

impl Speeds {
    /// How fast this computer reads weights, with what computes there called `device`; `None` before that was
    /// measured.
    pub fn reading(&self, device: &str) -> Option<Bandwidth> {
        self.about(None, device).recall()
    }

    /// Whether a reading of so many bytes says anything.
    pub fn tells(bytes: u64) -> bool {
        bytes >= LEAST_BYTES as u64
    }

    /// Keeps a reading, unless a faster one is known: whatever else the computer does makes it slower, and never faster.
    pub fn keep_reading(&self, reading: &Bandwidth, device: &str) {
        if self.reading(device).is_none_or(|known| known.tokens_per_second(1) < reading.tokens_per_second(1))
        {
            keep(&self.about(None, device), reading);
        }
    }

    /// How fast the model at `path`, of which a token reads so many bytes, writes on `device`: measured, else
    /// reckoned; `None` where nothing is known.
    pub fn of(&self, path: &Path, read_bytes: u64, device: &str) -> Option<ModelSpeed> {
        if let Some(Measured { plain, drafted }) = self.about(Some(path), device).recall() {
            return Some(ModelSpeed { plain, drafted, measured: true });
        }
        let reading = self.reading(device).filter(|_| read_bytes > 0)?;
        let plain = Some(reading.tokens_per_second(read_bytes));
        Some(ModelSpeed { plain, drafted: None, measured: false })
    }

    /// Takes note of a reply of the model at `path`, unless it was too short.
    pub fn keep(&self, path: &Path, device: &str, reply: &Summary) {
        let Some(speed) = reply.tokens_per_second.filter(|_| reply.tokens >= LEAST_TOKENS) else { return };
        let about = self.about(Some(path), device);
        let before: Measured = about.recall().unwrap_or_default();
        let now = match reply.drafted {
            0 => Measured { plain: Some(speed), ..before },
            _ => Measured { plain: reply.plain_tokens_per_second.or(before.plain), drafted: Some(speed) },
        };
        keep(&about, &now);
    }

    fn about(&self, model: Option<&Path>, device: &str) -> Learned {
        Learned::speed_of(&self.0, model, device)
    }
}

/// Worth no error.
fn keep(about: &Learned, speed: &impl Serialize) {
    if let Err(error) = about.keep(speed) {
        tracing::warn!("how fast a model was is not kept: {error}");
    }
}

#[cfg(test)]
mod tests {
    use foretoken_engine::trace::Finish;

    use super::*;

    const DEVICE: &str = "CPU, 2 threads";

    fn reply(tokens: u32, drafted: u32, speed: f64, plain: Option<f64>) -> Summary {
        let summary = Summary::of(&[], Finish::Stop, 1, 0, 1.0);
        let tokens_per_second = Some(speed);
        Summary { tokens, drafted, tokens_per_second, plain_tokens_per_second: plain, ..summary }
    }

    fn fixture() -> (tempfile::TempDir, Speeds, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("a.gguf");
        std::fs::write(&model, "weights").unwrap();
        let speeds = Speeds(Folders::at(folder.path().join("data")));
        (folder, speeds, model)
    }

    #[test]
    fn a_model_that_has_replied_is_as_fast_as_it_was_and_others_are_reckoned() {
        let (_folder, speeds, model) = fixture();
        let of = |device| speeds.of(&model, 2_000_000_000, device);
        assert_eq!(of(DEVICE), None);
        speeds.keep_reading(&Bandwidth { bytes: 98_000_000, gb_s: 50.0, share: 0.8 }, DEVICE);
        assert_eq!(of(DEVICE), Some(ModelSpeed { plain: Some(20.0), drafted: None, measured: false }));
        assert_eq!(speeds.of(&model, 0, DEVICE), None, "one that could not be looked into");
        speeds.keep(&model, DEVICE, &reply(100, 40, 33.0, Some(22.0)));
        let measured = |plain, drafted| Some(ModelSpeed { plain: Some(plain), drafted, measured: true });
        assert_eq!(of(DEVICE), measured(22.0, Some(33.0)));
        assert_eq!(of("CPU, 4 threads"), None, "another device is another speed");
        speeds.keep(&model, DEVICE, &reply(100, 0, 21.0, None));
        assert_eq!(of(DEVICE), measured(21.0, Some(33.0)), "what was drafted before still holds");
    }

    #[test]
    fn a_reply_of_a_few_tokens_says_nothing() {
        let (_folder, speeds, model) = fixture();
        speeds.keep(&model, DEVICE, &reply(LEAST_TOKENS - 1, 4, 90.0, Some(20.0)));
        assert_eq!(speeds.of(&model, 0, DEVICE), None);
    }

    #[test]
    fn weights_that_fit_into_a_cache_are_no_measure_of_memory_and_the_fastest_reading_is_kept() {
        let (_folder, speeds, _) = fixture();
        assert!(!Speeds::tells(9_000_000));
        assert!(Speeds::tells(98_000_000));
        for gb_s in [2.0, 50.0, 49.0] {
            speeds.keep_reading(&Bandwidth { bytes: 98_000_000, gb_s, share: 0.8 }, DEVICE);
        }
        assert_eq!(speeds.reading(DEVICE).map(|reading| reading.gb_s), Some(50.0));
    }
}
