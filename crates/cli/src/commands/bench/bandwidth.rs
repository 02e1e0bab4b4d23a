//! How fast this computer reads a model's weights: the bound on how fast the model can write.

use std::time::Instant;

use foretoken_engine::forward::Model;

const PASSES: usize = 10;

/// What a pass reads, and how fast memory gives it.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    pub bytes: usize,
    /// Gigabytes (10^9 bytes) per second in the best pass, as the bound is what the memory can do and not
    /// what it does at a bad moment.
    pub gb_s: f64,
}

/// Reads the very weights, where they lie: how fast memory is can depend on the place. `None` when they
/// are on another device.
pub fn read(model: &dyn Model) -> Option<Reading> {
    let pass = |_| {
        let start = Instant::now();
        let bytes = model.read_weights();
        Reading { bytes, gb_s: bytes as f64 / start.elapsed().as_secs_f64() / 1e9 }
    };
    let best = (0..PASSES).map(pass).max_by(|a, b| a.gb_s.total_cmp(&b.gb_s));
    best.filter(|reading| reading.bytes > 0)
}
