//! Memory bandwidth at which this computer reads a model's weights. It bounds decoding speed; the
//! measurement also shows how near a pass over one token comes to it.

use std::time::{Duration, Instant};

use foretoken_model::error::Result;
use serde::{Deserialize, Serialize};

use super::{LogitSubset, Model, Want};
use crate::tree::TokenTree;

/// Bytes that a pass reads, and the memory bandwidth for them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bandwidth {
    pub bytes: usize,
    /// Gigabytes (10^9 bytes) per second.
    pub gb_s: f64,
    /// Bandwidth of a pass over one token, as a fraction of `gb_s`.
    pub share: f64,
}

impl Bandwidth {
    /// Measures with the model's own weights, alternating plain reads with passes over one token
    /// after the cached ones: bandwidth depends on where memory lies and on the computer's load.
    /// Takes medians of `rounds` measurements, or of fewer once `within` has passed. Returns `None`
    /// if the weights are on another device.
    ///
    /// # Errors
    /// As [`Model::run`]. The cached tokens stay cached.
    pub fn measure(model: &mut dyn Model, rounds: usize, within: Duration) -> Result<Option<Self>> {
        let (start, cached) = (Instant::now(), model.cached().len());
        let (mut readings, mut passes) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        while readings.len() < rounds && (readings.is_empty() || start.elapsed() < within) {
            let reading = Instant::now();
            bytes = model.read_weights();
            readings.push(milliseconds(reading));
            if bytes == 0 {
                return Ok(None);
            }
            let passing = Instant::now();
            let pass = model.run(&TokenTree::chain([0]), &Want::all_rows().subset(LogitSubset::Peaks))?;
            passes.push(milliseconds(passing));
            drop(pass);
            model.truncate(cached);
        }
        let (Some(reading), Some(pass)) = (median(readings), median(passes)) else { return Ok(None) };
        Ok(Some(Self { bytes, gb_s: bytes as f64 / reading / 1e6, share: reading / pass }))
    }

    /// Estimates tokens per second without drafts for a model that reads `bytes` per token, if its
    /// passes reach the same share of the bandwidth.
    pub fn tokens_per_second(&self, bytes: u64) -> f64 {
        self.gb_s * 1e9 * self.share / bytes.max(1) as f64
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn median(mut times: Vec<f64>) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_per_second_are_inverse_to_the_bytes_of_a_model() {
        let bandwidth = Bandwidth { bytes: 98_000_000, gb_s: 40.0, share: 0.8 };
        assert!((bandwidth.tokens_per_second(1_000_000_000) - 32.0).abs() < 1e-9);
        assert!((bandwidth.tokens_per_second(2_000_000_000) - 16.0).abs() < 1e-9);
        assert!(bandwidth.tokens_per_second(0).is_finite());
    }
}
