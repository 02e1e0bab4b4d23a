//! Weights of recurrent layers, which keep a state in place of keys and values.

use foretoken_model::error::Result;
use foretoken_model::{Recurrence, Weights};

use super::packing::{panels, vector};
use super::panels::Panels;
use super::simd::LANES;

/// Epsilon of the L2 norm of keys and queries of [`Delta`], added to the squared length.
pub const QK_EPSILON: f32 = 1e-6;

/// Gated short convolution (LFM2): `output * (c * conv(b * v))` with `[b, c, v] = projection * x`.
#[derive(Debug)]
pub struct ShortConv {
    pub projection: Panels, // [3 * channels, hidden]
    pub kernel: ConvWeights,
    pub output: Panels, // [hidden, channels]
}

/// A Gated DeltaNet (Yang et al. 2025).
#[derive(Debug)]
pub struct Delta {
    /// Projection to queries, keys and values, before their convolution.
    pub inputs: Panels, // [channels, hidden]
    /// Output gate (z): the output is multiplied with `silu(gate * x)`.
    pub gate: Panels, // [values * value_size, hidden]
    /// Correction rate of each head, after a sigmoid.
    pub beta: Panels, // [values, hidden]
    /// Decay of each head's matrix: `exp(decay * softplus(alpha * x + bias))`.
    pub alpha: Panels, // [values, hidden]
    pub bias: Vec<f32>,  // [values]
    pub decay: Vec<f32>, // [values]
    pub kernel: ConvWeights,
    /// Norm of each value head's output.
    pub norm: Vec<f32>, // [value_size]
    pub output: Panels, // [hidden, values * value_size]
    /// Weights of an RMS norm that scales queries to length 1 / sqrt(key_size) and keys to length
    /// 1.
    pub qk_norms: [Vec<f32>; 2], // [key_size]
}

/// A Mamba-2 mixer (Dao and Gu 2024).
#[derive(Debug)]
pub struct Mamba {
    /// Projection to values, keys and queries (x, B and C), before their convolution.
    pub inputs: Panels, // [channels, hidden]
    /// Output gate (z): the output is multiplied with `silu(gate * x)`.
    pub gate: Panels, // [values * value_size, hidden]
    /// Step sizes (dt): `step = softplus(dt * x + bias)`. The matrix decays by
    /// `exp(decay * step)`; values are added times `step`.
    pub dt: Panels, // [values, hidden]
    pub bias: Vec<f32>,  // [values]
    pub decay: Vec<f32>, // [values]
    /// Direct contribution of each head's value to its output (D).
    pub d: Vec<f32>, // [values]
    pub kernel: ConvWeights,
    /// Norm of the output, over all heads that share a key.
    pub norm: Vec<f32>, // [values * value_size]
    pub output: Panels, // [hidden, values * value_size]
}

/// Weights of a causal depthwise convolution, the oldest row first.
#[derive(Debug)]
pub struct ConvWeights {
    pub weights: Vec<f32>, // [taps, channels padded to LANES]
    /// Added to the convolution.
    pub bias: Option<Vec<f32>>, // [channels padded to LANES]
    pub stride: usize,
    pub taps: usize,
}

impl ConvWeights {
    fn load(weights: &Weights, name: &str, recurrence: &Recurrence) -> Result<Self> {
        let (stored, stride) = (vector(weights, name)?, recurrence.channels.next_multiple_of(LANES));
        let mut by_tap = vec![0.0; recurrence.taps * stride];
        for (channel, taps) in stored.chunks_exact(recurrence.taps).take(recurrence.channels).enumerate() {
            taps.iter().enumerate().for_each(|(tap, &number)| by_tap[tap * stride + channel] = number);
        }
        let bias = || vector(weights, &name.replace("weight", "bias"));
        Ok(Self {
            weights: by_tap,
            bias: recurrence.biased.then(bias).transpose()?,
            stride,
            taps: recurrence.taps,
        })
    }
}

impl ShortConv {
    /// Loads the weights of layer `index`.
    ///
    /// # Errors
    /// As [`super::network::Network::load`].
    pub fn load(weights: &Weights, recurrence: &Recurrence, index: usize) -> Result<Self> {
        let name = |part: &str| format!("blk.{index}.shortconv.{part}.weight");
        Ok(Self {
            projection: panels(weights, &name("in_proj"))?,
            kernel: ConvWeights::load(weights, &name("conv"), recurrence)?,
            output: panels(weights, &name("out_proj"))?,
        })
    }
}

impl Delta {
    /// Loads the weights of layer `index`.
    ///
    /// # Errors
    /// As [`super::network::Network::load`].
    pub fn load(weights: &Weights, recurrence: &Recurrence, index: usize) -> Result<Self> {
        let panels = |part: &str| panels(weights, &format!("blk.{index}.{part}.weight"));
        let vector = |part: &str| vector(weights, &format!("blk.{index}.{part}"));
        let size = recurrence.heads.key_size;
        Ok(Self {
            inputs: panels("attn_qkv")?,
            gate: panels("attn_gate")?,
            beta: panels("ssm_beta")?,
            alpha: panels("ssm_alpha")?,
            bias: vector("ssm_dt.bias")?,
            decay: vector("ssm_a")?,
            kernel: ConvWeights::load(weights, &format!("blk.{index}.ssm_conv1d.weight"), recurrence)?,
            norm: vector("ssm_norm.weight")?,
            output: panels("ssm_out")?,
            qk_norms: [1.0 / size as f32, 1.0 / (size as f32).sqrt()].map(|number| vec![number; size]),
        })
    }
}

impl Mamba {
    /// Loads the weights of layer `index`.
    ///
    /// # Errors
    /// As [`super::network::Network::load`].
    pub fn load(weights: &Weights, recurrence: &Recurrence, index: usize) -> Result<Self> {
        let panels = |part: &str| panels(weights, &format!("blk.{index}.{part}.weight"));
        let vector = |part: &str| vector(weights, &format!("blk.{index}.{part}"));
        Ok(Self {
            inputs: panels("ssm_inputs")?,
            gate: panels("ssm_gate")?,
            dt: panels("ssm_steps")?,
            bias: vector("ssm_dt.bias")?,
            decay: vector("ssm_a")?,
            d: vector("ssm_d")?,
            kernel: ConvWeights::load(weights, &format!("blk.{index}.ssm_conv1d.weight"), recurrence)?,
            norm: vector("ssm_norm.weight")?,
            output: panels("ssm_out")?,
        })
    }
}
