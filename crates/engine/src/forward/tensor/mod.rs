//! The Llama architecture on candle tensors: the path for CUDA and Metal, and on the CPU what the
//! engine made for it is compared with. One pass over a token tree; weights stay quantised.

mod attention;
mod cache;

use std::ops::Range;
use std::sync::Arc;

use candle_core::quantized::{QMatMul, QTensor};
use candle_core::{Device, Module, Tensor};
use candle_nn::ops::{rms_norm, silu};
use candle_nn::rotary_emb::{rope, rope_i};

use self::attention::{attend, mask};
use self::cache::Cache;
use super::{Logits, Model, Peak, Row, admit};
use crate::error::Result;
use crate::model::{ModelConfig, ModelSource, RotaryLayout, Weights};
use crate::trace::TokenId;
use crate::tree::TokenTree;

/// A loaded model and its cache.
pub struct TensorModel {
    config: ModelConfig,
    device: Device,
    embedding: Arc<QTensor>, // [vocabulary, hidden]
    layers: Vec<Layer>,
    output_norm: Tensor, // [hidden]
    output: QMatMul,     // [vocabulary, hidden]
    rotary: Rotary,
    cached: Vec<TokenId>,
    /// How many of `cached` the last pass added.
    last_pass: usize,
    logits: Vec<f32>, // [rows asked for, vocabulary]
    peaks: Vec<Peak>,
}

struct Layer {
    attention_norm: Tensor, // [hidden]
    query: QMatMul,         // [heads * head_size, hidden]
    key: QMatMul,           // [kv_heads * head_size, hidden]
    value: QMatMul,         // [kv_heads * head_size, hidden]
    attention_output: QMatMul,
    feed_forward_norm: Tensor,
    gate: QMatMul, // [intermediate, hidden]
    up: QMatMul,   // [intermediate, hidden]
    down: QMatMul, // [hidden, intermediate]
    cache: Cache,
}

impl TensorModel {
    /// # Errors
    /// A missing or misshapen tensor, or `Error::Compute` when the device has no room.
    pub fn load(source: &ModelSource, device: &Device) -> Result<Self> {
        let config = source.config()?.clone();
        let weights = source.weights(device)?;
        let layers = (0..config.layers)
            .map(|index| Layer::load(&weights, &config, index, device))
            .collect::<Result<_>>()?;
        let embedding = weights.matrix("token_embd.weight")?;
        let output =
            if config.tied_embeddings { Arc::clone(&embedding) } else { weights.matrix("output.weight")? };
        Ok(Self {
            rotary: Rotary::new(&config, device)?,
            output_norm: weights.vector("output_norm.weight")?,
            output: QMatMul::from_arc(output)?,
            embedding,
            layers,
            config,
            device: device.clone(),
            cached: Vec::new(),
            last_pass: 0,
            logits: Vec::new(),
            peaks: Vec::new(),
        })
    }

    /// Hidden states of the nodes from number `first` on, `[nodes, hidden]`.
    fn run_layers(&mut self, tree: &TokenTree, first: usize) -> candle_core::Result<Tensor> {
        let ids: Vec<TokenId> = tree.tokens().skip(first).collect();
        let mut x = self.embedding.embedding(&Tensor::new(ids, &self.device)?)?;
        let at = self.cached.len();
        let mask = mask(tree, first, at - first, &self.device)?;
        let angles = self.rotary.angles(tree, first, at - first)?;
        for layer in &mut self.layers {
            x = layer.forward(&x, &self.config, at, &angles, &mask)?;
        }
        Ok(x)
    }

    /// Logits of the nodes in `rows`, one row after the other.
    fn run_output(&self, hidden: &Tensor, rows: Range<usize>) -> candle_core::Result<Vec<f32>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let hidden = hidden.narrow(0, rows.start, rows.len())?.contiguous()?;
        let hidden = rms_norm(&hidden, &self.output_norm, self.config.norm_epsilon as f32)?;
        self.output.forward(&hidden)?.flatten_all()?.to_vec1()
    }
}

impl Model for TensorModel {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn cached(&self) -> &[TokenId] {
        &self.cached
    }

    fn last_pass(&self) -> usize {
        self.last_pass
    }

    fn pass(&mut self, tree: &TokenTree, first: usize, rows: Range<usize>) -> Result<Logits<'_>> {
        admit(tree, &self.config, self.cached.len() - first)?;
        let vocabulary = self.config.vocabulary;
        let hidden = self.run_layers(tree, first)?;
        self.logits = self.run_output(&hidden, rows.start - first..rows.end - first)?;
        self.peaks = self.logits.chunks(vocabulary).map(|logits| Row::of(logits).peak()).collect();
        self.cached.extend(tree.tokens().skip(first));
        self.last_pass = tree.len();
        Ok(Logits::new(&self.logits, vocabulary, vocabulary, &self.peaks))
    }

    fn keep(&mut self, path: &[usize]) -> Result<()> {
        let start = self.cached.len() - self.last_pass;
        let moved = path.iter().enumerate().skip_while(|&(to, &from)| to == from);
        let moved: Vec<usize> = moved.map(|(_, &from)| from).collect();
        if !moved.is_empty() {
            let to = start + path.len() - moved.len();
            let from: Vec<u32> = moved.iter().map(|&node| (start + node) as u32).collect();
            let from = Tensor::new(from, &self.device)?;
            self.layers.iter_mut().try_for_each(|layer| layer.cache.gather(&from, to))?;
        }
        let kept: Vec<TokenId> = path.iter().map(|&node| self.cached[start + node]).collect();
        self.cached.truncate(start);
        self.cached.extend(kept);
        self.last_pass = path.len();
        Ok(())
    }

    fn truncate(&mut self, length: usize) {
        self.cached.truncate(length);
        self.last_pass = 0;
    }
}

