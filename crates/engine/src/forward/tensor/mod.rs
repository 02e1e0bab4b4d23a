//! All families on candle tensors: the path for CUDA and Metal, and on the CPU what the
//! engine made for it is compared with. One pass over a token tree; weights stay quantised.

mod attention;
mod cache;

use std::ops::Range;
use std::sync::Arc;

use candle_core::quantized::{QMatMul, QTensor};
use candle_core::{D, Device, Module, Tensor};
use candle_nn::ops::{rms_norm, silu};
use candle_nn::rotary_emb::{rope, rope_i};

use self::attention::{attend, mask};
use self::cache::Cache;
use super::{Logits, Model, Peak, Row, admit};
use crate::error::Result;
use crate::model::{Activation, ModelConfig, ModelSource, Reach, RotaryLayout, Weights};
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
    cached: Vec<TokenId>,
    /// How many of `cached` the last pass added.
    last_pass: usize,
    logits: Vec<f32>, // [rows asked for, vocabulary]
    peaks: Vec<Peak>,
}

struct Layer {
    attention_norm: Tensor, // [hidden]
    query: Projection,      // [heads * head_size, hidden]
    key: Projection,        // [kv_heads * head_size, hidden]
    value: Projection,      // [kv_heads * head_size, hidden]
    attention_output: QMatMul,
    /// Of what attention gives, if the family has one.
    attention_post_norm: Option<Tensor>,
    feed_forward_norm: Tensor,
    gate: QMatMul, // [intermediate, hidden]
    up: QMatMul,   // [intermediate, hidden]
    down: QMatMul, // [hidden, intermediate]
    /// Of what the feed-forward network gives, if the family has one.
    feed_forward_post_norm: Option<Tensor>,
    cache: Cache,
    /// Its index among the kinds of attention.
    kind: usize,
}

/// What makes queries, keys or values, with what the family has of it.
struct Projection {
    weight: QMatMul,
    bias: Option<Tensor>, // [heads * head_size]
    norm: Option<Tensor>, // [head_size]
}

/// What the layers with one kind of attention know of the nodes of a pass.
struct Positions {
    mask: Tensor, // [nodes, cached + tree]
    angles: Angles,
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
        if self.config.family.scaled_embeddings {
            x = (x * f64::from(self.config.embedding_scale()))?;
        }
        let at = self.cached.len();
        let kinds = self.config.reaches.iter();
        let kinds = kinds.map(|reach| Positions::new(reach, tree, first, at - first, &self.device));
        let kinds: Vec<Positions> = kinds.collect::<candle_core::Result<_>>()?;
        for layer in &mut self.layers {
            x = layer.forward(&x, &self.config, at, &kinds[layer.kind])?;
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
        let family = config.family;
        let linear = |name: &str| -> Result<QMatMul> {
            Ok(QMatMul::from_arc(weights.matrix(&format!("blk.{index}.{name}.weight"))?)?)
        };
        let norm = |name: &str| weights.vector(&format!("blk.{index}.{name}.weight"));
        let bias = |name: &str| weights.vector(&format!("blk.{index}.{name}.bias"));
        let post_norm = |name| family.post_norms.then(|| norm(name)).transpose();
        let projection = |name: &str, head_norm: Option<&str>| -> Result<Projection> {
            let head_norm = head_norm.filter(|_| family.head_norms);
            Ok(Projection {
                weight: linear(name)?,
                bias: family.biases.then(|| bias(name)).transpose()?,
                norm: head_norm.map(norm).transpose()?,
            })
        };
        Ok(Self {
            attention_norm: norm("attn_norm")?,
            query: projection("attn_q", Some("attn_q_norm"))?,
            key: projection("attn_k", Some("attn_k_norm"))?,
            value: projection("attn_v", None)?,
            attention_output: linear("attn_output")?,
            attention_post_norm: post_norm("post_attention_norm")?,
            feed_forward_norm: norm("ffn_norm")?,
            gate: linear("ffn_gate")?,
            up: linear("ffn_up")?,
            down: linear("ffn_down")?,
            feed_forward_post_norm: post_norm("post_ffw_norm")?,
            cache: Cache::new(config.kv_heads, config.head_size, config.context, device)?,
            kind: config.reach_of[index],
        })
    }

