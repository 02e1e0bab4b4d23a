//! Model configuration: sizes and options of a model, whatever the file format. `reader` builds it
//! from settings under GGUF's key names, which `gguf` takes from a header and `json` from a
//! config.json whose keys it renames. Rejects models that would be computed wrongly; touches no
//! weights.

mod assistant;
mod assistant_keys;
mod attention;
mod block_head;
mod block_keys;
mod draft_head;
mod experts;
mod gguf;
mod json;
mod key_heads;
mod keys;
mod latent;
mod layer;
mod reader;
mod recurrence;
mod rotary;

use std::path::Path;

pub use assistant::{Assistant, Clusters};
pub use attention::{AttentionKind, AttentionParts, HeadNorms};
pub use block_head::{BlockHead, Confidence, Convolution, Correction, Domino, LiliCorr, Selector};
pub use draft_head::{DraftHead, Eagle3, FusedNorms, HeadKind};
pub use experts::{Experts, SigmoidGating};
pub use key_heads::{KeyHeads, KvDtype, MAX_INT8_HEAD_SIZE};
pub use latent::Latent;
pub use layer::{FeedForwardSpec, LayerNorms, LayerSpec, MixerSpec, SharedExpert};
pub use recurrence::{Heads, Recurrence};
pub use rotary::{AttnTemperature, RopeScaling, RopeTable, Rotary};

use self::key_heads::MAX_HEAD_SIZE;
use super::family::{Activation, Family};
use crate::error::{Error, Result};

/// Upper bound of any size, far above real models; keeps an untrusted header from asking for absurd
/// allocations.
const MAX_SIZE: u64 = 1 << 24;

/// Upper bound of the number of layers, far above real models.
const MAX_LAYERS: usize = 1 << 12;

/// Sizes of a model, and the options that its family leaves to the file.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    pub family: &'static Family,
    /// Name of the model according to its file.
    pub name: Option<String>,
    /// Rows of the output matrix; token ids are below this. The embedding has as many, except in a
    /// [draft head](DraftHead).
    pub vocabulary: usize,
    pub hidden: usize,
    pub layers: Vec<LayerSpec>,
    /// Kinds of attention that the layers have.
    pub attention_kinds: Vec<AttentionKind>,
    /// Number of query heads.
    pub heads: usize,
    /// Activation function of the feed-forward gates.
    pub activation: Activation,
    /// True if embeddings are normalised, by a norm without weights.
    pub normed_embeddings: bool,
    /// Context length the model was trained with, in tokens.
    pub context: usize,
    pub norm_epsilon: f64,
    /// Epsilon of the norms after attention and the feed-forward network.
    pub post_norm_epsilon: f64,
    /// Factor of the embeddings.
    pub embedding_scale: f32,
    /// Hidden states divided by the states that run through the layers. With a residual multiplier
    /// m (Granite), layers run on states divided by m, which RMS norms do not notice.
    pub state_scale: f32,
    /// Factor of normalised queries, in a family with
    /// [`HeadNorms::Fixed`].
    pub query_norm: f32,
    /// Factor of the products of queries and keys, usually 1 / sqrt(head_size).
    pub query_scale: f32,
    pub scoring: Scoring,
    /// Number of multi-token prediction blocks after the layers, according to the file. Only a
    /// [draft head](Self::mtp_head) runs one.
    pub mtp_layers: usize,
    /// Number of first layers after which states of pictures are added (DeepStack); `None` for a
    /// folder, whose vision model says so.
    pub deepstack: Option<usize>,
    /// True if the embedding is the output matrix too.
    pub tied_embeddings: bool,
    /// Options of a draft head, which cannot run without its target.
    pub draft_head: Option<DraftHead>,
    /// Format of cached keys and values, which no file prescribes.
    pub kv_dtype: KvDtype,
}

/// Scale and soft cap that turn the output matrix's products into logits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scoring {
    pub scale: f32,
    /// Scores x become `cap * tanh(x / cap)`.
    pub cap: Option<f32>,
}

impl Scoring {
    pub const PLAIN: Self = Self { scale: 1.0, cap: None };
}

