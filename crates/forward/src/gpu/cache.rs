//! KV cache of one layer on the device, in half precision. It consists of pages of positions, so
//! growing copies it once and moves nothing within a page.

use foretoken_model::error::Result;
use wgpu::Buffer;

use super::device::GpuDevice;
use crate::cpu::simd::LANES;

/// Bytes of a buffer that is unused.
const UNUSED: usize = 16;

/// Positions per page.
pub const PAGE: usize = 256;

/// Keys and values of one layer. Two numbers of the same position share a word; numbers of
/// different positions never do.
#[derive(Debug)]
pub struct Cache {
    /// Bytes of a position's keys, and of its values.
    widths: [usize; 2],
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
        Ok(Self { widths: [width; 2], positions: PAGE, keys: buffer()?, values: buffer()? })
    }

    /// Allocates one page of rows of `length` numbers, padded to whole vectors, which are keys and
    /// values. The buffer of keys is unused.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn of_rows(device: &GpuDevice, length: usize) -> Result<Self> {
        let width = 2 * length.next_multiple_of(LANES);
        let [keys, values] = [device.buffer(UNUSED)?, device.buffer(PAGE * width)?];
        Ok(Self { widths: [0, width], positions: PAGE, keys, values })
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
            let [keys, values] = self.widths.map(|width| device.buffer((positions * width).max(UNUSED)));
            Ok((positions, keys?, values?))
        };
        let [least, grown] =
            [positions, positions.max(self.positions + self.positions / 2)].map(|n| n.next_multiple_of(PAGE));
        let (grown, keys, values) = buffers(grown).or_else(|_| buffers(least))?;
        let mut encoder = device.raw().create_command_encoder(&Default::default());
        let buffers = [(&self.keys, &keys), (&self.values, &values)];
        for ((from, to), width) in buffers.into_iter().zip(self.widths).filter(|(_, width)| *width > 0) {
            encoder.copy_buffer_to_buffer(from, 0, to, 0, (self.positions * width) as u64);
        }
        device.submit(encoder, 0);
        (self.keys, self.values, self.positions) = (keys, values, grown);
        Ok(true)
    }
}
