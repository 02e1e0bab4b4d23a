//! Weights of a model in the form that the kernels take, and how they are loaded.

use std::sync::Arc;

use super::block_head::Convolution;
pub use super::feed_forward::{Dense, Experts, FeedForward};
use super::head::Head;
use super::int8_attention::key_offsets;
use super::latent::Latent;
use super::packing::shared;
pub use super::packing::{ones, panels, vector};
use foretoken_model::error::Result;
use foretoken_model::tables::outer::{
    EMBEDDING, OUTPUT, PER_LAYER_EMBEDDING, PER_LAYER_NORM, PER_LAYER_PROJECTION,
};
use foretoken_model::{
    AttentionKind, HeadNorms as Kind, KeyHeads, MixerSpec, ModelConfig, RecurrentKind, StoredRows, Weights,
};

use super::panels::Panels;
use super::recurrent::{Delta, Mamba, ShortConv};

/// All weights of a model.
#[derive(Debug)]
pub struct Network {
    /// `None` for an assistant, which reads the embedding of its target.
    pub embedding: Option<Arc<Panels>>, // [vocabulary, hidden]
    /// Norm of embeddings in families that have one; its weight is all 1.
    pub embedding_norm: Option<Vec<f32>>, // [hidden]
    pub per_layer: Option<PerLayerInputs>,
    pub layers: Vec<Layer>,
    pub output_norm: Vec<f32>, // [hidden]
    /// Output matrix. For an assistant with token clusters its rows are in the clusters' order,
    /// each cluster padded to whole panels.
    pub output: Arc<Panels>, // [vocabulary, hidden]
    /// `None` for models that run by themselves.
    pub head: Option<Head>,
}

/// Weights that compute the per-layer inputs of all layers (Gemma 4).
#[derive(Debug)]
pub struct PerLayerInputs {
    pub table: StoredRows, // [tokens, layers * width]
    /// Projection of the embedding.
    pub projection: Panels, // [layers * width, hidden]
    /// Norm of the projection, applied layer by layer.
    pub norm: Vec<f32>, // [width]
}

/// A layer: a mixer of tokens and a feed-forward network, each after a norm and added to the state.
/// Parts that a family does not have are `None`. Norms are padded with zeros to whole vectors.
#[derive(Debug)]
pub struct Layer {
    pub mixer_norm: Option<Vec<f32>>,
    pub mixer: Mixer,
    /// Norm of the mixer's output.
    pub mixer_post_norm: Option<Vec<f32>>,
    pub feed_forward_norm: Option<Vec<f32>>,
    pub feed_forward: FeedForward,
    /// Norm of the feed-forward network's output.
    pub feed_forward_post_norm: Option<Vec<f32>>,
    pub per_layer_input: Option<PerLayerInput>,
    /// Factor of the layer's output.
    pub scale: f32,
    /// Convolutions around the mixer and around the feed-forward network (DFlash 2).
    pub convolutions: Option<[Convolution; 2]>,
}

/// A layer's part of per-layer inputs: `projection * (activation(gate * state) * input)`, added to
/// the state after a norm.
#[derive(Debug)]
pub struct PerLayerInput {
    pub gate: Panels,       // [width, hidden]
    pub projection: Panels, // [hidden, width]
    pub norm: Vec<f32>,     // [hidden]
}

/// The part of a layer that mixes tokens.
#[derive(Debug)]
pub enum Mixer {
    Attention(Box<Attention>),
    Latent(Box<Latent>),
    ShortConv(ShortConv),
    Delta(Box<Delta>),
    Mamba(Box<Mamba>),
}

/// Grouped-query attention.
#[derive(Debug)]
pub struct Attention {
    /// Index of its attention kind in the configuration.
    pub kind: usize,
    /// Causal: a row does not attend to later rows of its pass.
    pub causal: bool,
    pub query: Panels, // [heads * head_size, hidden]
    /// `None` in a layer that shares another layer's keys and values.
    pub key: Option<Panels>, // [kv_heads * head_size, hidden]
    /// `None` where values are the keys before norm and rotary embedding.
    pub value: Option<Panels>, // [kv_heads * head_size, hidden]
    /// Norm of values.
    pub value_norm: Option<Vec<f32>>, // [head_size]
    pub biases: Option<Biases>,
    /// Attention sink of each head: a score without a value. Empty in families without sinks.
    pub sinks: Vec<f32>, // [heads padded to LANES]
    pub head_norms: Option<HeadNorms>,
    /// Output gate: the output is multiplied with `sigmoid(gate * x)` of the layer's input.
    pub gate: Option<Panels>, // [heads * head_size, hidden]
    pub output: Panels,                // [hidden, heads * head_size]
    pub output_bias: Option<Vec<f32>>, // [hidden]
}

/// Biases of queries, keys and values.
#[derive(Debug)]
pub struct Biases {
    pub query: Vec<f32>, // [heads * head_size]
    pub key: Vec<f32>,   // [kv_heads * head_size]
    pub value: Vec<f32>, // [kv_heads * head_size]
}

