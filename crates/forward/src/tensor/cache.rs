//! KV cache of one layer. Keys and values are written by position into memory that is allocated
//! ahead, so rewinding is free and appending copies no old entries. After a long rewind, the next
//! write shrinks the memory.

use candle_core::{DType, Device, Result, Tensor};

/// Initial capacity in positions; doubled when full.
const FIRST_CAPACITY: usize = 256;

/// Factor by which a cache may exceed its need before it shrinks.
const SHRINK_FACTOR: usize = 4;

#[derive(Debug)]
pub struct Cache {
    keys: Tensor,   // [kv_heads, capacity, head_size]
    values: Tensor, // [kv_heads, capacity, head_size], or another head size
    limit: usize,
}

impl Cache {
    /// Creates an empty cache that will never hold more than `limit` positions.
    pub fn new(kv_heads: usize, head_size: usize, limit: usize, device: &Device) -> Result<Self> {
        Self::with_head_sizes(kv_heads, [head_size; 2], limit, device)
    }

    /// Creates a cache whose keys and values differ in size.
    pub fn with_head_sizes(
        kv_heads: usize,
        [key, value]: [usize; 2],
        limit: usize,
        device: &Device,
    ) -> Result<Self> {
        let zeros = |size| Tensor::zeros((kv_heads, FIRST_CAPACITY.min(limit), size), DType::F32, device);
        Ok(Self { keys: zeros(key)?, values: zeros(value)?, limit })
    }

    /// Writes `keys` and `values` (`[kv_heads, rows, head_size]`) from position `at` on. Returns
    /// all entries up to and including them.
    pub fn write(&mut self, at: usize, keys: &Tensor, values: &Tensor) -> Result<(Tensor, Tensor)> {
        let length = at + keys.dim(1)?;
        self.fit(length, at)?;
        self.keys.slice_set(&keys.contiguous()?, 1, at)?;
        self.values.slice_set(&values.contiguous()?, 1, at)?;
        self.read(0, length)
    }

    pub fn device(&self) -> &Device {
        self.keys.device()
    }

    /// Entries of `positions` positions from `from` on, `[kv_heads, positions, head_size]` each.
    pub fn read(&self, from: usize, positions: usize) -> Result<(Tensor, Tensor)> {
        Ok((self.keys.narrow(1, from, positions)?, self.values.narrow(1, from, positions)?))
    }

    /// Moves rows at `from` (ascending positions) to the positions from `to` on.
    pub fn gather(&mut self, from: &Tensor, to: usize) -> Result<()> {
        for half in [&self.keys, &self.values] {
            half.slice_set(&half.index_select(from, 1)?, 1, to)?;
        }
        Ok(())
    }

    /// Grows or shrinks the memory to fit `length` positions. The first `filled` entries are kept.
    fn fit(&mut self, length: usize, filled: usize) -> Result<()> {
        let (kv_heads, capacity, _) = self.keys.dims3()?;
        let wanted = length.next_power_of_two().max(FIRST_CAPACITY).min(self.limit);
        if length <= capacity && capacity < wanted * SHRINK_FACTOR {
            return Ok(());
        }
        for half in [&mut self.keys, &mut self.values] {
            let resized = Tensor::zeros((kv_heads, wanted, half.dim(2)?), DType::F32, half.device())?;
            if filled > 0 {
                resized.slice_set(&half.narrow(1, 0, filled)?.contiguous()?, 1, 0)?;
            }
            *half = resized;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_with_the_text_and_shrinks_without_losing_entries() -> Result<()> {
        let device = Device::Cpu;
        let mut cache = Cache::new(2, 4, 10_000, &device)?;
        let rows = |from: usize, count: usize| {
            let numbers = (0..2 * count * 4).map(|n| (from * 1000 + n) as f32).collect::<Vec<_>>();
            Tensor::from_vec(numbers, (2, count, 4), &device)
        };
        let (first, many) = (rows(0, 200)?, rows(200, 4000)?);
        cache.write(0, &first, &first)?;
        cache.write(200, &many, &many)?;
        assert_eq!(cache.keys.dim(1)?, 8192);
        let one = rows(7, 1)?;
        let (keys, values) = cache.write(150, &one, &one)?;
        assert_eq!((cache.keys.dim(1)?, keys.dim(1)?), (256, 151));
        for kept in [keys, values] {
            let expected = Tensor::cat(&[&first.narrow(1, 0, 150)?, &one], 1)?;
            assert_eq!(kept.flatten_all()?.to_vec1::<f32>()?, expected.flatten_all()?.to_vec1::<f32>()?);
        }
        Ok(())
    }
}
