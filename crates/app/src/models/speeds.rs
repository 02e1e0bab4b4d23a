//! Speeds of models on this computer: measured in their last replies, else estimated from the
//! memory bandwidth. Stored in the data folder; measures nothing itself.

use std::path::Path;

use foretoken_engine::trace::Summary;
use foretoken_forward::Bandwidth;
use foretoken_library::{Folders, SavedStats};
use serde::{Deserialize, Serialize};

use crate::ipc::ModelSpeed;

/// Fewest tokens of a reply that counts.
const MIN_TOKENS: u32 = 16;

/// Least bytes of a bandwidth measurement: fewer may be in the processor's cache.
const MIN_BYTES: usize = 64_000_000;

/// Stored speeds; see the module.
#[derive(Debug, Clone)]
pub struct Speeds(pub Folders);

/// Tokens per second of a model: in its last replies without drafts and with them, and of its last
/// long prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Measured {
    plain: Option<f64>,
    drafted: Option<f64>,
    #[serde(default)]
    reading: Option<f64>,
}

impl Speeds {
    /// Returns the memory bandwidth of `device`; `None` before it was measured.
    pub fn bandwidth(&self, device: &str) -> Option<Bandwidth> {
        self.about(None, device).load()
    }

    /// Returns whether a measurement of `bytes` bytes is meaningful.
    pub fn is_significant(bytes: u64) -> bool {
        bytes >= MIN_BYTES as u64
    }

    /// Stores a bandwidth, unless a higher one is known: other load only makes a measurement
    /// slower.
    pub fn keep_bandwidth(&self, bandwidth: &Bandwidth, device: &str) {
        if self
            .bandwidth(device)
            .is_none_or(|known| known.tokens_per_second(1) < bandwidth.tokens_per_second(1))
        {
            keep(&self.about(None, device), bandwidth);
        }
    }

    /// Returns the speed of the model at `path`, of which a token reads `read_bytes`, on `device`:
    /// measured, else estimated; `None` if unknown.
    pub fn of(&self, path: &Path, read_bytes: u64, device: &str) -> Option<ModelSpeed> {
        let Measured { plain, drafted, .. } = self.measured(path, device);
        if plain.or(drafted).is_some() {
            return Some(ModelSpeed { plain, drafted, measured: true });
        }
        let bandwidth = self.bandwidth(device).filter(|_| read_bytes > 0)?;
        let plain = Some(bandwidth.tokens_per_second(read_bytes));
        Some(ModelSpeed { plain, drafted: None, measured: false })
    }

    /// Records a reply of the model at `path`, unless it was too short.
    pub fn keep(&self, path: &Path, device: &str, reply: &Summary) {
        let Some(speed) = reply.tokens_per_second.filter(|_| reply.tokens >= MIN_TOKENS) else { return };
        let before = self.measured(path, device);
        let now = match reply.drafted {
            0 => Measured { plain: Some(speed), ..before },
            _ => {
                let plain = reply.plain_tokens_per_second.or(before.plain);
                Measured { plain, drafted: Some(speed), ..before }
            }
        };
        keep(&self.about(Some(path), device), &now);
    }

    /// Returns the tokens per second at which the model at `path` read its last long prompt on
    /// `device`; `None` before one.
    pub fn reading(&self, path: &Path, device: &str) -> Option<f64> {
        self.measured(path, device).reading
    }

    /// Records the tokens per second at which the model at `path` read a long prompt.
    pub fn keep_reading(&self, path: &Path, device: &str, rate: f64) {
        let before = self.measured(path, device);
        if before.reading != Some(rate) {
            keep(&self.about(Some(path), device), &Measured { reading: Some(rate), ..before });
        }
    }

    fn measured(&self, path: &Path, device: &str) -> Measured {
        self.about(Some(path), device).load().unwrap_or_default()
    }

    fn about(&self, model: Option<&Path>, device: &str) -> SavedStats {
        SavedStats::speed_of(&self.0, model, device)
    }
}

/// Stores a value; a failure is only logged.
fn keep(about: &SavedStats, speed: &impl Serialize) {
    if let Err(error) = about.save(speed) {
        tracing::warn!("the speed of a model could not be stored: {error}");
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
    fn a_model_that_has_replied_has_its_measured_speed_and_others_an_estimate() {
        let (_folder, speeds, model) = fixture();
        let of = |device| speeds.of(&model, 2_000_000_000, device);
        assert_eq!(of(DEVICE), None);
        speeds.keep_bandwidth(&Bandwidth { bytes: 98_000_000, gb_s: 50.0, share: 0.8 }, DEVICE);
        assert_eq!(of(DEVICE), Some(ModelSpeed { plain: Some(20.0), drafted: None, measured: false }));
        assert_eq!(speeds.of(&model, 0, DEVICE), None, "a model that could not be read");
        speeds.keep(&model, DEVICE, &reply(100, 40, 33.0, Some(22.0)));
        let measured = |plain, drafted| Some(ModelSpeed { plain: Some(plain), drafted, measured: true });
        assert_eq!(of(DEVICE), measured(22.0, Some(33.0)));
        assert_eq!(of("CPU, 4 threads"), None, "each device has its own speed");
        speeds.keep(&model, DEVICE, &reply(100, 0, 21.0, None));
        assert_eq!(of(DEVICE), measured(21.0, Some(33.0)), "the drafted speed stays");
    }

    #[test]
    fn the_speed_of_reading_is_kept_beside_that_of_replies() {
        let (_folder, speeds, model) = fixture();
        assert_eq!(speeds.reading(&model, DEVICE), None);
        speeds.keep_reading(&model, DEVICE, 340.0);
        assert_eq!(speeds.of(&model, 0, DEVICE), None, "it is no speed of replies");
        speeds.keep(&model, DEVICE, &reply(100, 0, 21.0, None));
        speeds.keep_reading(&model, DEVICE, 360.0);
        assert_eq!(speeds.reading(&model, DEVICE), Some(360.0));
        assert_eq!(speeds.of(&model, 0, DEVICE).unwrap().plain, Some(21.0));
    }

    #[test]
    fn a_short_reply_does_not_count() {
        let (_folder, speeds, model) = fixture();
        speeds.keep(&model, DEVICE, &reply(MIN_TOKENS - 1, 4, 90.0, Some(20.0)));
        assert_eq!(speeds.of(&model, 0, DEVICE), None);
    }

    #[test]
    fn cached_weights_do_not_count_and_the_highest_bandwidth_is_kept() {
        let (_folder, speeds, _) = fixture();
        assert!(!Speeds::is_significant(9_000_000));
        assert!(Speeds::is_significant(98_000_000));
        for gb_s in [2.0, 50.0, 49.0] {
            speeds.keep_bandwidth(&Bandwidth { bytes: 98_000_000, gb_s, share: 0.8 }, DEVICE);
        }
        assert_eq!(speeds.bandwidth(DEVICE).map(|bandwidth| bandwidth.gb_s), Some(50.0));
    }
}