/// Norms of queries and keys: of each head, or of all heads together.
#[derive(Debug)]
pub struct HeadNorms {
    pub together: bool,
    pub query: Vec<f32>, // [head_size] or [heads * head_size]
    pub key: Vec<f32>,   // [head_size] or [kv_heads * head_size]
}

impl Network {
    /// Loads and packs all weights.
    ///
    /// # Errors
    /// `Error::BadModel` for a tensor that is missing, holds numbers that are not finite, or finds
    /// no memory.
    pub fn load(weights: &Weights, config: &ModelConfig) -> Result<Self> {
        let layers =
            (0..config.depth()).map(|index| Layer::load(weights, config, index)).collect::<Result<_>>()?;
        let head = config.draft_head.as_ref().map(|head| Head::load(weights, config, head));
        let head = head.transpose()?;
        let embedding = || shared(weights, EMBEDDING);
        let embedding = config.assistant().is_none().then(embedding).transpose()?;
        let output = match (&embedding, head.as_ref().and_then(Head::clusters)) {
            (Some(embedding), _) if config.tied_embeddings => Arc::clone(embedding),
            (_, Some(clusters)) => Arc::new(clusters.output(weights)?),
            (_, None) => shared(weights, OUTPUT)?,
        };
        Ok(Self {
            layers,
            per_layer: config.per_layer_input().map(|_| PerLayerInputs::load(weights)).transpose()?,
            embedding_norm: config.normed_embeddings.then(|| ones(config.hidden)),
            output_norm: vector(weights, "output_norm.weight")?,
            embedding,
            output,
            head,
        })
    }

    /// Matrices that a pass over one row reads. Counts as many experts as a row uses, and of
    /// clustered output matrices the centroids alone.
    pub fn matrices(&self) -> impl Iterator<Item = &Panels> {
        let per_layer = self.per_layer.iter().map(|per_layer| &per_layer.projection);
        let of_head = self.head.iter().flat_map(Head::matrices);
        let output = self.head.as_ref().and_then(Head::clusters);
        let output = output.map_or(self.output.as_ref(), |clusters| &clusters.centroids);
        of_head.chain(per_layer).chain(self.layers.iter().flat_map(Layer::matrices)).chain([output])
    }

    /// Constant part of a layer's keys, see `int8_attention.rs`; empty where there is none, and
    /// where a sink is compared with scores.
    pub fn key_offsets(&self, layer: usize, config: &ModelConfig) -> Vec<f32> {
        let Mixer::Attention(attention) = &self.layers[layer].mixer else { return Vec::new() };
        let kind = &config.attention_kinds[attention.kind];
        let plain = attention.sinks.is_empty() && attention.head_norms.is_none();
        let biases = attention.biases.as_ref().filter(|_| plain);
        biases.map_or_else(Vec::new, |biases| key_offsets(&biases.key, kind.keys, &kind.rotary))
    }
}

impl PerLayerInputs {
    /// # Errors
    /// As [`Network::load`].
    pub fn load(weights: &Weights) -> Result<Self> {
        Ok(Self {
            table: weights.rows(PER_LAYER_EMBEDDING)?,
            projection: panels(weights, PER_LAYER_PROJECTION)?,
            norm: vector(weights, PER_LAYER_NORM)?,
        })
    }
}

impl Layer {
    pub fn load(weights: &Weights, config: &ModelConfig, index: usize) -> Result<Self> {
        let norm = |part: &str| vector(weights, &format!("blk.{index}.{part}.weight"));
        let spec = &config.layers[index];
        let pre_norm = |part| spec.norms.pre.then(|| norm(part)).transpose();
        let post_norm = |part| spec.norms.post.then(|| norm(part)).transpose();
        let convolutions = config.block().and_then(|block| block.convolution).map(|sizes| -> Result<_> {
            let around = |part| Convolution::load(weights, index, part, sizes);
            Ok([around("attn")?, around("ffn")?])
        });
        Ok(Self {
            mixer_norm: pre_norm("attn_norm")?,
            mixer: Mixer::load(weights, config, index)?,
            mixer_post_norm: post_norm("post_attention_norm")?,
            feed_forward_norm: pre_norm("ffn_norm")?,
            feed_forward: FeedForward::load(weights, config, index)?,
            feed_forward_post_norm: post_norm("post_ffw_norm")?,
            per_layer_input: spec.per_layer_input.map(|_| PerLayerInput::load(weights, index)).transpose()?,
            scale: match spec.output_scale {
                true => norm("layer_output_scale")?[0],
                false => 1.0,
            },
            convolutions: convolutions.transpose()?,
        })
    }

    fn matrices(&self) -> impl Iterator<Item = &Panels> {
        let per_layer = self.per_layer_input.iter().flat_map(|input| [&input.gate, &input.projection]);
        self.mixer.matrices().chain(self.feed_forward.matrices()).chain(per_layer)
    }
}

impl PerLayerInput {
    fn load(weights: &Weights, index: usize) -> Result<Self> {
        let name = |part: &str| format!("blk.{index}.{part}.weight");
        Ok(Self {
            gate: panels(weights, &name("inp_gate"))?,
            projection: panels(weights, &name("proj"))?,
            norm: vector(weights, &name("post_norm"))?,
        })
    }
}