impl ModelConfig {
    /// Returns the kind of attention of `layer`; `None` for a recurrent layer.
    pub fn attention(&self, layer: usize) -> Option<&AttentionKind> {
        self.layers[layer].mixer.attention_kind().map(|kind| &self.attention_kinds[kind])
    }

    /// Kind of attention of each attention layer, as an index into `attention_kinds`.
    pub fn kinds(&self) -> impl Iterator<Item = usize> {
        self.layers.iter().filter_map(|layer| layer.mixer.attention_kind())
    }

    /// Returns the layer whose cached keys and values `layer` reads.
    pub fn cache_of(&self, layer: usize) -> usize {
        match self.layers[layer].mixer {
            MixerSpec::Attention { shares_kv_with: Some(other), .. } => other,
            _ => layer,
        }
    }

    /// Returns the key heads that `layer` caches; `None` for a recurrent layer and for one that
    /// reads another layer's cache.
    pub fn cached_keys(&self, layer: usize) -> Option<KeyHeads> {
        let caches = self.layers[layer].mixer.has_cache();
        self.attention(layer).filter(|_| caches).map(|kind| kind.keys)
    }

    /// Bytes of the keys and values of `tokens` tokens.
    pub fn kv_bytes(&self, tokens: usize) -> usize {
        let cached = (0..self.depth()).filter_map(|layer| self.cached_keys(layer));
        cached.map(|keys| self.kv_dtype.bytes(keys)).sum::<usize>() * tokens
    }

    /// Checks that keys and values can be cached in [`Self::kv_dtype`].
    ///
    /// # Errors
    /// `Error::Setting`.
    pub fn check_kv_dtype(&self) -> Result<()> {
        let refuse = |expected| {
            Err(Error::Setting { name: "KV cache dtype", expected, found: self.kv_dtype.to_string() })
        };
        if self.kv_dtype == KvDtype::F16 {
            Ok(())
        } else if self.latent().is_some() {
            refuse("f16 for a model with latent attention (MLA)")
        } else if self.draft_head.is_some() {
            refuse("f16 for a draft head")
        } else if self.attention_kinds.iter().any(|kind| !kind.keys.fit_int8()) {
            refuse("f16 for a model whose head size is not a multiple of four up to 512")
        } else {
            Ok(())
        }
    }

    /// Bytes of the keys and values of a token in 8 bits; `None` if they have to be in 16.
    pub fn int8_kv_bytes(&self) -> Option<usize> {
        let rounded = Self { kv_dtype: KvDtype::Int8, ..self.clone() };
        rounded.check_kv_dtype().is_ok().then(|| rounded.kv_bytes(1))
    }

    /// Extension of RoPE to a longer context in layers with full attention; `None` without one.
    pub fn rope_scaling(&self) -> Option<RopeScaling> {
        self.attention_kinds.iter().find_map(|kind| kind.rotary.scaling)
    }

    /// Returns whether `layer` computes keys and values. An assistant's layers read its target's.
    pub fn computes_kv(&self, layer: usize) -> bool {
        self.layers[layer].mixer.has_cache() && self.assistant().is_none()
    }

    /// Optional parts of grouped-query attention.
    pub fn attention_parts(&self) -> AttentionParts {
        self.attention_kinds.first().map_or(AttentionParts::NONE, |kind| kind.parts)
    }

    /// Width of the per-layer input of each layer (Gemma 4).
    pub fn per_layer_input(&self) -> Option<usize> {
        self.layers.first()?.per_layer_input
    }

    /// Returns whether outputs of mixers and feed-forward networks are normalised.
    pub fn has_post_norms(&self) -> bool {
        self.layers.iter().any(|layer| layer.norms.post)
    }

    /// Number of layers.
    pub fn depth(&self) -> usize {
        self.layers.len()
    }

    /// Largest number of key-value heads of any kind of attention.
    pub fn kv_heads(&self) -> usize {
        self.largest(|keys| keys.count)
    }

    /// Largest head size of any kind of attention; the size of a cached latent in latent attention.
    pub fn head_size(&self) -> usize {
        self.largest(|keys| keys.size)
    }

    /// Number of query heads, of key-value heads, and their size, where all layers have the same.
    pub fn head_sizes(&self) -> (usize, usize, usize) {
        (self.heads, self.kv_heads(), self.head_size())
    }

