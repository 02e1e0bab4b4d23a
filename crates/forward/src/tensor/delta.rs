//! Gated DeltaNet (Yang et al. 2025): keys, values, decays and gates of convolved rows.

use candle_core::{D, Result, Tensor};
use candle_nn::ops::{rms_norm, sigmoid, silu};
use foretoken_model::Heads;
use foretoken_model::error::Result as Loaded;

use super::origin::Origin;
use super::row::{Added, Row, softplus};
use super::stack::{Padding, Stack};

/// Added to the squared length of keys and queries before the square root, for L2 normalisation.
const EPSILON: f64 = 1e-6;

pub struct Delta {
    gate: Stack,       // [values * value_size, hidden]
    rates: Stack,      // [2 * values, hidden]
    bias: Tensor,      // [values]
    decay: Tensor,     // [values]
    norm: Tensor,      // [value_size]
    key_heads: Tensor, // [values], key head of each value head
}

impl Delta {
    pub fn load(origin: Origin<'_>, heads: &Heads) -> Loaded<Self> {
        let key_heads: Vec<u32> = (0..heads.values).map(|head| heads.key_of(head) as u32).collect();
        Ok(Self {
            gate: origin.stack(&["attn_gate"])?,
            rates: origin.stack(&["ssm_beta", "ssm_alpha"])?,
            bias: origin.vector("ssm_dt.bias")?,
            decay: origin.vector("ssm_a")?,
            norm: origin.vector("ssm_norm.weight")?,
            key_heads: Tensor::new(key_heads, origin.weights.device())?,
        })
    }

    /// Rows of the layer's inputs `[nodes, hidden]` and of their convolution.
    pub fn rows(&self, x: &Tensor, convolved: &Tensor, heads: &Heads, padding: Padding) -> Result<Vec<Row>> {
        let (nodes, width, values) = (x.dim(0)?, heads.key_width(), heads.values);
        let of_keys = |first: usize| -> Result<Tensor> {
            let all = convolved.narrow(1, first, width)?.reshape((nodes, heads.keys, heads.key_size))?;
            let length = (all.sqr()?.sum_keepdim(D::Minus1)? + EPSILON)?.sqrt()?;
            all.broadcast_div(&length)?.index_select(&self.key_heads, 1)
        };
        let queries = (of_keys(0)? / (heads.key_size as f64).sqrt())?;
        let keys = of_keys(width)?;
        let all_values = convolved.narrow(1, 2 * width, heads.value_width())?;
        let rates = self.rates.forward(x, padding)?;
        let betas = sigmoid(&rates.narrow(1, 0, values)?)?;
        let steps = softplus(&rates.narrow(1, values, values)?.broadcast_add(&self.bias)?)?;
        let decays = steps.broadcast_mul(&self.decay)?.exp()?;
        let row = |row: usize| -> Result<Row> {
            let of = |all: &Tensor, shape: (usize, usize, usize)| all.narrow(0, row, 1)?.reshape(shape);
            Ok(Row {
                query: of(&queries, (values, heads.key_size, 1))?,
                key: of(&keys, (values, heads.key_size, 1))?,
                decay: of(&decays, (values, 1, 1))?,
                added: Added::Correction {
                    value: of(&all_values, (values, 1, heads.value_size))?,
                    beta: of(&betas, (values, 1, 1))?,
                },
            })
        };
        (0..nodes).map(row).collect()
    }

    /// Norms the matrices' outputs `read`, `[nodes, values, value_size]`, and applies the gate.
    pub fn gated(&self, x: &Tensor, read: &Tensor, epsilon: f32, padding: Padding) -> Result<Tensor> {
        let (nodes, values, size) = read.dims3()?;
        let normed = rms_norm(&read.contiguous()?, &self.norm, epsilon)?.reshape((nodes, values * size))?;
        normed * silu(&self.gate.forward(x, padding)?)?
    }
}
