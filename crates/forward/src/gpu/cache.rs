//! KV cache of one layer on the device, in half precision. It consists of pages of positions, so
//! growing copies it once and moves nothing within a page.

use foretoken_model::error::Result;
use wgpu::Buffer;

use super::device::GpuDevice;

/// Positions per page.
pub const PAGE: usize = 256;

/// Keys and values of one layer. Two numbers of the same position share a word; numbers of
/// different positions never do.
#[derive(Debug)]
pub struct Cache {
    /// Bytes of a position's keys; its values take as many.
    width: usize,
    positions: usize,
    pub keys: Buffer,   // [pages, kv_heads, PAGE / 16, head_size / 2, 16] words
    pub values: Buffer, // [pages, kv_heads, PAGE, head_size / 2] words
}

impl Cache {
    /// Allocates one page.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn new(device: &GpuDevice, kv_heads: usize, head_size: usize) -> Result<Self> {
        let width = 2 * kv_heads * head_size;
        let buffer = || device.buffer(PAGE * width);
        Ok(Self { width, positions: PAGE, keys: buffer()?, values: buffer()? })
    }

    /// Capacity in positions.
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// Makes room for `positions`. Grows by half if the device has the memory, else only as far as
    /// needed. Returns whether the buffers changed.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room; cached entries stay.
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