    fn largest(&self, of: impl Fn(&KeyHeads) -> usize) -> usize {
        self.attention_kinds.iter().map(|kind| of(&kind.keys)).max().unwrap_or(1)
    }

    /// Largest width of a layer's dense network or shared expert; without either, of an expert.
    pub fn intermediate(&self) -> usize {
        let feed_forwards = || self.layers.iter().map(|layer| &layer.feed_forward);
        let experts = || feed_forwards().filter_map(|feed_forward| Some(feed_forward.experts()?.width));
        feed_forwards().filter_map(FeedForwardSpec::width).max().or_else(|| experts().max()).unwrap_or(0)
    }

    /// Sizes of the experts, which are the same in all layers that have some.
    pub fn experts(&self) -> Option<&Experts> {
        self.layers.iter().find_map(|layer| layer.feed_forward.experts())
    }

    /// Sizes of the recurrent layers, which are the same in all of them.
    pub fn recurrence(&self) -> Option<&Recurrence> {
        self.layers.iter().find_map(|layer| layer.mixer.recurrence())
    }

    /// Sizes of multi-head latent attention, which are the same in all layers.
    pub fn latent(&self) -> Option<&Latent> {
        self.layers.iter().find_map(|layer| match &layer.mixer {
            MixerSpec::Latent { sizes, .. } => Some(sizes),
            _ => None,
        })
    }

    /// Context length at which LongRoPE switches factors, if the model uses it. The pass that first
    /// exceeds it recomputes the whole text.
    pub fn rope_switch_length(&self) -> Option<usize> {
        self.attention_kinds
            .iter()
            .find_map(|kind| Some(kind.rotary.long_frequencies.as_ref()?.original_context))
    }

    /// Epsilon of norms inside a branch, which the residual scaling does not touch.
    pub fn inner_epsilon(&self) -> f64 {
        self.norm_epsilon * f64::from(self.state_scale) * f64::from(self.state_scale)
    }

    /// Returns whether a text of `length` tokens exceeds [`Self::rope_switch_length`].
    pub fn is_long(&self, length: usize) -> bool {
        self.rope_switch_length().is_some_and(|switch| length > switch)
    }

    /// Checks conditions between sizes that hold for every file format.
    fn validated(self, path: &Path) -> Result<Self> {
        for AttentionKind { keys, .. } in &self.attention_kinds {
            if !self.heads.is_multiple_of(keys.count) {
                let found = format!("{} heads and {} key-value heads", self.heads, keys.count);
                return Err(bad(path, "key-value heads that divide the heads".into(), found));
            }
            if !keys.size.is_multiple_of(2) {
                return Err(bad(path, "an even head size".into(), keys.size.to_string()));
            }
        }
        if let Some(Experts { count, top_k, .. }) = self.experts()
            && top_k > count
        {
            return Err(bad(path, format!("up to {count} experts per token"), top_k.to_string()));
        }
        let scale = self.experts().map(|experts| experts.scale);
        let epsilons = [self.norm_epsilon, self.post_norm_epsilon];
        if let Some(found) = epsilons.into_iter().find(|epsilon| !(*epsilon > 0.0 && *epsilon < 1.0)) {
            return Err(bad(path, "an RMS norm epsilon between 0 and 1".into(), found.to_string()));
        }
        let scales = [
            ("query scale", self.query_scale),
            ("embedding scale", self.embedding_scale),
            ("residual scale", self.state_scale),
            ("scale of normed queries", self.query_norm),
            ("logit scale", self.scoring.scale),
            ("bound for logits", self.scoring.cap.unwrap_or(1.0)),
            ("scale of experts", scale.unwrap_or(1.0)),
        ];
        if let Some((name, found)) =
            scales.into_iter().find(|(_, scale)| !(scale.is_finite() && *scale > 0.0))
        {
            return Err(bad(path, format!("a positive {name}"), found.to_string()));
        }
        if !self.attention_kinds.iter().all(|kind| kind.rotary.is_sound()) {
            let found = "some that are not".into();
            return Err(bad(path, "positive rotary frequencies".into(), found));
        }
        let partly = |kind: &AttentionKind| {
            kind.rotary.attn_temperature.is_some() && kind.rotary.size() != kind.keys.size
        };
        if self.attention_kinds.iter().any(partly) {
            let expected = "rotary positions on whole heads where queries grow with them";
            return Err(bad(path, expected.into(), "positions on a part".into()));
        }
        Ok(self)
    }
}

