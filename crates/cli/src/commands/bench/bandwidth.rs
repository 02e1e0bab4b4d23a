//! Bandwidth at which this computer reads a model's weights, the upper bound of plain decoding.

use std::time::Duration;

use foretoken_engine::decoder::Request;
use foretoken_forward::{Bandwidth, Model};

use super::cost::fill_with_text;
use crate::error::Result;

const TURNS: usize = 15;

/// Measures with text in the cache; `None` if the weights are on another device.
pub fn read(model: &mut dyn Model, requests: &[Request]) -> Result<Option<Bandwidth>> {
    fill_with_text(model, requests)?;
    Ok(Bandwidth::measure(model, TURNS, Duration::MAX)?)
}
