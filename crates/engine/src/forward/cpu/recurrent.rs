//! The weights of layers that keep a state in place of keys and values.

use super::packing::{panels, vector};
use super::panels::Panels;
use super::simd::LANES;
use crate::error::Result;
use crate::model::{Recurrence, Weights};

/// A gated convolution: of `[b, c, v] = projection * x` it convolves b * v, and c times that goes through `output`.
#[derive(Debug)]
pub struct ShortConv {
    pub projection: Panels, // [3 * channels, hidden]
    pub kernel: Kernel,
    pub output: Panels, // [hidden, channels]
}

/// A Gated DeltaNet (Yang et al. 2025).
#[derive(Debug)]
pub struct Delta {
    /// Queries, keys and values before they are convolved.
    pub inputs: Panels, // [channels, hidden]
    /// What comes out is multiplied with this times what went in, by its SiLU.
    pub gate: Panels, // [values * value_size, hidden]
    /// How much of a correction is made, by its sigmoid.
    pub beta: Panels, // [values, hidden]
    /// How fast the matrix decays: e to `decay` times the softplus of this and `bias`.
    pub alpha: Panels, // [values, hidden]
    pub bias: Vec<f32>,  // [values]
    pub decay: Vec<f32>, // [values]
    pub kernel: Kernel,
    /// Of each value head.
    pub norm: Vec<f32>, // [value_size]
    pub output: Panels, // [hidden, values * value_size]
    /// What makes queries 1 / sqrt(key_size) long and keys 1, by a norm.
    pub unit: [Vec<f32>; 2], // [key_size]
}

/// A Mamba-2 (Dao and Gu 2024).
#[derive(Debug)]
pub struct Mamba {
    /// Values, keys and queries before they are convolved.
    pub inputs: Panels, // [channels, hidden]
    /// What comes out is multiplied with this times what went in, by its SiLU.
    pub gate: Panels, // [values * value_size, hidden]
    /// How long a step is: the softplus of this and `bias`. What a row adds is multiplied with it, and before that the
    /// matrix with e to `decay` times it.
    pub steps: Panels, // [values, hidden]
    pub bias: Vec<f32>,  // [values]
    pub decay: Vec<f32>, // [values]
    /// How much of its value a row has beside what it reads.
    pub skip: Vec<f32>, // [values]
    pub kernel: Kernel,
    /// Of all heads that share a key.
    pub norm: Vec<f32>, // [values * value_size]
    pub output: Panels, // [hidden, values * value_size]
}

/// What each of the rows that are seen is multiplied with, the oldest first.
#[derive(Debug)]
pub struct Kernel {
    pub numbers: Vec<f32>, // [taps, channels in whole vectors]
    /// Added to that.
    pub bias: Option<Vec<f32>>, // [channels in whole vectors]
    pub stride: usize,
    pub taps: usize,
}

impl Kernel {
    fn load(weights: &Weights, name: &str, of: &Recurrence) -> Result<Self> {
        let (stored, stride) = (vector(weights, name)?, of.channels.next_multiple_of(LANES));
        let mut numbers = vec![0.0; of.taps * stride];
        for (channel, taps) in stored.chunks_exact(of.taps).take(of.channels).enumerate() {
            taps.iter().enumerate().for_each(|(tap, &number)| numbers[tap * stride + channel] = number);
        }
        let bias = || vector(weights, &name.replace("weight", "bias"));
        Ok(Self { numbers, bias: of.biased.then(bias).transpose()?, stride, taps: of.taps })
    }
}

impl ShortConv {
    /// # Errors
    /// As for all weights.
    pub fn load(weights: &Weights, of: &Recurrence, index: usize) -> Result<Self> {
        let name = |part: &str| format!("blk.{index}.shortconv.{part}.weight");
        Ok(Self {
            projection: panels(weights, &name("in_proj"))?,
            kernel: Kernel::load(weights, &name("conv"), of)?,
            output: panels(weights, &name("out_proj"))?,
        })
    }
}

impl Delta {
    /// # Errors
    /// As for all weights.
    pub fn load(weights: &Weights, of: &Recurrence, index: usize) -> Result<Self> {
        let panels = |part: &str| panels(weights, &format!("blk.{index}.{part}.weight"));
        let vector = |part: &str| vector(weights, &format!("blk.{index}.{part}"));
        let size = of.heads.key_size;
        Ok(Self {
            inputs: panels("attn_qkv")?,
            gate: panels("attn_gate")?,
            beta: panels("ssm_beta")?,
            alpha: panels("ssm_alpha")?,
            bias: vector("ssm_dt.bias")?,
            decay: vector("ssm_a")?,
            kernel: Kernel::load(weights, &format!("blk.{index}.ssm_conv1d.weight"), of)?,
            norm: vector("ssm_norm.weight")?,
            output: panels("ssm_out")?,
            unit: [1.0 / size as f32, 1.0 / (size as f32).sqrt()].map(|number| vec![number; size]),
        })
    }
}

impl Mamba {
    /// # Errors
    /// As for all weights.
    pub fn load(weights: &Weights, of: &Recurrence, index: usize) -> Result<Self> {
        let panels = |part: &str| panels(weights, &format!("blk.{index}.{part}.weight"));
        let vector = |part: &str| vector(weights, &format!("blk.{index}.{part}"));
        Ok(Self {
            inputs: panels("ssm_inputs")?,
            gate: panels("ssm_gate")?,
            steps: panels("ssm_steps")?,
            bias: vector("ssm_dt.bias")?,
            decay: vector("ssm_a")?,
            skip: vector("ssm_d")?,
            kernel: Kernel::load(weights, &format!("blk.{index}.ssm_conv1d.weight"), of)?,
            norm: vector("ssm_norm.weight")?,
            output: panels("ssm_out")?,
        })
    }
}
