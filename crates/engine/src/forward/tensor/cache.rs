//! Keys and values of one layer, written by position into memory that is allocated ahead, so that
//! forgetting tokens is free and remembering them copies nothing old.

use candle_core::{DType, Device, Result, Tensor};

/// Positions allocated at first; doubled when full.
const FIRST_CAPACITY: usize = 256;

#[derive(Debug)]
pub struct Cache {
    keys: Tensor,   // [kv_heads, capacity, head_size]
    values: Tensor, // [kv_heads, capacity, head_size]
    limit: usize,
}

impl Cache {
    /// `limit` is the most positions it will ever hold.
    pub fn new(kv_heads: usize, head_size: usize, limit: usize, device: &Device) -> Result<Self> {
        let shape = (kv_heads, FIRST_CAPACITY.min(limit), head_size);
        Ok(Self {
            keys: Tensor::zeros(shape, DType::F32, device)?,
            values: Tensor::zeros(shape, DType::F32, device)?,
            limit,
        })
    }

    /// Writes `keys` and `values` (`[kv_heads, rows, head_size]`) from position `at` on and returns
    /// everything up to and including them.
    pub fn write(&mut self, at: usize, keys: &Tensor, values: &Tensor) -> Result<(Tensor, Tensor)> {
        let length = at + keys.dim(1)?;
        self.grow(length)?;
        self.keys.slice_set(&keys.contiguous()?, 1, at)?;
        self.values.slice_set(&values.contiguous()?, 1, at)?;
        Ok((self.keys.narrow(1, 0, length)?, self.values.narrow(1, 0, length)?))
    }

    /// Moves the rows at `from` (ascending positions) to the positions from `to` on.
    pub fn gather(&mut self, from: &Tensor, to: usize) -> Result<()> {
        for half in [&self.keys, &self.values] {
            half.slice_set(&half.index_select(from, 1)?, 1, to)?;
        }
        Ok(())
    }

    fn grow(&mut self, length: usize) -> Result<()> {
        let (kv_heads, capacity, head_size) = self.keys.dims3()?;
        if length <= capacity {
            return Ok(());
        }
        let shape = (kv_heads, length.next_power_of_two().min(self.limit), head_size);
        for half in [&mut self.keys, &mut self.values] {
            let larger = Tensor::zeros(shape, DType::F32, half.device())?;
            larger.slice_set(half, 1, 0)?;
            *half = larger;
        }
        Ok(())
    }
}
