//! Parts of a block-drafting head beside its layers: fusion of the target's states, and the
//! influence of a block's tokens on a position's scores (DFlash 2, DSpark).

use std::sync::Arc;

use candle_core::quantized::QTensor;
use candle_core::{Device, Result as Computed, Tensor};
use candle_nn::ops::{rms_norm, sigmoid};
use foretoken_model::error::Result;
use foretoken_model::tables::block_head::{
    CONFIDENCE, CONFIDENCE_BIAS, MARKOV_AFTER, MARKOV_BEFORE, SELECTOR_AFTER, SELECTOR_BEFORE,
    SELECTOR_POSITION,
};
use foretoken_model::tables::eagle3::{FUSE, FUSED_NORM};
use foretoken_model::token::TokenId;
use foretoken_model::{self as model, Correction as Kind, Domino as Sizes, ModelConfig, Weights};

use super::domino::Domino;
use super::stack::{Arithmetic, Padding, Stack};
use crate::lilicorr::LiliCorr;
use crate::{BlockState, Features, Row};

pub struct BlockHead {
    fuse: Stack, // [hidden, states]
    /// Norm of the fused states.
    fused_norm: Tensor, // [hidden]
    rescoring: Rescoring,
    confidence: Option<Confidence>,
}

/// Influence of a block's tokens on the scores of the position after them.
enum Rescoring {
    None,
    Domino(Domino),
    LiliCorr(Box<LiliCorr<Stack>>),
    /// Markov bias: `after * before[token]` is added to all scores.
    Markov {
        before: Arc<QTensor>, // [tokens, rank]
        after: Stack,         // [vocabulary, rank]
    },
    /// Rescores the top candidates: the sum of `before[token] * (position * state) *
    /// after[candidate]` is added to a candidate's score. All other tokens are excluded.
    Selector {
        before: Arc<QTensor>, // [tokens, rank]
        after: Arc<QTensor>,  // [vocabulary, rank]
        position: Stack,      // [rank, hidden]
        candidates: usize,
    },
}

/// Confidence in a position: `sigmoid(weight * [state; before[token]] + bias)`.
struct Confidence {
    weight: Tensor, // [1, hidden] or [1, hidden + rank]
    bias: Option<Tensor>,
}

