//! Buffers of multi-head latent attention (MLA) in a pass on the device.

use foretoken_model::error::Result;
use foretoken_model::{Latent as Sizes, ModelConfig};
use wgpu::Buffer;

use super::device::GpuDevice;
use super::state::{ROWS, Rows};
use crate::cpu::simd::LANES;

/// Buffers of a pass, shared by all layers.
#[derive(Debug)]
pub struct LatentState {
    pub sizes: Sizes,
    /// Low-rank queries, and their norms.
    pub low_rank: Option<(Buffer, Rows)>, // [rows, queries in whole vectors]; queries
    pub queries: Buffer, // [rows, heads * (plain + turned) in whole vectors]
    pub latents: Buffer, // [rows, size + turned in whole vectors]
    /// Unrotated parts of queries, one for each row and head.
    pub plain: Rows, // plain
    pub absorbed: Buffer, // [rows, heads, size + turned in whole vectors]
    /// One for each row and head.
    pub mixed: Rows, // size
    pub values: Rows,    // heads * value
    /// Rows at heads, as `slots.wgsl` reads them: the slots of a head are adjacent.
    pub slots: Buffer, // [heads, rows, 3]
}

impl LatentState {
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn new(device: &GpuDevice, config: &ModelConfig, sizes: Sizes) -> Result<Self> {
        let heads = config.heads;
        let numbers = |length: usize| device.buffer(4 * ROWS * length.next_multiple_of(LANES));
        let low_rank = |length| Result::Ok((numbers(length)?, Rows::new(device, ROWS, length)?));
        let width = width(sizes);
        Ok(Self {
            sizes,
            low_rank: sizes.queries.map(low_rank).transpose()?,
            queries: numbers(heads * sizes.query())?,
            latents: numbers(width)?,
            plain: Rows::new(device, heads * ROWS, sizes.plain)?,
            absorbed: device.buffer(4 * ROWS * heads * width)?,
            mixed: Rows::new(device, heads * ROWS, sizes.size)?,
            values: Rows::new(device, ROWS, heads * sizes.value)?,
            slots: device.buffer(12 * heads * ROWS)?,
        })
    }

    /// Uploads the slots of a pass over `rows`.
    pub fn write(&self, device: &GpuDevice, heads: usize, rows: usize) {
        let tile = device.tile_of(rows);
        let slot = |head: usize| {
            move |row: usize| {
                let begins = row.is_multiple_of(tile);
                [row * heads + head, head, if begins { tile.min(rows - row) } else { 0 }]
            }
        };
        let words = (0..heads).flat_map(|head| (0..rows).flat_map(slot(head)));
        device.write(&self.slots, words.map(|word| word as u32));
    }
}

/// Numbers of a cached position, and of a query over latents.
pub fn width(sizes: Sizes) -> usize {
    (sizes.size + sizes.turned).next_multiple_of(LANES)
}
