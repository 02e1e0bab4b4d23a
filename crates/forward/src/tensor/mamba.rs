//! Mamba-2 (Dao and Gu 2024): keys, values, decays and gates of convolved rows.

use candle_core::{Result, Tensor};
use candle_nn::ops::{rms_norm, silu};
use foretoken_model::Recurrence;
use foretoken_model::error::Result as Loaded;

use super::origin::Origin;
use super::row::{Added, Row, softplus};
use super::stack::{Padding, Stack};

pub struct Mamba {
    recurrence: Recurrence,
    gate: Stack,       // [values * value_size, hidden]
    steps: Stack,      // [values, hidden]
    bias: Tensor,      // [values]
    decay: Tensor,     // [values]
    skip: Tensor,      // [values, 1]
    norm: Tensor,      // [values * value_size]
    key_heads: Tensor, // [values], key head of each value head
}

impl Mamba {
    /// # Errors
    /// Those of [`super::layer::Layer::load`].
    pub fn load(origin: Origin<'_>, recurrence: &Recurrence) -> Loaded<Self> {
        let key_heads: Vec<u32> =
            (0..recurrence.heads.values).map(|head| recurrence.heads.key_of(head) as u32).collect();
        Ok(Self {
            gate: origin.stack(&["ssm_gate"])?,
            steps: origin.stack(&["ssm_steps"])?,
            bias: origin.vector("ssm_dt.bias")?,
            decay: origin.vector("ssm_a")?,
            skip: origin.vector("ssm_d")?.unsqueeze(1)?,
            norm: origin.vector("ssm_norm.weight")?,
            key_heads: Tensor::new(key_heads, origin.weights.device())?,
            recurrence: recurrence.clone(),
        })
    }

    /// Rows of the layer's inputs `[nodes, hidden]` and of their convolution.
    pub fn rows(&self, x: &Tensor, convolved: &Tensor, padding: Padding) -> Result<Vec<Row>> {
        let (nodes, heads) = (x.dim(0)?, &self.recurrence.heads);
        let of_keys = |first: usize| -> Result<Tensor> {
            let all = convolved.narrow(1, first, heads.key_width())?;
            all.reshape((nodes, heads.keys, heads.key_size))?.index_select(&self.key_heads, 1)
        };
        let (keys, queries) = (of_keys(self.recurrence.keys())?, of_keys(self.recurrence.queries())?);
        let [min, max] = self.recurrence.steps;
        let steps = softplus(&self.steps.forward(x, padding)?.broadcast_add(&self.bias)?)?;
        let steps = steps.clamp(min, max)?;
        let decays = steps.broadcast_mul(&self.decay)?.exp()?;
        let added = self.values(convolved)?.broadcast_mul(&steps.unsqueeze(2)?)?;
        let row = |row: usize| -> Result<Row> {
            let of = |all: &Tensor, shape: (usize, usize, usize)| all.narrow(0, row, 1)?.reshape(shape);
            Ok(Row {
                query: of(&queries, (heads.values, heads.key_size, 1))?,
                key: of(&keys, (heads.values, heads.key_size, 1))?,
                decay: of(&decays, (heads.values, 1, 1))?,
                added: Added::Value(of(&added, (heads.values, 1, heads.value_size))?),
            })
        };
        (0..nodes).map(row).collect()
    }

    /// Added the skip connection to the matrices' outputs `read`, `[nodes, values, value_size]`,
    /// applies the gate, and norms all value heads of a key head together.
    pub fn gated(
        &self,
        x: &Tensor,
        read: &Tensor,
        convolved: &Tensor,
        epsilon: f32,
        padding: Padding,
    ) -> Result<Tensor> {
        let (nodes, heads) = (x.dim(0)?, &self.recurrence.heads);
        let (width, group) = (heads.value_width(), heads.value_width() / heads.keys);
        let whole = (read + self.values(convolved)?.broadcast_mul(&self.skip)?)?.reshape((nodes, width))?;
        let gated = (whole * silu(&self.gate.forward(x, padding)?)?)?;
        let gated = gated.reshape((nodes * heads.keys, group))?.contiguous()?;
        let ones = self.norm.ones_like()?.narrow(0, 0, group)?;
        rms_norm(&gated, &ones, epsilon)?.reshape((nodes, width))?.broadcast_mul(&self.norm)
    }

    /// Values, `[nodes, values, value_size]`.
    fn values(&self, convolved: &Tensor) -> Result<Tensor> {
        let heads = &self.recurrence.heads;
        let values = convolved.narrow(1, self.recurrence.values(), heads.value_width())?;
        values.reshape((convolved.dim(0)?, heads.values, heads.value_size))
    }
}
