//! How fast this computer reads a model's weights: the bound on how fast the model can write.

use std::time::Instant;

use foretoken_engine::decoder::Request;
use foretoken_engine::forward::Model;

use super::cost::{fill, milliseconds, one_row};
use super::numbers::median;
use crate::error::Result;

const PASSES: usize = 15;

/// What a pass reads, and how fast memory gives it.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    pub bytes: usize,
    /// Gigabytes (10^9 bytes) per second.
    pub gb_s: f64,
    /// How fast a pass over one row reads them, against that.
    pub share: f64,
}

/// Reads the very weights, where they lie, in turns with passes over one row: how fast memory is can depend
/// on the place, and changes with what else the computer does. `None` when they are on another device.
pub fn read(model: &mut dyn Model, requests: &[Request]) -> Result<Option<Reading>> {
    fill(model, requests)?;
    let (mut reading, mut passing) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    for _ in 0..PASSES {
        let start = Instant::now();
        bytes = model.read_weights();
        reading.push(milliseconds(start));
        passing.push(one_row(model)?);
    }
    let times = median(reading).zip(median(passing)).filter(|_| bytes > 0);
    Ok(times.map(|(reading, pass)| Reading {
        bytes,
        gb_s: bytes as f64 / reading / 1e6,
        share: reading / pass,
    }))
}
