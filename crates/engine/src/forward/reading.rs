//! How fast this computer reads a model's weights, which bounds how fast any model can write, and how near a
//! pass over one token comes to that bound.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Interest, Model, Want};
use crate::error::Result;
use crate::tree::TokenTree;

/// What a pass reads, and how fast memory gives it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    pub bytes: usize,
    /// Gigabytes (10^9 bytes) per second.
    pub gb_s: f64,
    /// How fast a pass over one token reads them, against that.
    pub share: f64,
}

impl Reading {
    /// Reads the very weights, where they lie, in turns with passes over one token after what is cached: how fast
    /// memory is can depend on the place, and changes with what else the computer does. Medians of so many
    /// `turns`, of fewer where those take longer than `within`. `None` when the weights are on another device.
    ///
    /// # Errors
    /// Those of [`Model::run`]. What was cached stays cached.
    pub fn measure(model: &mut dyn Model, turns: usize, within: Duration) -> Result<Option<Self>> {
        let (start, cached) = (Instant::now(), model.cached().len());
        let (mut readings, mut passes) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        while readings.len() < turns && (readings.is_empty() || start.elapsed() < within) {
            let reading = Instant::now();
            bytes = model.read_weights();
            readings.push(milliseconds(reading));
            if bytes == 0 {
                return Ok(None);
            }
            let passing = Instant::now();
            let pass = model.run(&TokenTree::chain([0]), &Want::all_rows().interest(Interest::Peaks))?;
            passes.push(milliseconds(passing));
            drop(pass);
            model.truncate(cached);
        }
        let (Some(reading), Some(pass)) = (median(readings), median(passes)) else { return Ok(None) };
        Ok(Some(Self { bytes, gb_s: bytes as f64 / reading / 1e6, share: reading / pass }))
    }

    /// Tokens per second that a model writes without drafts which reads so many `bytes` for a token, if its passes
    /// come as near to the bound.
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
    fn what_takes_twice_the_bytes_is_written_half_as_fast() {
        let reading = Reading { bytes: 98_000_000, gb_s: 40.0, share: 0.8 };
        assert!((reading.tokens_per_second(1_000_000_000) - 32.0).abs() < 1e-9);
        assert!((reading.tokens_per_second(2_000_000_000) - 16.0).abs() < 1e-9);
        assert!(reading.tokens_per_second(0).is_finite());
    }
}
