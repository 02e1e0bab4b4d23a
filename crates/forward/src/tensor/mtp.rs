//! Input of a multi-token prediction (MTP) block: a matrix fuses the token's embedding and the head
//! input into one state (DeepSeek-AI 2024).

use candle_core::{Result as Computed, Tensor};
use candle_nn::ops::rms_norm;
use foretoken_model::Weights;
use foretoken_model::error::Result;
use foretoken_model::tables::mtp::{EH_PROJ, ENORM, HNORM};

use super::stack::{Arithmetic, Padding, Stack};
use crate::Features;

/// The parts that compute the input of an MTP block.
pub struct Mtp {
    eh_proj: Stack,         // [hidden, 2 * hidden]
    embedding_norm: Tensor, // [hidden]
    state_norm: Tensor,     // [hidden]
}

impl Mtp {
    /// # Errors
    /// Those of [`super::TensorModel::load`].
    pub fn load(weights: &Weights, arithmetic: Arithmetic) -> Result<Self> {
        Ok(Self {
            eh_proj: Stack::new(vec![weights.matrix(EH_PROJ)?], arithmetic, weights.device())?,
            embedding_norm: weights.vector(ENORM)?,
            state_norm: weights.vector(HNORM)?,
        })
    }

    /// Input of the layer, `[nodes, hidden]`, for nodes with these embeddings and `states`.
    pub fn input(
        &self,
        embedding: &Tensor,
        states: Features<'_>,
        epsilon: f32,
        padding: Padding,
    ) -> Computed<Tensor> {
        let shape = (states.len(), states.width());
        let states = Tensor::from_slice(states.numbers(), shape, embedding.device())?;
        let states = rms_norm(&states, &self.state_norm, epsilon)?;
        let embedding = rms_norm(&embedding.contiguous()?, &self.embedding_norm, epsilon)?;
        self.eh_proj.forward(&Tensor::cat(&[&embedding, &states], 1)?, padding)
    }
}