    /// `[nodes, hidden]` to `[nodes, hidden]`; caches keys and values from position `at` on.
    fn forward(
        &mut self,
        x: &Tensor,
        config: &ModelConfig,
        at: usize,
        positions: &Positions,
    ) -> candle_core::Result<Tensor> {
        let epsilon = config.norm_epsilon as f32;
        let normed = rms_norm(x, &self.attention_norm, epsilon)?;
        let Positions { mask, angles } = positions;
        let queries = angles.rotate(&self.query.forward(&normed, config, config.heads)?)?;
        let keys = angles.rotate(&self.key.forward(&normed, config, config.kv_heads)?)?;
        let values = self.value.forward(&normed, config, config.kv_heads)?;
        let (keys, values) = self.cache.write(at, &keys, &values)?;
        let mixed = attend(&queries, &keys, &values, config.query_scale, mask)?;
        let mixed = self.attention_output.forward(&mixed)?;
        let x = (x + normalised(mixed, self.attention_post_norm.as_ref(), epsilon)?)?;

        let normed = rms_norm(&x, &self.feed_forward_norm, epsilon)?;
        let gate = self.gate.forward(&normed)?;
        let gate = match config.family.activation {
            Activation::Silu => silu(&gate)?,
            Activation::Gelu => gate.gelu()?,
        };
        let gated = self.down.forward(&(gate * self.up.forward(&normed)?)?)?;
        x + normalised(gated, self.feed_forward_post_norm.as_ref(), epsilon)?
    }
}

fn normalised(x: Tensor, norm: Option<&Tensor>, epsilon: f32) -> candle_core::Result<Tensor> {
    norm.map_or(Ok(x.clone()), |norm| rms_norm(&x, norm, epsilon))
}

impl Projection {
    /// `[nodes, hidden]` to `[heads, nodes, head_size]`.
    fn forward(&self, x: &Tensor, config: &ModelConfig, heads: usize) -> candle_core::Result<Tensor> {
        let mut x = self.weight.forward(x)?;
        if let Some(bias) = &self.bias {
            x = x.broadcast_add(bias)?;
        }
        let x = x.reshape((x.dim(0)?, heads, config.head_size))?.transpose(0, 1)?.contiguous()?;
        normalised(x, self.norm.as_ref(), config.norm_epsilon as f32)
    }
}

impl Positions {
    /// Of the nodes from number `first` on of a tree after `at` positions.
    fn new(
        reach: &Reach,
        tree: &TokenTree,
        first: usize,
        at: usize,
        device: &Device,
    ) -> candle_core::Result<Self> {
        let positions: Vec<usize> = tree.depths().into_iter().skip(first).map(|depth| at + depth).collect();
        let (mut cosines, mut sines) = (Vec::new(), Vec::new());
        reach.rotary.turns(&positions, &mut cosines, &mut sines);
        let shape = (positions.len(), reach.rotary.size() / 2);
        let angles = Angles {
            cosines: Tensor::from_vec(cosines, shape, device)?,
            sines: Tensor::from_vec(sines, shape, device)?,
            layout: reach.rotary.layout,
        };
        Ok(Self { mask: mask(tree, first, at, reach.window, device)?, angles })
    }
}

/// Cosines and sines of every node's position, `[nodes, turned / 2]`.
struct Angles {
    cosines: Tensor,
    sines: Tensor,
    layout: RotaryLayout,
}

impl Angles {
    /// `[heads, nodes, head_size]`, the first components turned by each node's position.
    fn rotate(&self, x: &Tensor) -> candle_core::Result<Tensor> {
        let (head_size, turned) = (x.dim(D::Minus1)?, 2 * self.cosines.dim(1)?);
        if turned < head_size {
            let rest = x.narrow(D::Minus1, turned, head_size - turned)?;
            let first = self.rotate(&x.narrow(D::Minus1, 0, turned)?.contiguous()?)?;
            return Tensor::cat(&[first, rest], D::Minus1);
        }
        let x = x.unsqueeze(0)?;
        match self.layout {
            RotaryLayout::Interleaved => rope_i(&x, &self.cosines, &self.sines),
            RotaryLayout::Halves => rope(&x, &self.cosines, &self.sines),
        }?
        .squeeze(0)
    }
}
