//! Per-layer embeddings (Gemma 4): an input for every layer beside the residual stream.

use candle_core::{Result as Computed, Tensor};
use candle_nn::ops::rms_norm;
use foretoken_model::error::Result;
use foretoken_model::tables::outer::{PER_LAYER_EMBEDDING, PER_LAYER_NORM, PER_LAYER_PROJECTION};
use foretoken_model::token::TokenId;
use foretoken_model::{ModelConfig, StoredRows, Weights};

use super::origin::Origin;
use super::stack::{Arithmetic, Padding, Stack};

/// Embedding table, which stays in its file, and a projection of the token embedding.
pub struct PerLayerInputs {
    table: StoredRows, // [tokens, layers * width]
    projection: Stack, // [layers * width, hidden]
    norm: Tensor,      // [width]
    width: usize,
}

/// Part of a layer that applies its per-layer input.
pub struct PerLayerInput {
    gate: Stack,       // [width, hidden]
    projection: Stack, // [hidden, width]
    norm: Tensor,      // [hidden]
}

impl PerLayerInputs {
    /// Loads the table; `None` for models without per-layer embeddings.
    ///
    /// # Errors
    /// As [`super::layer::Layer::load`].
    pub fn load(weights: &Weights, config: &ModelConfig, arithmetic: Arithmetic) -> Result<Option<Self>> {
        let Some(width) = config.per_layer_input() else { return Ok(None) };
        Ok(Some(Self {
            table: weights.rows(PER_LAYER_EMBEDDING)?,
            projection: Stack::new(
                vec![weights.matrix(PER_LAYER_PROJECTION)?],
                arithmetic,
                weights.device(),
            )?,
            norm: weights.vector(PER_LAYER_NORM)?,
            width,
        }))
    }

    /// Input of every layer for `tokens`, `[tokens, width]` each; `x` are the tokens' embeddings.
    ///
    /// # Errors
    /// Those of reading the table's file, and of the device.
    pub fn compute(
        &self,
        x: &Tensor,
        tokens: &[TokenId],
        config: &ModelConfig,
        padding: Padding,
    ) -> Result<Vec<Tensor>> {
        let mut table = Vec::new();
        for &token in tokens {
            table.extend(self.table.row(token as usize)?);
        }
        let shape = (tokens.len(), config.depth(), self.width);
        let table = (Tensor::from_vec(table, shape, x.device())? * (self.width as f64).sqrt())?;
        let made = (self.projection.forward(x, padding)? * (1.0 / (config.hidden as f64).sqrt()))?;
        let made = rms_norm(&made.reshape(shape)?.contiguous()?, &self.norm, config.norm_epsilon as f32)?;
        let all = ((made + table)? * std::f64::consts::FRAC_1_SQRT_2)?;
        let of = |layer| all.narrow(1, layer, 1)?.squeeze(1)?.contiguous();
        Ok((0..config.depth()).map(of).collect::<Computed<_>>()?)
    }
}

impl PerLayerInput {
    /// Loads the layer's part; `None` for models without per-layer embeddings.
    ///
    /// # Errors
    /// As [`super::layer::Layer::load`].
    pub fn load(origin: Origin<'_>) -> Result<Option<Self>> {
        if origin.config.layers[origin.index].per_layer_input.is_none() {
            return Ok(None);
        }
        Ok(Some(Self {
            gate: origin.stack(&["inp_gate"])?,
            projection: origin.stack(&["proj"])?,
            norm: origin.vector("post_norm.weight")?,
        }))
    }

    /// Output to add to the state `x`, `[nodes, hidden]`, for the per-layer input `input`, `[nodes,
    /// width]`.
    pub fn forward(
        &self,
        x: &Tensor,
        input: &Tensor,
        config: &ModelConfig,
        padding: Padding,
    ) -> Computed<Tensor> {
        let gated = (self.gate.forward(x, padding)?.gelu()? * input)?;
        rms_norm(&self.projection.forward(&gated, padding)?, &self.norm, config.post_norm_epsilon as f32)
    }
}
