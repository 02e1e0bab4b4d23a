//! Parts of a block-drafting head beside its layers: fusion of the target's states, and the
//! influence of the previous token on a position's scores (DFlash 2, DSpark).

use std::sync::Arc;

use candle_core::quantized::QTensor;
use candle_core::{Device, Result as Computed, Tensor};
use candle_nn::ops::{rms_norm, sigmoid};

use super::stack::{Arithmetic, Padding, Stack};
use crate::error::Result;
use crate::forward::{Features, Row};
use crate::model::block_tensors::{
    CONFIDENCE, CONFIDENCE_BIAS, MARKOV_AFTER, MARKOV_BEFORE, SELECTOR_AFTER, SELECTOR_BEFORE,
    SELECTOR_POSITION,
};
use crate::model::weights::{FUSE, FUSED_NORM};
use crate::model::{ModelConfig, Weights};
use crate::token::TokenId;

pub struct BlockHead {
    fuse: Stack, // [hidden, states]
    /// Norm of the fused states.
    fused_norm: Tensor, // [hidden]
    transition: Transition,
    confidence: Option<Confidence>,
}

/// Influence of the token before a position on the position's scores.
enum Transition {
    None,
    /// Markov bias: `after * before[token]` is added to all scores.
    Markov {
        before: Arc<QTensor>, // [tokens, rank]
        after: Stack,         // [vocabulary, rank]
    },
    /// Rescores the top candidates: the sum of `before[token] * (place * state) * after[candidate]`
    /// is added to a candidate's score. All other tokens are excluded.
    Selector {
        before: Arc<QTensor>, // [tokens, rank]
        after: Arc<QTensor>,  // [vocabulary, rank]
        place: Stack,         // [rank, hidden]
        candidates: usize,
    },
}

/// Confidence in a position: `sigmoid(weight * [state; before[token]] + bias)`.
struct Confidence {
    weight: Tensor, // [1, hidden] or [1, hidden + rank]
    bias: Option<Tensor>,
}

impl BlockHead {
    /// Loads the head's parts; `None` for other models.
    ///
    /// # Errors
    /// Those of [`super::TensorModel::load`].
    pub fn load(weights: &Weights, config: &ModelConfig, arithmetic: Arithmetic) -> Result<Option<Self>> {
        let Some(block) = config.block() else { return Ok(None) };
        let stack = |name| -> Result<Stack> {
            Ok(Stack::new(vec![weights.matrix(name)?], arithmetic, weights.device())?)
        };
        let transition = if block.markov.is_some() {
            Transition::Markov { before: weights.matrix(MARKOV_BEFORE)?, after: stack(MARKOV_AFTER)? }
        } else if let Some(selector) = block.selector {
            Transition::Selector {
                before: weights.matrix(SELECTOR_BEFORE)?,
                after: weights.matrix(SELECTOR_AFTER)?,
                place: stack(SELECTOR_POSITION)?,
                candidates: selector.candidates.min(config.vocabulary),
            }
        } else {
            Transition::None
        };
        let confidence = block.confidence.map(|head| -> Result<_> {
            let bias = head.bias.then(|| weights.vector(CONFIDENCE_BIAS)).transpose()?;
            Ok(Confidence { weight: weights.vector(CONFIDENCE)?, bias })
        });
        Ok(Some(Self {
            fuse: stack(FUSE)?,
            fused_norm: weights.vector(FUSED_NORM)?,
            transition,
            confidence: confidence.transpose()?,
        }))
    }

    /// Fuses the target's states into inputs of the layers' keys and values, `[rows, hidden]`.
    pub fn rows(
        &self,
        states: Features<'_>,
        epsilon: f32,
        padding: Padding,
        device: &Device,
    ) -> Computed<Tensor> {
        let states = Tensor::from_slice(states.numbers(), (states.len(), states.width()), device)?;
        rms_norm(&self.fuse.forward(&states, padding)?.contiguous()?, &self.fused_norm, epsilon)
    }

    /// Scores of a position after the token `before`, and the head's confidence. `row` holds the
    /// scores without that token, `state` the position's normed state, `[1, hidden]`. The scores
    /// are `None` if they do not depend on the token.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    pub fn after(
        &self,
        before: TokenId,
        row: Row<'_>,
        state: &Tensor,
        padding: Padding,
    ) -> Result<(Option<Vec<f32>>, Option<f32>)> {
        let token = Tensor::new(&[before], state.device())?;
        let of_before = match &self.transition {
            Transition::None => None,
            Transition::Markov { before, .. } | Transition::Selector { before, .. } => {
                Some(before.embedding(&token)?) // [1, rank]
            }
        };
        let confidence =
            self.confidence.as_ref().map(|head| head.of(state, of_before.as_ref())).transpose()?;
        let scores = match (&self.transition, &of_before) {
            (Transition::Markov { after, .. }, Some(of_before)) => {
                let bias: Vec<f32> = after.forward(of_before, padding)?.flatten_all()?.to_vec1()?;
                Some(row.logits()?.iter().zip(bias).map(|(score, bias)| score + bias).collect())
            }
            (Transition::Selector { after, place, candidates, .. }, Some(of_before)) => {
                let together = (place.forward(state, padding)? * of_before)?; // [1, rank]
                let top = row.top(*candidates)?;
                let ids: Vec<TokenId> = top.iter().map(|&(token, _)| token).collect();
                let after = after.embedding(&Tensor::new(ids, state.device())?)?; // [candidates, rank]
                let more: Vec<f32> = after.broadcast_mul(&together)?.sum(1)?.to_vec1()?;
                let mut scores = vec![f32::NEG_INFINITY; row.logits()?.len()];
                for ((token, score), more) in top.into_iter().zip(more) {
                    scores[token as usize] = score + more;
                }
                Some(scores)
            }
            _ => None,
        };
        Ok((scores, confidence))
    }
}

impl Confidence {
    /// Confidence for a position with this state, `[1, hidden]`. `of_before`: rescoring embedding
    /// of the token before it, `[1, rank]`.
    fn of(&self, state: &Tensor, of_before: Option<&Tensor>) -> Computed<f32> {
        let inputs = self.weight.elem_count();
        let looked_at = match of_before {
            Some(of_before) if inputs > state.dim(1)? => Tensor::cat(&[state, of_before], 1)?,
            _ => state.clone(),
        };
        let mut sum = (looked_at * self.weight.reshape((1, inputs))?)?.sum_all()?;
        if let Some(bias) = &self.bias {
            sum = (sum + bias.reshape(())?)?;
        }
        sigmoid(&sum)?.to_scalar()
    }
}
