//! Weights of a draft head that fills a block in one pass, beside those of its layers: fusion of
//! the target's states, correction of logits and confidence.

use foretoken_model::error::Result;
use foretoken_model::tables::block_head::{
    CONFIDENCE, CONFIDENCE_BIAS, DOMINO_AFTER, DOMINO_BEFORE, GRU_INPUT, GRU_STATE, MARKOV_AFTER,
    MARKOV_BEFORE, SELECTOR_AFTER, SELECTOR_BEFORE, SELECTOR_POSITION,
};
use foretoken_model::tables::eagle3::{FUSE, FUSED_NORM};
use foretoken_model::{BlockHead as Config, Convolution as Sizes, Correction as Kind, ModelConfig, Weights};

use super::packing::{panels, vector};
use super::panels::Panels;
use crate::lilicorr::LiliCorr;

#[derive(Debug)]
pub struct BlockHead {
    pub fuse: Panels, // [hidden, states]
    /// Norm of the fused states.
    pub fused_norm: Vec<f32>, // [hidden]
    pub correction: Option<Correction>,
    pub confidence: Option<Confidence>,
}

/// Correction of a position's scores by the block's tokens before it.
#[derive(Debug)]
pub enum Correction {
    Markov(Markov),
    Selector(Selector),
    Domino(Domino),
    LiliCorr(Box<LiliCorr<Panels>>),
}

/// Low-rank Markov bias (DSpark): `after * before[token]` is added to the scores of the position
/// after `token`.
#[derive(Debug)]
pub struct Markov {
    pub before: Panels, // [tokens, rank]
    pub after: Panels,  // [vocabulary, rank]
}

/// Candidate selector (DFlash 2): adds `sum(before[token] * (position * state) * after[candidate])`
/// to the score of each candidate.
#[derive(Debug)]
pub struct Selector {
    pub before: Panels,   // [tokens, rank]
    pub after: Panels,    // [vocabulary, rank]
    pub position: Panels, // [rank, hidden]
    pub candidates: usize,
}

/// Correction by a GRU over the block's tokens (Domino): `after * silu(reduce * [position; state])`
/// is added to the scores of the top candidates.
#[derive(Debug)]
pub struct Domino {
    pub input: Panels,  // [3 * gru, hidden], gates r, z, n
    pub state: Panels,  // [3 * gru, gru]
    pub reduce: Panels, // [rank, hidden + gru]
    pub after: Panels,  // [vocabulary, rank]
    /// Number of positions, from the first, that are not corrected.
    pub plain_prefix: usize,
}

/// Confidence in a position: `sigmoid(weight * [state; before[token]] + bias)`.
#[derive(Debug)]
pub struct Confidence {
    pub weight: Vec<f32>, // [hidden] or [hidden + rank], and zeros
    pub inputs: usize,
    pub bias: f32,
}

/// A dynamic causal convolution before and after a mixer or feed-forward network.
#[derive(Debug)]
pub struct Convolution {
    pub sizes: Sizes,
    pub base: Vec<f32>,     // [2, taps, hidden], and zeros
    pub projection: Panels, // [2 * taps * hidden / group, hidden]
}

impl BlockHead {
    /// Loads the weights.
    ///
    /// # Errors
    /// As [`super::network::Network::load`].
    pub fn load(weights: &Weights, config: &ModelConfig, block: &Config) -> Result<Self> {
        let confidence = |inputs, bias: bool| -> Result<Confidence> {
            let bias = bias.then(|| vector(weights, CONFIDENCE_BIAS)).transpose()?;
            let weight = vector(weights, CONFIDENCE)?;
            Ok(Confidence { weight, inputs, bias: bias.map_or(0.0, |bias| bias[0]) })
        };
        let head = block.confidence;
        let correction = |kind| Correction::load(weights, config, block.rows, kind);
        Ok(Self {
            fuse: panels(weights, FUSE)?,
            fused_norm: vector(weights, FUSED_NORM)?,
            correction: block.correction.map(correction).transpose()?,
            confidence: head.map(|head| confidence(head.inputs, head.bias)).transpose()?,
        })
    }
}

impl BlockHead {
    /// Returns whether rescoring reads the normed states of the scored rows.
    pub fn reads_states(&self) -> bool {
        self.confidence.is_some() || matches!(self.correction, Some(Correction::Domino(_)))
    }

    pub fn selector(&self) -> Option<&Selector> {
        match &self.correction {
            Some(Correction::Selector(selector)) => Some(selector),
            _ => None,
        }
    }
}

impl Correction {
    fn load(weights: &Weights, config: &ModelConfig, rows: usize, kind: Kind) -> Result<Self> {
        let panels = |name: &str| panels(weights, name);
        Ok(match kind {
            Kind::Markov { .. } => {
                Self::Markov(Markov { before: panels(MARKOV_BEFORE)?, after: panels(MARKOV_AFTER)? })
            }
            Kind::Selector(sizes) => Self::Selector(Selector {
                before: panels(SELECTOR_BEFORE)?,
                after: panels(SELECTOR_AFTER)?,
                position: panels(SELECTOR_POSITION)?,
                candidates: sizes.candidates,
            }),
            Kind::LiliCorr(sizes) => {
                let vector = |name: &str, length| -> Result<Vec<f32>> {
                    let mut padded = vector(weights, name)?;
                    padded.truncate(length);
                    Ok(padded)
                };
                let (width, epsilon) = (config.hidden, config.norm_epsilon as f32);
                Self::LiliCorr(Box::new(LiliCorr::load(sizes, rows, width, epsilon, &panels, &vector)?))
            }
            Kind::Domino(sizes) => Self::Domino(Domino {
                input: panels(GRU_INPUT)?,
                state: panels(GRU_STATE)?,
                reduce: panels(DOMINO_BEFORE)?,
                after: panels(DOMINO_AFTER)?,
                plain_prefix: sizes.plain_prefix,
            }),
        })
    }

    /// Matrices that are multiplied with one row at a time.
    pub fn products(&self) -> Vec<&Panels> {
        match self {
            Self::Markov(markov) => vec![&markov.after],
            Self::Selector(_) | Self::LiliCorr(_) => Vec::new(),
            Self::Domino(domino) => vec![&domino.input, &domino.state, &domino.reduce],
        }
    }
}

impl Convolution {
    /// Loads the convolution around attention (`attn`) or the feed-forward network (`ffn`) of layer
    /// `index`.
    ///
    /// # Errors
    /// As [`super::network::Network::load`].
    pub fn load(weights: &Weights, index: usize, part: &str, sizes: Sizes) -> Result<Self> {
        let name = format!("blk.{index}.{part}_conv");
        Ok(Self {
            sizes,
            base: vector(weights, &format!("{name}_base"))?,
            projection: panels(weights, &format!("{name}_proj.weight"))?,
        })
    }
}
