//! Attention of a layer on the device: completes heads (bias, norm, RoPE), writes the KV cache and
//! attends to the cache and the pass.

use foretoken_model::error::Result;
use foretoken_model::{HeadNorms, KeyHeads, ModelConfig, RotaryLayout};
use wgpu::Buffer;

use super::cache::Cache;
use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::{Kernel, NONE};
use super::network::Layer;
use super::runs::{Attention, RunSteps};
use super::state::{HeadOffsets, State};
use super::step::{Quantise, Step};
use crate::cpu::activations::BLOCK;
use crate::cpu::simd::LANES;

/// Kernels of a layer's attention, bound to its KV cache. They are bound again when the cache has
/// grown.
pub struct AttentionSteps {
    /// For families that norm all heads of a row together.
    norm_heads: Option<Step>,
    rope: Step,
    runs: RunSteps,
    /// For heads that are not whole blocks.
    quantise: Option<Quantise>,
    pub gather: Step,
}

/// Buffers of attention beside the caches, shared by all layers.
pub struct AttentionBuffers {
    /// Masks of the rows, or the positions to move.
    pub nodes: Buffer,
    /// Parts of the runs: see `attend.wgsl`.
    pub parts: Buffer,
    /// Positions that a row of `parts` covers.
    pub positions: usize,
}

/// Rows of a pass and their visible positions, for the heads of a layer.
#[derive(Clone, Copy)]
pub struct Visibility<'a> {
    pub config: &'a ModelConfig,
    pub keys: KeyHeads,
    /// Offsets in a row of heads.
    pub offsets: HeadOffsets,
    pub rows: usize,
    /// Positions before those in the rows' paths.
    pub cached: usize,
    /// Nodes of the longest path.
    pub longest: usize,
    /// Every position is cached at the place of its text position.
    pub chain: bool,
}

impl AttentionSteps {
    /// Binds the kernels of a layer to a cache, which is its own or another layer's.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn new(
        device: &GpuDevice,
        layer: &Layer,
        cache: &Cache,
        vectors: &Buffer,
        state: &State,
        buffers: &AttentionBuffers,
        config: &ModelConfig,
    ) -> Result<Self> {
        let KeyHeads { size, .. } = config.attention_kinds[layer.kind].keys;
        let (heads, mixed) = (&state.heads, &state.mixed.of(config.heads * size));
        let rope = [heads, &state.angles[layer.kind], vectors, &buffers.nodes, &cache.keys, &cache.values];
        let together = config.attention_parts().head_norms == HeadNorms::Together;
        let norm_heads = || Step::new(device, Kernel::NormHeads, &[heads, vectors]);
        let unaligned = !size.is_multiple_of(BLOCK);
        Ok(Self {
            norm_heads: together.then(norm_heads).transpose()?,
            rope: Step::new(device, Kernel::Rope, &rope)?,
            runs: RunSteps::new(device, heads, cache, &buffers.nodes, &buffers.parts, vectors, mixed)?,
            quantise: unaligned.then(|| Quantise::new(device, mixed)).transpose()?,
            gather: Step::new(device, Kernel::Gather, &[&buffers.nodes, &cache.keys, &cache.values])?,
        })
    }

    /// Completes the heads of all rows, caches keys and values where the layer has some, and
    /// attends.
    pub fn run(&self, pass: &mut Dispatches, visibility: &Visibility<'_>, layer: &Layer) {
        let (heads, kv_heads, _) = visibility.head_sizes();
        if let Some(norm_heads) = &self.norm_heads {
            norm_heads.run(pass, &visibility.norm_params(layer), [2, visibility.rows]);
        }
        let completed = if layer.computes_kv { heads + kv_heads } else { heads };
        self.rope.run(pass, &visibility.rope_params(layer, 0), [completed, visibility.rows]);
        self.runs.run(pass, &visibility.attention(layer));
        if let Some(quantise) = &self.quantise {
            quantise.run(pass, visibility.rows);
        }
    }

    /// Completes and caches keys and values of all rows, without attending. Not for families that
    /// norm all heads together.
    pub fn cache_kv(&self, pass: &mut Dispatches, visibility: &Visibility<'_>, layer: &Layer) {
        let (heads, kv_heads, _) = visibility.head_sizes();
        self.rope.run(pass, &visibility.rope_params(layer, heads), [kv_heads, visibility.rows]);
    }
}

impl Visibility<'_> {
    /// Number of query heads, of key-value heads, and their size.
    fn head_sizes(&self) -> (usize, usize, usize) {
        (self.config.heads, self.keys.count, self.keys.size)
    }

    /// Immediates of `norm_heads.wgsl`.
    fn norm_params(&self, layer: &Layer) -> [u32; 7] {
        let (heads, kv_heads, head_size) = self.head_sizes();
        let HeadOffsets { keys, stride, .. } = self.offsets;
        let [stride, queries, keys, first_key] =
            [stride, heads * head_size, kv_heads * head_size, keys].map(|number| number as u32);
        let [query_norm, key_norm] = layer.head_norms;
        [stride, queries, keys, first_key, query_norm, key_norm, (self.config.norm_epsilon as f32).to_bits()]
    }

    /// Immediates of `rope.wgsl`, from head `first` on.
    fn rope_params(&self, layer: &Layer, first: usize) -> [u32; 16] {
        let (heads, kv_heads, head_size) = self.head_sizes();
        let rotary = &self.config.attention_kinds[layer.kind].rotary;
        let [query_bias, key_bias, value_bias] = layer.biases;
        let value_bias = if self.keys.are_values { key_bias } else { value_bias };
        let interleaved = u32::from(rotary.layout == RotaryLayout::Interleaved);
        let [query_norm, key_norm] = match self.config.attention_parts().head_norms {
            HeadNorms::Together => [NONE; 2],
            _ => layer.head_norms,
        };
        [
            heads as u32,
            kv_heads as u32,
            head_size as u32,
            self.offsets.stride as u32,
            self.offsets.keys as u32,
            self.offsets.values as u32,
            rotary.size() as u32 / 2,
            interleaved | u32::from(self.config.attention_parts().value_norm) << 1,
            query_bias,
            key_bias,
            value_bias,
            query_norm,
            key_norm,
            (self.config.norm_epsilon as f32).to_bits(),
            first as u32,
            if rotary.attn_temperature.is_some() { self.rows as u32 } else { 0 },
        ]
    }

    /// Softmax attention of a layer.
    pub fn attention(&self, layer: &Layer) -> Attention {
        let (heads, kv_heads, head_size) = self.head_sizes();
        Attention {
            heads,
            kv_heads,
            head_size,
            stride: self.offsets.stride,
            gates: self.offsets.gates,
            sinks: layer.sinks,
            heads_apart: false,
            width: (heads * head_size).next_multiple_of(LANES),
            scale: self.config.query_scale,
            rows: self.rows,
            cached: self.cached,
            longest: self.longest,
            chain: self.chain,
            window: self.config.attention_kinds[layer.kind].window,
            bidirectional: !layer.causal,
        }
    }
}

impl AttentionBuffers {
    /// Allocates for caches of `positions` positions, and `words` words of masks.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn new(device: &GpuDevice, config: &ModelConfig, positions: usize, words: usize) -> Result<Self> {
        let (heads, _, head_size) = config.head_sizes();
        let parts = RunSteps::parts(device, heads, head_size, positions)?;
        Ok(Self { nodes: device.buffer(4 * words)?, parts, positions })
    }
}
