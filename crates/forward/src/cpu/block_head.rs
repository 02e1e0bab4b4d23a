//! Weights of a draft head that fills a block in one pass, beside those of its layers: fusion of
//! the target's states, Markov bias, selector and confidence.

use foretoken_model::error::Result;
use foretoken_model::tables::block_head::{
    CONFIDENCE, CONFIDENCE_BIAS, MARKOV_AFTER, MARKOV_BEFORE, SELECTOR_AFTER, SELECTOR_BEFORE,
    SELECTOR_POSITION,
};
use foretoken_model::tables::eagle3::{FUSE, FUSED_NORM};
use foretoken_model::{BlockHead as Config, Convolution as Sizes, Weights};

use super::packing::{panels, vector};
use super::panels::Panels;

#[derive(Debug)]
pub struct BlockHead {
    pub fuse: Panels, // [hidden, states]
    /// Norm of the fused states.
    pub fused_norm: Vec<f32>, // [hidden]
    pub markov: Option<Markov>,
    pub selector: Option<Selector>,
    pub confidence: Option<Confidence>,
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
    pub fn load(weights: &Weights, config: &Config) -> Result<Self> {
        let markov = || -> Result<Markov> {
            Ok(Markov { before: panels(weights, MARKOV_BEFORE)?, after: panels(weights, MARKOV_AFTER)? })
        };
        let selector = |candidates| -> Result<Selector> {
            Ok(Selector {
                before: panels(weights, SELECTOR_BEFORE)?,
                after: panels(weights, SELECTOR_AFTER)?,
                position: panels(weights, SELECTOR_POSITION)?,
                candidates,
            })
        };
        let confidence = |inputs, bias: bool| -> Result<Confidence> {
            let bias = bias.then(|| vector(weights, CONFIDENCE_BIAS)).transpose()?;
            let weight = vector(weights, CONFIDENCE)?;
            Ok(Confidence { weight, inputs, bias: bias.map_or(0.0, |bias| bias[0]) })
        };
        let head = config.confidence;
        Ok(Self {
            fuse: panels(weights, FUSE)?,
            fused_norm: vector(weights, FUSED_NORM)?,
            markov: config.markov.map(|_| markov()).transpose()?,
            selector: config.selector.map(|sizes| selector(sizes.candidates)).transpose()?,
            confidence: head.map(|head| confidence(head.inputs, head.bias)).transpose()?,
        })
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
