//! Attention of a layer on the device: completes heads (bias, norm, RoPE), writes the KV cache and
//! attends to the cache and the pass.

use foretoken_model::error::Result;
use foretoken_model::{HeadNorms, ModelConfig, RotaryLayout};
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

/// Rows of a pass and their visible positions.
#[derive(Clone, Copy)]
pub struct Visibility<'a> {
    pub config: &'a ModelConfig,
    /// Offsets in a row of heads.
    pub offsets: HeadOffsets,
    /// Width of a row of attention's output.
    pub width: usize,
    pub rows: usize,
    /// Positions before those in the rows' paths.
    pub cached: usize,
    /// Nodes of the longest path.
    pub longest: usize,
    /// Every position is cached at the place of its text position.
    pub chain: bool,
}

impl AttentionSteps {
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
        let (heads, mixed) = (&state.heads, &state.mixed);
        let rope = [heads, &state.angles[layer.kind], vectors, &buffers.nodes, &cache.keys, &cache.values];
        let together = config.attention_parts().head_norms == HeadNorms::Together;
        let norm_heads = || Step::new(device, Kernel::NormHeads, &[heads, vectors]);
        let unaligned = !config.head_size().is_multiple_of(BLOCK);
        Ok(Self {
            norm_heads: together.then(norm_heads).transpose()?,
            rope: Step::new(device, Kernel::Rope, &rope)?,
            runs: RunSteps::new(device, heads, cache, &buffers.nodes, &buffers.parts, vectors, mixed)?,
            quantise: unaligned.then(|| Quantise::new(device, mixed)).transpose()?,
            gather: Step::new(device, Kernel::Gather, &[&buffers.nodes, &cache.keys, &cache.values])?,
        })
    }

    /// Completes the heads of all rows, caches keys and values, and attends.
    pub fn run(&self, pass: &mut Dispatches, visibility: &Visibility<'_>, layer: &Layer) {
        let (heads, kv_heads) = (visibility.config.heads, visibility.config.kv_heads());
        if let Some(norm_heads) = &self.norm_heads {
            norm_heads.run(pass, &visibility.norm_params(layer), [2, visibility.rows]);
        }
        self.rope.run(pass, &visibility.rope_params(layer, 0), [heads + kv_heads, visibility.rows]);
        self.runs.run(pass, &visibility.attention(layer));
        if let Some(quantise) = &self.quantise {
            quantise.run(pass, visibility.rows);
        }
    }

    /// Completes and caches keys and values of all rows, without attending. Not for families that
    /// norm all heads together.
    pub fn cache_kv(&self, pass: &mut Dispatches, visibility: &Visibility<'_>, layer: &Layer) {
        let (heads, kv_heads) = (visibility.config.heads, visibility.config.kv_heads());
        self.rope.run(pass, &visibility.rope_params(layer, heads), [kv_heads, visibility.rows]);
    }
}

impl Visibility<'_> {
    /// Immediates of `norm_heads.wgsl`.
    fn norm_params(&self, layer: &Layer) -> [u32; 7] {
        let (heads, kv_heads, head_size) = self.config.head_sizes();
        let HeadOffsets { keys, stride, .. } = self.offsets;
        let [stride, queries, keys, first_key] =
            [stride, heads * head_size, kv_heads * head_size, keys].map(|number| number as u32);
        let [query_norm, key_norm] = layer.head_norms;
        [stride, queries, keys, first_key, query_norm, key_norm, (self.config.norm_epsilon as f32).to_bits()]
    }

    /// Immediates of `rope.wgsl`, from head `first` on.
    fn rope_params(&self, layer: &Layer, first: usize) -> [u32; 16] {
        let (heads, kv_heads, head_size) = self.config.head_sizes();
        let rotary = &self.config.attention_kinds[layer.kind].rotary;
        let [query_bias, key_bias, value_bias] = layer.biases;
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
            u32::from(rotary.layout == RotaryLayout::Interleaved),
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
        let (heads, kv_heads, head_size) = self.config.head_sizes();
        Attention {
            heads,
            kv_heads,
            head_size,
            stride: self.offsets.stride,
            gates: self.offsets.gates,
            sinks: layer.sinks,
            width: self.width,
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