impl BlockHead {
    /// # Errors
    /// Those of [`super::TensorModel::load`].
    pub fn load(
        weights: &Weights,
        config: &ModelConfig,
        block: &model::BlockHead,
        arithmetic: Arithmetic,
    ) -> Result<Self> {
        let stack = |name: &str| -> Result<Stack> {
            Ok(Stack::new(vec![weights.matrix(name)?], arithmetic, weights.device())?)
        };
        let rescoring = match block.correction {
            None => Rescoring::None,
            Some(Kind::LiliCorr(sizes)) => {
                let vector = |name: &str, _| -> Result<Vec<f32>> {
                    Ok(weights.vector(name)?.flatten_all()?.to_vec1()?)
                };
                let (width, epsilon) = (config.hidden, config.norm_epsilon as f32);
                let rows = block.rows;
                Rescoring::LiliCorr(Box::new(LiliCorr::load(sizes, rows, width, epsilon, &stack, &vector)?))
            }
            Some(Kind::Domino(sizes)) => Rescoring::Domino(Domino::load(weights, sizes, arithmetic)?),
            Some(Kind::Markov { .. }) => {
                Rescoring::Markov { before: weights.matrix(MARKOV_BEFORE)?, after: stack(MARKOV_AFTER)? }
            }
            Some(Kind::Selector(selector)) => Rescoring::Selector {
                before: weights.matrix(SELECTOR_BEFORE)?,
                after: weights.matrix(SELECTOR_AFTER)?,
                position: stack(SELECTOR_POSITION)?,
                candidates: selector.candidates.min(config.vocabulary),
            },
        };
        let confidence = block.confidence.map(|head| -> Result<_> {
            let bias = head.bias.then(|| weights.vector(CONFIDENCE_BIAS)).transpose()?;
            Ok(Confidence { weight: weights.vector(CONFIDENCE)?, bias })
        });
        Ok(Self {
            fuse: stack(FUSE)?,
            fused_norm: weights.vector(FUSED_NORM)?,
            rescoring,
            confidence: confidence.transpose()?,
        })
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

    /// Domino's correction, if the head has one.
    pub fn domino(&self) -> Option<&Domino> {
        match &self.rescoring {
            Rescoring::Domino(domino) => Some(domino),
            _ => None,
        }
    }

    /// LiLiCorr, if the head has it.
    pub fn lilicorr(&self) -> Option<&LiliCorr<Stack>> {
        match &self.rescoring {
            Rescoring::LiliCorr(lilicorr) => Some(lilicorr),
            _ => None,
        }
    }

    /// Scores of a position after the tokens `before`, and the head's confidence. `row` holds the
    /// scores without these tokens, `state` the position's normed state, `[1, hidden]`. The scores
    /// are `None` if they do not depend on the tokens.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    pub fn rescore(
        &self,
        before: &BlockState,
        row: Row<'_>,
        state: &Tensor,
        padding: Padding,
    ) -> Result<(Option<Vec<f32>>, Option<f32>)> {
        let token = Tensor::new(&[before.last()], state.device())?;
        let previous = match &self.rescoring {
            Rescoring::None | Rescoring::Domino(_) | Rescoring::LiliCorr(_) => None,
            Rescoring::Markov { before, .. } | Rescoring::Selector { before, .. } => {
                Some(before.embedding(&token)?) // [1, rank]
            }
        };
        let confidence =
            self.confidence.as_ref().map(|head| head.of(state, previous.as_ref())).transpose()?;
        let scores = match (&self.rescoring, &previous) {
            (Rescoring::Markov { after, .. }, Some(previous)) => {
                let bias: Vec<f32> = after.forward(previous, padding)?.flatten_all()?.to_vec1()?;
                Some(row.logits()?.iter().zip(bias).map(|(score, bias)| score + bias).collect())
            }
            (Rescoring::Selector { after, position, candidates, .. }, Some(previous)) => {
                let factor = (position.forward(state, padding)? * previous)?; // [1, rank]
                Some(add_to_top(row, *candidates, after, &factor)?)
            }
            (Rescoring::Domino(domino), _) if before.position() >= domino.plain_prefix => {
                let factor = domino.factor(state, before.recurrent(), padding)?; // [1, rank]
                Some(add_to_top(row, Sizes::CANDIDATES, &domino.after, &factor)?)
            }
            _ => None,
        };
        Ok((scores, confidence))
    }
}

/// Adds a low-rank bias to the scores of the top `candidates`, and drops all other tokens. The bias
/// of a token is the product of its row of `after` with `factor`, `[1, rank]`.
fn add_to_top(row: Row<'_>, candidates: usize, after: &QTensor, factor: &Tensor) -> Result<Vec<f32>> {
    let mut scores = vec![f32::NEG_INFINITY; row.logits()?.len()];
    let top = row.top(candidates.min(scores.len()))?;
    let ids: Vec<TokenId> = top.iter().map(|&(token, _)| token).collect();
    let after = after.embedding(&Tensor::new(ids, factor.device())?)?; // [candidates, rank]
    let biases: Vec<f32> = after.broadcast_mul(factor)?.sum(1)?.to_vec1()?;
    for ((token, score), bias) in top.into_iter().zip(biases) {
        scores[token as usize] = score + bias;
    }
    Ok(scores)
}

impl Confidence {
    /// Confidence for a position with this state, `[1, hidden]`. `previous`: rescoring embedding
    /// of the token before it, `[1, rank]`.
    fn of(&self, state: &Tensor, previous: Option<&Tensor>) -> Computed<f32> {
        let inputs = self.weight.elem_count();
        let input = match previous {
            Some(previous) if inputs > state.dim(1)? => Tensor::cat(&[state, previous], 1)?,
            _ => state.clone(),
        };
        let mut sum = (input * self.weight.reshape((1, inputs))?)?.sum_all()?;
        if let Some(bias) = &self.bias {
            sum = (sum + bias.reshape(())?)?;
        }
        sigmoid(&sum)?.to_scalar()
    }
}
