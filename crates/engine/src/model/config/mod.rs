//! Model configuration: sizes and options of a model, whatever the file format. `reader` builds it
//! from settings under GGUF's key names, which `gguf` takes from a header and `json` from a
//! config.json whose keys it renames. Rejects models that would be computed wrongly; touches no
//! weights.

mod assistant;
mod assistant_keys;
mod block_head;
mod block_keys;
mod draft_head;
mod gguf;
mod json;
mod key_heads;
mod keys;
mod latent;
mod reader;
mod recurrence;
mod rotary;

use std::path::Path;

pub use assistant::{Assistant, Clusters};
pub use block_head::{BlockHead, Confidence, Convolution, Selector};
pub use draft_head::{DraftHead, FusedNorms};
pub use key_heads::KeyHeads;
pub use latent::Latent;
pub use recurrence::{Heads, Recurrence};
pub use rotary::{AttnTemperature, RopeTable, Rotary};

use self::key_heads::MAX_HEAD_SIZE;
use self::recurrence::mixers;
use super::family::{ExpertOptions, Family, Gating, Mixer, SharedExpert};
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
    pub intermediate: usize,
    /// Feed-forward width of each layer, where layers differ; `intermediate` is then the largest.
    pub intermediates: Vec<usize>,
    /// Mixture of experts, in place of the feed-forward network of every layer or beside it.
    pub experts: Option<Experts>,
    pub layers: usize,
    pub heads: usize,
    /// Largest number of key-value heads of any kind of attention.
    pub kv_heads: usize,
    /// Largest head size of any kind of attention.
    pub head_size: usize,
    /// Number of leading layers that have keys and values of their own. A later layer reads the
    /// cache of the last of these with its kind of attention.
    pub layers_with_kv: usize,
    /// Width of the per-layer input embedding (Gemma 4).
    pub per_layer: Option<usize>,
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
    /// [`HeadNorms::Fixed`](super::family::HeadNorms).
    pub query_norm: f32,
    /// Sizes of multi-head latent attention; `kv_heads` and `head_size` then describe the cached
    /// latent.
    pub latent: Option<Latent>,
    /// Factor of the products of queries and keys, usually 1 / sqrt(head_size).
    pub query_scale: f32,
    pub scoring: Scoring,
    /// Kinds of attention that the layers have.
    pub attention_kinds: Vec<AttentionKind>,
    /// Kind of attention of each layer, as an index into `attention_kinds`.
    pub attention_kind_of: Vec<usize>,
    /// Token mixer of each layer. A recurrent layer has no attention; ignore its kind of attention.
    pub mixers: Vec<Mixer>,
    /// Sizes of the recurrent layers, if there are any.
    pub recurrence: Option<Recurrence>,
    /// Number of multi-token prediction blocks after the layers, according to the file. Only a
    /// [draft head](Self::mtp_head) runs one.
    pub mtp_layers: usize,
    /// True if the embedding is the output matrix too.
    pub tied_embeddings: bool,
    /// Options of a draft head, which cannot run without its target.
    pub draft_head: Option<DraftHead>,
}

/// Mixture of experts of a layer: each token passes through `top_k` of `count` feed-forward
/// networks.
#[derive(Debug, Clone, PartialEq)]
pub struct Experts {
    pub count: usize,
    /// Experts per token (top k).
    pub top_k: usize,
    /// Width of one expert.
    pub intermediate: usize,
    /// True if the weights of a token's experts are normalised to a sum of 1. Otherwise they keep
    /// their values from the softmax or sigmoid over all experts.
    pub normalised: bool,
    /// True if the router and the experts' matrices have biases.
    pub biases: bool,
    /// True if the experts run beside the feed-forward network of each layer.
    pub beside_dense: bool,
    /// A shared expert that processes every token; the feed-forward fields describe it.
    pub shared: Option<SharedExpert>,
    /// Factor of the expert weights.
    pub scale: f32,
    /// Options of sigmoid gating; `None` for softmax gating.
    pub sigmoid: Option<SigmoidGating>,
    /// Number of leading dense layers, which have a feed-forward network instead of experts.
    pub leading_dense: usize,
}

/// Options of experts that are gated by the sigmoids of the router's scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SigmoidGating {
    /// Experts are selected by score plus a per-expert bias; the bias does not change their
    /// weights.
    pub selection_bias: bool,
    /// Added to the sum by which the weights are normalised.
    pub sum_epsilon: f32,
}

impl SigmoidGating {
    /// Default of `sum_epsilon`, for which files have no key.
    fn default_epsilon(options: ExpertOptions) -> f32 {
        if options.gating == Gating::Stated { 1e-20 } else { 1e-6 }
    }
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

/// Window, rotary positions and key-value heads of an attention layer.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionKind {
    /// Size of the sliding window in tokens, the current one included; `None` for full attention.
    pub window: Option<usize>,
    pub rotary: Rotary,
    pub keys: KeyHeads,
}

