//! One layer: attention and a feed-forward network, each added to what goes in.

use candle_core::{Device, Result as Computed, Tensor};
use candle_nn::ops::{rms_norm, silu};

use super::attention::attend;
use super::cache::Cache;
use super::stack::{Arithmetic, Padding, Stack};
use super::turns::Angles;
use crate::error::Result;
use crate::model::{Activation, ModelConfig, Weights};

pub struct Layer {
    attention_norm: Tensor, // [hidden]
    /// Queries, keys and values: `[(heads + 2 kv_heads) * head_size, hidden]`.
    projection: Stack,
    /// Of the same height, if the family has one.
    bias: Option<Tensor>,
    /// Of each head of queries and of keys `[head_size]`, if the family has them.
    head_norms: Option<(Tensor, Tensor)>,
    attention_output: Stack,
    /// Of what attention gives, if the family has one.
    attention_post_norm: Option<Tensor>,
    feed_forward_norm: Tensor,
    gate_and_up: Stack, // [2 * intermediate, hidden]
    down: Stack,        // [hidden, intermediate]
    /// Of what the feed-forward network gives, if the family has one.
    feed_forward_post_norm: Option<Tensor>,
    cache: Cache,
    /// Its index among the kinds of attention.
    pub kind: usize,
}

/// What the layers with one kind of attention know of the nodes of a pass.
pub struct Sight {
    /// What is added to scores `[nodes, cached + tree]`; `None` where every node sees everything.
    pub mask: Option<Tensor>,
    pub angles: Angles,
}

impl Layer {
    /// # Errors
    /// A missing or misshapen tensor, or `Error::Compute` when the device has no room.
    pub fn load(
        weights: &Weights,
        config: &ModelConfig,
        index: usize,
        arithmetic: Arithmetic,
    ) -> Result<Self> {
        let (family, device) = (config.family, weights.device());
        let stack = |names: &[&str]| -> Result<Stack> {
            // What is put together first is put together here.
            let at = if names.len() > 1 { &Device::Cpu } else { device };
            let matrix = |name: &&str| weights.matrix_on(at, &format!("blk.{index}.{name}.weight"));
            Ok(Stack::new(names.iter().map(matrix).collect::<Result<_>>()?, arithmetic, device)?)
        };
        let norm = |name: &str| weights.vector(&format!("blk.{index}.{name}.weight"));
        let post_norm = |name| family.post_norms.then(|| norm(name)).transpose();
        let projections = ["attn_q", "attn_k", "attn_v"];
        let bias = || -> Result<Tensor> {
            let bias = |name: &str| weights.vector(&format!("blk.{index}.{name}.bias"));
            let all = projections.iter().map(|name| bias(name)).collect::<Result<Vec<_>>>()?;
            Ok(Tensor::cat(&all, 0)?)
        };
        let head_norms = || Ok::<_, crate::error::Error>((norm("attn_q_norm")?, norm("attn_k_norm")?));
        Ok(Self {
            attention_norm: norm("attn_norm")?,
            projection: stack(&projections)?,
            bias: family.biases.then(bias).transpose()?,
            head_norms: family.head_norms.then(head_norms).transpose()?,
            attention_output: stack(&["attn_output"])?,
            attention_post_norm: post_norm("post_attention_norm")?,
            feed_forward_norm: norm("ffn_norm")?,
            gate_and_up: stack(&["ffn_gate", "ffn_up"])?,
            down: stack(&["ffn_down"])?,
            feed_forward_post_norm: post_norm("post_ffw_norm")?,
            cache: Cache::new(config.kv_heads, config.head_size, config.context, device)?,
            kind: config.reach_of[index],
        })
    }

    /// How its matrices are best multiplied; as large as those of any other layer.
    pub fn measure(&self, config: &ModelConfig, device: &Device) -> Computed<Padding> {
        Padding::measured(&self.gate_and_up, config.hidden, device)
    }

    /// `[nodes, hidden]` to `[nodes, hidden]`; caches keys and values from position `at` on.
    pub fn forward(
        &mut self,
        x: &Tensor,
        config: &ModelConfig,
        at: usize,
        sight: &Sight,
        padding: Padding,
    ) -> Computed<Tensor> {
        let epsilon = config.norm_epsilon as f32;
        let mixed = self.attend(&rms_norm(x, &self.attention_norm, epsilon)?, config, at, sight, padding)?;
        let mixed = self.attention_output.forward(&mixed, padding)?;
        let x = (x + normalised(mixed, self.attention_post_norm.as_ref(), epsilon)?)?;

        let normed = rms_norm(&x, &self.feed_forward_norm, epsilon)?;
        let both = self.gate_and_up.forward(&normed, padding)?;
        let intermediate = both.dim(1)? / 2;
        let gate = both.narrow(1, 0, intermediate)?;
        let gate = match config.family.activation {
            Activation::Silu => silu(&gate)?,
            Activation::Gelu => gate.gelu()?,
        };
        let gated = (gate * both.narrow(1, intermediate, intermediate)?)?;
        x + normalised(self.down.forward(&gated, padding)?, self.feed_forward_post_norm.as_ref(), epsilon)?
    }

    /// `[nodes, hidden]` to `[nodes, heads * head_size]`.
    fn attend(
        &mut self,
        x: &Tensor,
        config: &ModelConfig,
        at: usize,
        sight: &Sight,
        padding: Padding,
    ) -> Computed<Tensor> {
        let (heads, kv_heads) = (config.heads, config.kv_heads);
        let mut all = self.projection.forward(x, padding)?;
        if let Some(bias) = &self.bias {
            all = all.broadcast_add(bias)?;
        }
        let all = all.reshape((all.dim(0)?, heads + 2 * kv_heads, config.head_size))?;
        let all = all.transpose(0, 1)?.contiguous()?; // [heads + 2 kv_heads, nodes, head_size]
        let values = all.narrow(0, heads + kv_heads, kv_heads)?;
        let (queries, keys) = match &self.head_norms {
            None => {
                let turned = sight.angles.rotate(&all.narrow(0, 0, heads + kv_heads)?)?;
                (turned.narrow(0, 0, heads)?, turned.narrow(0, heads, kv_heads)?)
            }
            Some((of_queries, of_keys)) => {
                let turned = |first, count, norm| -> Computed<Tensor> {
                    let normed = rms_norm(&all.narrow(0, first, count)?, norm, config.norm_epsilon as f32)?;
                    sight.angles.rotate(&normed)
                };
                (turned(0, heads, of_queries)?, turned(heads, kv_heads, of_keys)?)
            }
        };
        let (keys, values) = self.cache.write(at, &keys, &values)?;
        attend(&queries, &keys, &values, config.query_scale, sight.mask.as_ref())
    }

    /// Moves what is cached at `from` (ascending positions) to the positions from `to` on.
    pub fn gather(&mut self, from: &Tensor, to: usize) -> Computed<()> {
        self.cache.gather(from, to)
    }
}

fn normalised(x: Tensor, norm: Option<&Tensor>, epsilon: f32) -> Computed<Tensor> {
    norm.map_or(Ok(x.clone()), |norm| rms_norm(&x, norm, epsilon))
}
