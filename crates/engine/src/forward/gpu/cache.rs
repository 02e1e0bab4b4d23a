//! Keys and values of one layer on the device, in half precision and in pages of positions behind each other, so that
//! growing copies them once and moves nothing within.

use wgpu::Buffer;

use super::device::GpuDevice;
use crate::error::Result;

/// Positions of a page.
pub const PAGE: usize = 256;

/// Of one layer. Two numbers of a position share a word, so that no two positions do.
#[derive(Debug)]
pub struct Cache {
    /// Bytes of a position, of its keys and as many of its values.
    width: usize,
    positions: usize,
    pub keys: Buffer,   // [pages, kv_heads, PAGE / 16, head_size / 2, 16] words
    pub values: Buffer, // [pages, kv_heads, PAGE, head_size / 2] words
}

impl Cache {
    /// With one page.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn new(device: &GpuDevice, kv_heads: usize, head_size: usize) -> Result<Self> {
        let width = 2 * kv_heads * head_size;
        let buffer = || device.buffer(PAGE * width);
        Ok(Self { width, positions: PAGE, keys: buffer()?, values: buffer()? })
    }

    /// Positions there is room for.
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// Makes room for `positions`, and for half as many again as there were if the device has that. Returns whether buffers changed.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room; what is cached stays.
    pub fn reserve(&mut self, device: &GpuDevice, positions: usize) -> Result<bool> {
        if positions <= self.positions {
            return Ok(false);
        }
        let buffers = |positions: usize| -> Result<_> {
            Ok((positions, device.buffer(positions * self.width)?, device.buffer(positions * self.width)?))
        };
        let [least, grown] =
            [positions, positions.max(self.positions + self.positions / 2)].map(|n| n.next_multiple_of(PAGE));
        let (grown, keys, values) = buffers(grown).or_else(|_| buffers(least))?;
        let mut encoder = device.raw().create_command_encoder(&Default::default());
        let bytes = (self.positions * self.width) as u64;
        encoder.copy_buffer_to_buffer(&self.keys, 0, &keys, 0, bytes);
        encoder.copy_buffer_to_buffer(&self.values, 0, &values, 0, bytes);
        device.submit(encoder, 0);
        (self.keys, self.values, self.positions) = (keys, values, grown);
        Ok(true)
    }
}