impl ModelConfig {
    /// Returns the kind of attention of `layer`.
    pub fn attention(&self, layer: usize) -> &AttentionKind {
        &self.attention_kinds[self.attention_kind_of[layer]]
    }

    /// Returns the layer whose cached keys and values `layer` attends to.
    pub fn cache_of(&self, layer: usize) -> usize {
        let kind = |layer: &usize| self.attention_kind_of[*layer];
        if self.family.assists {
            // An assistant's layers of one kind share a layer of the target's cache.
            return (0..layer).find(|earlier| kind(earlier) == kind(&layer)).unwrap_or(layer);
        }
        let shared = || (0..self.layers_with_kv).rev().find(|earlier| kind(earlier) == kind(&layer));
        if layer < self.layers_with_kv { layer } else { shared().unwrap_or(layer) }
    }

    /// Returns the feed-forward width of `layer`.
    pub fn intermediate_of(&self, layer: usize) -> usize {
        self.intermediates.get(layer).copied().unwrap_or(self.intermediate)
    }

    /// Returns the experts of `layer`; `None` for a dense layer.
    pub fn experts_of(&self, layer: usize) -> Option<&Experts> {
        self.experts.as_ref().filter(|experts| layer >= experts.leading_dense)
    }

    /// Returns whether layers differ in sizes or parts.
    pub fn is_uneven(&self) -> bool {
        let first = self.attention_kinds.first().map(|kind| kind.keys);
        self.layers_with_kv < self.layers
            || self.experts.as_ref().is_some_and(|experts| experts.leading_dense > 0)
            || self.intermediates.iter().any(|&size| size != self.intermediate)
            || self.attention_kinds.iter().any(|kind| Some(kind.keys) != first)
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

    /// Number of key heads that layer `index` caches; 0 for a recurrent layer and for one that
    /// attends to another layer's cache.
    pub fn cached_heads(&self, index: usize) -> usize {
        let caches = match self.family.assists {
            true => self.cache_of(index) == index,
            false => index < self.layers_with_kv && self.mixers[index] == Mixer::Attention,
        };
        if caches { self.attention(index).keys.count } else { 0 }
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
        let shared = if self.family.assists { 0..0 } else { self.layers_with_kv..self.layers };
        if let Some(layer) = shared.into_iter().find(|&layer| self.cache_of(layer) >= self.layers_with_kv) {
            let expected = format!("keys and values for layer {layer} in an earlier one of its kind");
            return Err(bad(path, expected, "none".into()));
        }
        if let Some(Experts { count, top_k, .. }) = self.experts
            && top_k > count
        {
            return Err(bad(path, format!("up to {count} experts per token"), top_k.to_string()));
        }
        if let Some(Experts { leading_dense, .. }) = self.experts
            && leading_dense >= self.layers
        {
            let expected = format!("experts after fewer than {} layers", self.layers);
            return Err(bad(path, expected, format!("{leading_dense} layers without")));
        }
        let scale = self.experts.as_ref().map(|experts| experts.scale);
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

/// Builds the kinds of attention and the kind of each layer. `kind` returns the kind for a pair of
/// flags: whether the layer is windowed, and whether its heads are rotated. Full attention comes
/// first.
fn attention_kinds(
    windowed: &[bool],
    rotated: &[bool],
    kind: impl Fn(bool, bool) -> AttentionKind,
) -> (Vec<AttentionKind>, Vec<usize>) {
    let mut kinds = Vec::new();
    let mut numbers = [[None; 2]; 2];
    let flags: Vec<(bool, bool)> = windowed.iter().copied().zip(rotated.iter().copied()).collect();
    for (window, rotated) in [(false, true), (false, false), (true, true), (true, false)] {
        if flags.contains(&(window, rotated)) {
            let kind = kind(window, rotated);
            let known = kinds.iter().position(|known| *known == kind);
            let number = known.unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            });
            numbers[usize::from(window)][usize::from(rotated)] = Some(number);
        }
    }
    let number = |(window, rotated)| numbers[usize::from(window)][usize::from(rotated)].unwrap_or(0);
    (kinds, flags.into_iter().map(number).collect())
}

/// Returns the kind of attention for a layer that is windowed or not, and rotated or not.
fn kind_of((window, rotated): (bool, bool), global: &AttentionKind, local: &AttentionKind) -> AttentionKind {
    let kind = if window { local } else { global };
    let rotary = if rotated { kind.rotary.clone() } else { kind.rotary.without_rotation() };
    AttentionKind { rotary, ..*kind }
}

/// Returns the largest value of `of` over the kinds of attention.
fn largest(kinds: &[AttentionKind], of: impl Fn(&KeyHeads) -> usize) -> usize {
    kinds.iter().map(|kind| of(&kind.keys)).max().unwrap_or(1)
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