/// Granite's multipliers, as the file gives them; 1 where it gives none.
struct Multipliers {
    embeddings: f64,
    /// Factor of the outputs of attention and the feed-forward network (`residual_multiplier`).
    branches: f64,
    /// Factor of the products of queries and keys; `None` for the usual one.
    products: Option<f64>,
    /// Divisor of the logits.
    logits: f64,
}

impl Multipliers {
    /// Sets the scales of `config`. A residual multiplier m is folded into the state: x + m
    /// f(norm(x)) = m (x / m + f(norm(x / m))). States divided by m need no multiplication in any
    /// layer, and the norms are unchanged if epsilon is divided by m^2.
    fn apply(&self, path: &Path, config: &mut ModelConfig) -> Result<()> {
        let products = self.products.unwrap_or(1.0);
        for (name, found) in [
            ("embedding scale", self.embeddings),
            ("residual scale", self.branches),
            ("attention scale", products),
            ("logit scale", self.logits),
        ] {
            positive(path, name, found)?;
        }
        config.state_scale = self.branches as f32;
        config.embedding_scale = (self.embeddings / self.branches) as f32;
        config.norm_epsilon /= self.branches * self.branches;
        config.scoring.scale = (1.0 / self.logits) as f32;
        if let Some(scale) = self.products {
            config.query_scale = scale as f32;
        }
        Ok(())
    }
}

/// Returns `found` if it is finite and above 0.
fn positive(path: &Path, name: &str, found: f64) -> Result<f64> {
    if found.is_finite() && found > 0.0 {
        return Ok(found);
    }
    Err(bad(path, format!("a positive number for {name}"), found.to_string()))
}

/// 1 / sqrt(scalar)
fn query_scale(scalar: f64) -> f32 {
    1.0 / (scalar as f32).sqrt()
}

/// Returns the window, or `None` if it is 0 or covers the whole context.
fn window(found: usize, context: usize) -> Option<usize> {
    (1..context).contains(&found).then_some(found)
}

/// Returns `found` if it is between 1 and [`MAX_SIZE`].
fn size(path: &Path, key: &str, found: u64) -> Result<usize> {
    match found {
        0 => Err(bad(path, format!("a size in {key}"), "none".into())),
        1..=MAX_SIZE => Ok(found as usize),
        _ => Err(bad(path, format!("{key} of at most {MAX_SIZE}"), found.to_string())),
    }
}

/// Returns a number of layers that is at most [`MAX_LAYERS`].
fn layers(path: &Path, found: usize) -> Result<usize> {
    if found > MAX_LAYERS {
        return Err(bad(path, format!("at most {MAX_LAYERS} layers"), found.to_string()));
    }
    Ok(found)
}

/// Checks the number of rotated components of a head.
fn rotary_size(path: &Path, found: usize, head_size: usize) -> Result<usize> {
    if head_size > MAX_HEAD_SIZE {
        return Err(bad(path, format!("a head size of at most {MAX_HEAD_SIZE}"), head_size.to_string()));
    }
    if found > head_size || found == 0 || !found.is_multiple_of(2) {
        let expected = format!("an even rotary size up to the head size {head_size}");
        return Err(bad(path, expected, found.to_string()));
    }
    Ok(found)
}

/// Returns `factors` if there is one for each of `count` frequencies.
fn check_factors(path: &Path, name: &str, count: usize, factors: Vec<f64>) -> Result<Vec<f64>> {
    if factors.len() != count {
        return Err(bad(path, format!("{count} values in {name}"), factors.len().to_string()));
    }
    Ok(factors)
}

fn bad_scaling(path: &Path, found: &str) -> Error {
    let expected = "rotary positions that are unscaled or scaled by 'linear', 'llama3', 'yarn' or 'longrope'";
    bad(path, expected.into(), format!("'{found}'"))
}

fn bad(path: &Path, expected: String, found: String) -> Error {
    Error::BadModel { path: path.to_owned(), expected, found, hint: "Choose another model." }
}