impl Layer {
    fn load(weights: &Weights, config: &ModelConfig, index: usize, device: &Device) -> Result<Self> {
        let linear = |name: &str| -> Result<QMatMul> {
            Ok(QMatMul::from_arc(weights.matrix(&format!("blk.{index}.{name}.weight"))?)?)
        };
        let norm = |name: &str| weights.vector(&format!("blk.{index}.{name}.weight"));
        Ok(Self {
            attention_norm: norm("attn_norm")?,
            query: linear("attn_q")?,
            key: linear("attn_k")?,
            value: linear("attn_v")?,
            attention_output: linear("attn_output")?,
            feed_forward_norm: norm("ffn_norm")?,
            gate: linear("ffn_gate")?,
            up: linear("ffn_up")?,
            down: linear("ffn_down")?,
            cache: Cache::new(config.kv_heads, config.head_size, config.context, device)?,
        })
    }

    /// `[nodes, hidden]` to `[nodes, hidden]`; caches keys and values from position `at` on.
    fn forward(
        &mut self,
        x: &Tensor,
        config: &ModelConfig,
        at: usize,
        angles: &Angles,
        mask: &Tensor,
    ) -> candle_core::Result<Tensor> {
        let epsilon = config.norm_epsilon as f32;
        let normed = rms_norm(x, &self.attention_norm, epsilon)?;
        // [nodes, heads * head_size] to [heads, nodes, head_size]
        let by_head =
            |x: Tensor, heads| x.reshape((x.dim(0)?, heads, config.head_size))?.transpose(0, 1)?.contiguous();
        let queries = angles.rotate(&by_head(self.query.forward(&normed)?, config.heads)?)?;
        let keys = angles.rotate(&by_head(self.key.forward(&normed)?, config.kv_heads)?)?;
        let values = by_head(self.value.forward(&normed)?, config.kv_heads)?;
        let (keys, values) = self.cache.write(at, &keys, &values)?;
        let mixed = attend(&queries, &keys, &values, mask)?;
        let x = (x + self.attention_output.forward(&mixed)?)?;

        let normed = rms_norm(&x, &self.feed_forward_norm, epsilon)?;
        let gated = (silu(&self.gate.forward(&normed)?)? * self.up.forward(&normed)?)?;
        x + self.down.forward(&gated)?
    }
}

/// Rotary position embedding (Su et al. 2021): frequencies, and which halves of a head pair up.
struct Rotary {
    inverse_frequencies: Vec<f32>, // [head_size / 2]
    layout: RotaryLayout,
    device: Device,
}

/// Cosines and sines of every node's position, `[nodes, head_size / 2]`.
struct Angles {
    cosines: Tensor,
    sines: Tensor,
    layout: RotaryLayout,
}

impl Rotary {
    fn new(config: &ModelConfig, device: &Device) -> Result<Self> {
        Ok(Self {
            inverse_frequencies: config.rotary.inverse_frequencies.clone(),
            layout: config.rotary.layout,
            device: device.clone(),
        })
    }

    /// Of the nodes from number `first` on of a tree after `at` positions.
    fn angles(&self, tree: &TokenTree, first: usize, at: usize) -> candle_core::Result<Angles> {
        let angles: Vec<f32> = tree
            .depths()
            .into_iter()
            .skip(first)
            .flat_map(|depth| self.inverse_frequencies.iter().map(move |f| (at + depth) as f32 * f))
            .collect();
        let shape = (tree.len() - first, self.inverse_frequencies.len());
        let each = |function: fn(f32) -> f32| {
            Tensor::from_vec(angles.iter().copied().map(function).collect(), shape, &self.device)
        };
        Ok(Angles { cosines: each(f32::cos)?, sines: each(f32::sin)?, layout: self.layout })
    }
}

impl Angles {
    /// `[heads, nodes, head_size]`, turned by each node's position.
    fn rotate(&self, x: &Tensor) -> candle_core::Result<Tensor> {
        let x = x.unsqueeze(0)?;
        match self.layout {
            RotaryLayout::Interleaved => rope_i(&x, &self.cosines, &self.sines),
            RotaryLayout::Halves => rope(&x, &self.cosines, &self.sines),
        }?
        .squeeze(0)
    }
}
