//! Dynamic causal convolution over a block's rows, before and after attention and the feed-forward
//! network (DFlash 2).

use candle_core::{Result as Computed, Tensor};
use foretoken_model::Convolution as Sizes;
use foretoken_model::error::Result;

use super::origin::Origin;
use super::stack::{Padding, Stack};

pub struct Convolution {
    sizes: Sizes,
    base: Tensor,      // [2, taps, hidden]
    projection: Stack, // [2 * taps * hidden / group, hidden]
}

/// Dynamic weights for both sides of a block's rows: `[rows, 2, taps, hidden / group]`.
pub struct Dynamic(Tensor);

impl Convolution {
    /// Loads the convolution around attention (`attn`) or the feed-forward network (`ffn`) of a
    /// layer.
    ///
    /// # Errors
    /// Those of [`super::layer::Layer::load`].
    pub fn load(origin: Origin<'_>, part: &str, sizes: Sizes) -> Result<Self> {
        let base = origin.vector(&format!("{part}_conv_base"))?;
        let projection = origin.stack(&[&format!("{part}_conv_proj")])?;
        Ok(Self { sizes, base: base.reshape((2, sizes.taps, origin.config.hidden))?, projection })
    }

    /// Convolves rows `[rows, hidden]` before the part. [`Self::finish`] needs the dynamic weights.
    pub fn begin(&self, x: &Tensor, padding: Padding) -> Computed<(Tensor, Dynamic)> {
        let (rows, hidden) = x.dims2()?;
        let groups = hidden / self.sizes.group;
        let dynamic = self.projection.forward(x, padding)?.reshape((rows, 2, self.sizes.taps, groups))?;
        let dynamic = Dynamic(dynamic);
        Ok((self.convolve(x, &dynamic, 0)?, dynamic))
    }

    /// Convolves rows `[rows, hidden]` after the part.
    pub fn finish(&self, x: &Tensor, dynamic: &Dynamic) -> Computed<Tensor> {
        self.convolve(x, dynamic, 1)
    }

    /// Sum over taps t of `(base[t] + dynamic[t]) * x(row - t)`; rows before the first are 0.
    fn convolve(&self, x: &Tensor, Dynamic(dynamic): &Dynamic, side: usize) -> Computed<Tensor> {
        let (rows, hidden) = x.dims2()?;
        let (group, groups) = (self.sizes.group, hidden / self.sizes.group);
        let mut sum = x.zeros_like()?;
        for tap in 0..self.sizes.taps.min(rows) {
            let dynamic = dynamic.narrow(1, side, 1)?.narrow(2, tap, 1)?.reshape((rows, groups, 1))?;
            let dynamic = dynamic.broadcast_as((rows, groups, group))?.reshape((rows, hidden))?;
            let base = self.base.narrow(0, side, 1)?.narrow(1, tap, 1)?.reshape((1, hidden))?;
            let shifted = x.narrow(0, 0, rows - tap)?.pad_with_zeros(0, tap, 0)?;
            sum = (sum + (dynamic.broadcast_add(&base)? * shifted)?)?;
        }
        Ok(sum)
    }
}