impl Mixer {
    fn load(weights: &Weights, config: &ModelConfig, index: usize) -> Result<Self> {
        Ok(match &config.layers[index].mixer {
            MixerSpec::Attention { kind, .. } => {
                Self::Attention(Box::new(Attention::load(weights, config, index, *kind)?))
            }
            MixerSpec::Latent { kind, sizes } => {
                Self::Latent(Box::new(Latent::load(weights, config, *sizes, index, *kind)?))
            }
            MixerSpec::Recurrent(of) => match of.kind {
                RecurrentKind::ShortConv => Self::ShortConv(ShortConv::load(weights, of, index)?),
                RecurrentKind::Mamba => Self::Mamba(Box::new(Mamba::load(weights, of, index)?)),
                RecurrentKind::Delta => Self::Delta(Box::new(Delta::load(weights, of, index)?)),
            },
        })
    }

    /// First matrix that the mixer reads.
    pub fn first(&self) -> &Panels {
        match self {
            Self::Attention(attention) => &attention.query,
            Self::Latent(latent) => latent.first(),
            Self::ShortConv(short_conv) => &short_conv.projection,
            Self::Delta(delta) => &delta.inputs,
            Self::Mamba(mamba) => &mamba.inputs,
        }
    }

    /// Bias of the mixer's output.
    pub fn output_bias(&self) -> Option<&[f32]> {
        match self {
            Self::Attention(attention) => attention.output_bias.as_deref(),
            _ => None,
        }
    }

    fn matrices(&self) -> impl Iterator<Item = &Panels> {
        let of_latent = match self {
            Self::Latent(latent) => Some(latent.matrices()),
            _ => None,
        };
        let matrices = match self {
            Self::Latent(_) => [None; 5],
            Self::Attention(attention) => {
                let Attention { query, key, value, gate, output, .. } = &**attention;
                [Some(query), key.as_ref(), value.as_ref(), gate.as_ref(), Some(output)]
            }
            Self::ShortConv(ShortConv { projection, output, .. }) => {
                [Some(projection), Some(output), None, None, None]
            }
            Self::Delta(delta) => {
                [&delta.inputs, &delta.gate, &delta.beta, &delta.alpha, &delta.output].map(Some)
            }
            Self::Mamba(mamba) => {
                let Mamba { inputs, gate, dt, output, .. } = &**mamba;
                [Some(inputs), Some(gate), Some(dt), Some(output), None]
            }
        };
        matrices.into_iter().flatten().chain(of_latent.into_iter().flatten())
    }
}

impl Attention {
    /// Loads layer `index`, whose kind of attention is `kind`.
    fn load(weights: &Weights, config: &ModelConfig, index: usize, kind: usize) -> Result<Self> {
        let panels = |part: &str| panels(weights, &format!("blk.{index}.{part}.weight"));
        let vector_of = |part: &str| vector(weights, &format!("blk.{index}.{part}"));
        let AttentionKind { keys, parts, .. } = config.attention_kinds[kind];
        let computes_kv = config.computes_kv(index);
        Ok(Self {
            kind,
            causal: config.block().is_none_or(|block| block.causal[index]),
            query: panels("attn_q")?,
            key: computes_kv.then(|| panels("attn_k")).transpose()?,
            value: (computes_kv && !keys.are_values).then(|| panels("attn_v")).transpose()?,
            value_norm: parts.value_norm.then(|| ones(keys.size)),
            biases: parts.biases.then(|| Biases::load(weights, index)).transpose()?,
            sinks: parts.sinks.then(|| vector_of("attn_sinks.weight")).transpose()?.unwrap_or_default(),
            head_norms: HeadNorms::load(weights, config, index, keys)?,
            gate: parts.gate.then(|| panels("attn_gate")).transpose()?,
            output: panels("attn_output")?,
            output_bias: parts.output_bias.then(|| vector_of("attn_output.bias")).transpose()?,
        })
    }
}

impl Biases {
    fn load(weights: &Weights, index: usize) -> Result<Self> {
        let bias = |part| vector(weights, &format!("blk.{index}.attn_{part}.bias"));
        Ok(Self { query: bias("q")?, key: bias("k")?, value: bias("v")? })
    }
}

impl HeadNorms {
    /// Loads the norms, or `None` for a family without.
    fn load(weights: &Weights, config: &ModelConfig, index: usize, keys: KeyHeads) -> Result<Option<Self>> {
        let kind = config.attention_parts().head_norms;
        if kind == Kind::None {
            return Ok(None);
        }
        let norm = |part: &str, fixed: f32| {
            let name = format!("blk.{index}.attn_{part}_norm.weight");
            match kind == Kind::Fixed && !weights.contains(&name) {
                true => Ok(ones(keys.size).into_iter().map(|one| one * fixed).collect()),
                false => vector(weights, &name),
            }
        };
        let key = if config.computes_kv(index) { norm("k", 1.0)? } else { Vec::new() };
        let query = norm("q", config.query_norm)?;
        Ok(Some(Self { together: kind == Kind::Together, query, key }))
    }
}
