//! Input of an EAGLE-3 head: the target's states are fused into one, or the head's own state
//! continues, and either is joined with the token's embedding (Li et al. 2025).

use candle_core::{Result as Computed, Tensor};
use candle_nn::ops::rms_norm;
use foretoken_model::error::Result;
use foretoken_model::tables::eagle3::{FUSE, STATE_NORM, fused_norms};
use foretoken_model::{self as model, DraftHead, Weights};

use super::stack::{Arithmetic, Padding, Stack};
use crate::HeadInput;

/// The parts that compute the input of an EAGLE-3 head.
pub struct Eagle3 {
    fuse: Stack, // [hidden, states]
    /// Norms before fusion: one over all states, one per state, or none.
    fused_norms: Vec<Tensor>,
    embedding_norm: Tensor, // [hidden]
    state_norm: Tensor,     // [hidden]
    normed_residual: bool,
}

impl Eagle3 {
    /// # Errors
    /// Those of [`super::TensorModel::load`].
    pub fn load(
        weights: &Weights,
        head: &DraftHead,
        options: model::Eagle3,
        arithmetic: Arithmetic,
    ) -> Result<Self> {
        Ok(Self {
            fuse: Stack::new(vec![weights.matrix(FUSE)?], arithmetic, weights.device())?,
            fused_norms: fused_norms(head).iter().map(|name| weights.vector(name)).collect::<Result<_>>()?,
            embedding_norm: weights.vector("blk.0.attn_norm.weight")?,
            state_norm: weights.vector(STATE_NORM)?,
            normed_residual: options.normed_residual,
        })
    }

    /// Returns the residual state, `[nodes, hidden]`, and attention's input, `[nodes, 2 * hidden]`,
    /// for nodes with these embeddings and head inputs.
    pub fn input(
        &self,
        embedding: &Tensor,
        head_input: HeadInput<'_>,
        epsilon: f32,
        padding: Padding,
    ) -> Computed<(Tensor, Tensor)> {
        let rows = head_input.features();
        let shape = (rows.len(), rows.width());
        let rows = Tensor::from_slice(rows.numbers(), shape, embedding.device())?;
        let state = match head_input {
            HeadInput::Own(_) => rows,
            HeadInput::Target(_) => self.fuse.forward(&self.normalise(&rows, epsilon)?, padding)?,
        };
        let normed = rms_norm(&state.contiguous()?, &self.state_norm, epsilon)?;
        let embedding = rms_norm(&embedding.contiguous()?, &self.embedding_norm, epsilon)?;
        let fused = Tensor::cat(&[&embedding, &normed], 1)?;
        Ok((if self.normed_residual { normed } else { state }, fused))
    }

    /// Applies the head's norms to the target's states, if it has any.
    fn normalise(&self, rows: &Tensor, epsilon: f32) -> Computed<Tensor> {
        let parts = self.fused_norms.len().max(1);
        let width = rows.dim(1)? / parts;
        let part = |(part, norm): (usize, &Tensor)| {
            rms_norm(&rows.narrow(1, part * width, width)?.contiguous()?, norm, epsilon)
        };
        let normed = self.fused_norms.iter().enumerate().map(part).collect::<Computed<Vec<_>>>()?;
        if normed.is_empty() { Ok(rows.clone()) } else { Tensor::cat(&normed, 1) }
    }
}
