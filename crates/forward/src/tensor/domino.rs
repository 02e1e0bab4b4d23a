//! Domino's correction of a block's scores: a GRU over the block's tokens, and the factor of a
//! low-rank bias from its state.

use std::sync::Arc;

use candle_core::quantized::QTensor;
use candle_core::{Result as Computed, Tensor};
use candle_nn::ops::{sigmoid, silu};
use foretoken_model::error::Result;
use foretoken_model::tables::block_head::{DOMINO_AFTER, DOMINO_BEFORE, GRU_INPUT, GRU_STATE};
use foretoken_model::{Domino as Sizes, Weights};

use super::stack::{Arithmetic, Padding, Stack};

/// See the module.
pub struct Domino {
    gru: usize,
    input: Stack,  // [3 * gru, hidden], gates r, z, n
    state: Stack,  // [3 * gru, gru]
    reduce: Stack, // [rank, hidden + gru]
    /// Output matrix of the bias.
    pub after: Arc<QTensor>, // [vocabulary, rank]
    /// Number of positions, from the first, that are not corrected.
    pub plain_prefix: usize,
}

impl Domino {
    /// # Errors
    /// Those of [`super::TensorModel::load`].
    pub fn load(weights: &Weights, sizes: Sizes, arithmetic: Arithmetic) -> Result<Self> {
        let stack = |name| -> Result<Stack> {
            Ok(Stack::new(vec![weights.matrix(name)?], arithmetic, weights.device())?)
        };
        Ok(Self {
            gru: sizes.gru,
            input: stack(GRU_INPUT)?,
            state: stack(GRU_STATE)?,
            reduce: stack(DOMINO_BEFORE)?,
            after: weights.matrix(DOMINO_AFTER)?,
            plain_prefix: sizes.plain_prefix,
        })
    }

    /// State of the GRU after `state` (empty for zeros) and a token with this `embedding`,
    /// `[1, hidden]`, as `torch.nn.GRU` without biases computes it.
    pub fn step(&self, state: &[f32], embedding: &Tensor, padding: Padding) -> Computed<Vec<f32>> {
        let state = self.tensor(state, embedding)?;
        let (of_token, of_state) =
            (self.input.forward(embedding, padding)?, self.state.forward(&state, padding)?);
        let gate = |of: &Tensor, gate: usize| of.narrow(1, gate * self.gru, self.gru);
        let reset = sigmoid(&(gate(&of_token, 0)? + gate(&of_state, 0)?)?)?;
        let update = sigmoid(&(gate(&of_token, 1)? + gate(&of_state, 1)?)?)?;
        let new = (gate(&of_token, 2)? + (reset * gate(&of_state, 2)?)?)?.tanh()?;
        // (1 - update) * new + update * state
        let next = (&new + (update * (state - &new)?)?)?;
        next.flatten_all()?.to_vec1()
    }

    /// Factor of the bias, `[1, rank]`, for a position with this normed state, `[1, hidden]`, after
    /// tokens that left the GRU in `state`.
    pub fn factor(&self, position: &Tensor, state: &[f32], padding: Padding) -> Computed<Tensor> {
        let inputs = Tensor::cat(&[position, &self.tensor(state, position)?], 1)?;
        silu(&self.reduce.forward(&inputs, padding)?)
    }

    /// A state of the GRU as a tensor on the device of `beside`, `[1, gru]`.
    fn tensor(&self, state: &[f32], beside: &Tensor) -> Computed<Tensor> {
        let zeros = vec![0.0; self.gru];
        Tensor::from_slice(if state.is_empty() { &zeros } else { state }, (1, self.gru), beside.device())
    }
}
