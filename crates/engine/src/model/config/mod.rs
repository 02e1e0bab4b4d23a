//! The numbers that describe a model, whatever the format: `gguf.rs` reads them from a header, `json.rs`
//! from a config.json. Refuses what would be computed wrongly; touches no weights.

mod assistant;
mod assistant_keys;
mod block_head;
mod block_keys;
mod draft_head;
mod gguf;
mod json;
mod key_heads;
mod latent;
mod recurrence;
mod rotary;

use std::path::Path;

pub use assistant::{Assistant, Clusters};
pub use block_head::{BlockHead, Confidence, Convolution, Selector};
pub use draft_head::{DraftHead, FusedNorms};
pub use key_heads::KeyHeads;
pub use latent::Latent;
pub use recurrence::{Heads, Recurrence};
pub use rotary::{Growth, Rotary, Turns};

use self::key_heads::MAX_HEAD_SIZE;
use self::recurrence::mixers;
use super::family::{ExpertOptions, Family, Gating, Mixer, SharedExpert};
use crate::error::{Error, Result};

/// No size in a real model comes near; keeps a hostile header from asking for absurd allocations.
const MAX_SIZE: u64 = 1 << 24;

/// No real model has nearly as many layers.
const MAX_LAYERS: usize = 1 << 12;

/// A model's sizes, and what its family leaves to the file.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    pub family: &'static Family,
    /// What the file says the model is called.
    pub name: Option<String>,
    /// Rows of the output matrix, and unless this is a [draft head](DraftHead) of the embedding: token ids are below
    /// this.
    pub vocabulary: usize,
    pub hidden: usize,
    pub intermediate: usize,
    /// Of every layer, where they differ: then `intermediate` is the largest.
    pub intermediates: Vec<usize>,
    /// In place of the feed-forward network of every layer, or beside it.
    pub experts: Option<Experts>,
    pub layers: usize,
    pub heads: usize,
    /// The most that any kind of attention has.
    pub kv_heads: usize,
    /// The largest of any kind of attention.
    pub head_size: usize,
    /// So many first layers have keys and values of their own. The others see those of the last of these that is of
    /// their kind.
    pub caching_layers: usize,
    /// Numbers that every layer is told of each token, beside the state that runs through them.
    pub per_layer: Option<usize>,
    /// Tokens the model was trained to see at once.
    pub context: usize,
    pub norm_epsilon: f64,
    /// Of the norms after attention and the feed-forward network.
    pub post_norm_epsilon: f64,
    /// What embeddings are multiplied with.
    pub embedding_scale: f32,
    /// The states that run through the layers, times this, are the model's hidden states. A model whose branches
    /// are multiplied with something runs with states divided by it, which its norms do not see.
    pub state_scale: f32,
    /// What normed queries are multiplied with, where the family has [`HeadNorms::Fixed`](super::family::HeadNorms).
    pub query_norm: f32,
    /// The sizes of attention to latents: heads and keys are then those that see them.
    pub latent: Option<Latent>,
    /// The products of queries and keys are multiplied by this: mostly 1 / sqrt(head_size).
    pub query_scale: f32,
    pub scoring: Scoring,
    /// The kinds of attention layers.
    pub attention_kinds: Vec<AttentionKind>,
    /// Of every layer its kind: an index of `attention_kinds`.
    pub attention_kind_of: Vec<usize>,
    /// Of every layer what mixes its tokens; recurrent layers have no attention, whatever is said of it.
    pub mixers: Vec<Mixer>,
    /// The sizes of the layers without attention, if there are such.
    pub recurrence: Option<Recurrence>,
    /// Blocks that the file says it has after the layers, to draft with; only a [draft head](Self::mtp_head) runs one.
    pub beyond: usize,
    /// The embedding is the output matrix too.
    pub tied_embeddings: bool,
    /// Of a model that is no use by itself.
    pub draft_head: Option<DraftHead>,
}

/// The feed-forward networks of a layer of which each token goes through a few.
#[derive(Debug, Clone, PartialEq)]
pub struct Experts {
    pub count: usize,
    /// That a token goes through.
    pub used: usize,
    /// Of one of them.
    pub intermediate: usize,
    /// The shares of those a token goes through add up to 1. Otherwise they are what they are among all.
    pub normalised: bool,
    /// The router and their matrices have biases.
    pub biases: bool,
    /// They are beside the feed-forward network of every layer.
    pub beside: bool,
    /// So is one that every token goes through: what is said of feed-forward networks is said of it.
    pub shared: Option<SharedExpert>,
    /// Shares are multiplied with this.
    pub scale: f32,
    /// Shares are made of the sigmoids of the router's scores, not of their softmax.
    pub sigmoids: Option<Sigmoids>,
    /// So many first layers have a feed-forward network in their place.
    pub after: usize,
}

/// How experts are chosen by the sigmoids of scores, and what these become.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sigmoids {
    /// Those are chosen that are highest after a number of each expert was added, which shares do not see.
    pub biased: bool,
    /// Added to the sum that they are divided by.
    pub least: f32,
}

impl Sigmoids {
    /// What is added to sums where files do not say.
    fn least(options: ExpertOptions) -> f32 {
        if options.gating == Gating::Stated { 1e-20 } else { 1e-6 }
    }
}

/// What is made of what the output matrix gives, before it is called logits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scoring {
    pub scale: f32,
    /// Scores x become `cap * tanh(x / cap)`.
    pub cap: Option<f32>,
}

impl Scoring {
    pub const PLAIN: Self = Self { scale: 1.0, cap: None };
}

/// How far a layer sees, and how it tells positions apart.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionKind {
    /// Tokens it sees, itself among them; `None` for all there are.
    pub window: Option<usize>,
    pub rotary: Rotary,
    pub keys: KeyHeads,
}

impl ModelConfig {
    /// The kind of a layer's attention.
    pub fn attention(&self, layer: usize) -> &AttentionKind {
        &self.attention_kinds[self.attention_kind_of[layer]]
    }

    /// The layer whose keys and values a layer sees.
    pub fn cache_of(&self, layer: usize) -> usize {
        let kind = |layer: &usize| self.attention_kind_of[*layer];
        if self.family.assists {
            // What its target caches is with the first of each kind.
            return (0..layer).find(|earlier| kind(earlier) == kind(&layer)).unwrap_or(layer);
        }
        let shared = || (0..self.caching_layers).rev().find(|earlier| kind(earlier) == kind(&layer));
        if layer < self.caching_layers { layer } else { shared().unwrap_or(layer) }
    }

    /// Of a layer's feed-forward network.
    pub fn intermediate_of(&self, layer: usize) -> usize {
        self.intermediates.get(layer).copied().unwrap_or(self.intermediate)
    }

    /// Those of a layer.
    pub fn experts_of(&self, layer: usize) -> Option<&Experts> {
        self.experts.as_ref().filter(|experts| layer >= experts.after)
    }

    /// Whether layers differ in their sizes, or in what they have.
    pub fn is_uneven(&self) -> bool {
        let first = self.attention_kinds.first().map(|kind| kind.keys);
        self.caching_layers < self.layers
            || self.experts.as_ref().is_some_and(|experts| experts.after > 0)
            || self.intermediates.iter().any(|&size| size != self.intermediate)
            || self.attention_kinds.iter().any(|kind| Some(kind.keys) != first)
    }

    /// Tokens up to which a text is read otherwise than a longer one, if there are such: the next pass over it reads
    /// all of it anew.
    pub fn border(&self) -> Option<usize> {
        self.attention_kinds.iter().find_map(|kind| Some(kind.rotary.beyond.as_ref()?.tokens))
    }

    /// Of norms of what never was a part of the states that run through the layers.
    pub fn inner_epsilon(&self) -> f64 {
        self.norm_epsilon * f64::from(self.state_scale) * f64::from(self.state_scale)
    }

    /// Key heads that layer `index` caches: none where it is recurrent, or sees what another caches.
    pub fn cached_heads(&self, index: usize) -> usize {
        let caches = match self.family.assists {
            true => self.cache_of(index) == index,
            false => index < self.caching_layers && self.mixers[index] == Mixer::Attention,
        };
        if caches { self.attention(index).keys.count } else { 0 }
    }

    /// Whether a text of `length` tokens is one of the longer ones.
    pub fn is_long(&self, length: usize) -> bool {
        self.border().is_some_and(|border| length > border)
    }

    /// What has to hold between the numbers, whatever the format.
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
        let shared = if self.family.assists { 0..0 } else { self.caching_layers..self.layers };
        if let Some(layer) = shared.into_iter().find(|&layer| self.cache_of(layer) >= self.caching_layers) {
            let expected = format!("keys and values for layer {layer} in an earlier one of its kind");
            return Err(bad(path, expected, "none".into()));
        }
        if let Some(Experts { count, used, .. }) = self.experts
            && used > count
        {
            return Err(bad(path, format!("up to {count} experts per token"), used.to_string()));
        }
        if let Some(Experts { after, .. }) = self.experts
            && after >= self.layers
        {
            let expected = format!("experts after fewer than {} layers", self.layers);
            return Err(bad(path, expected, format!("{after} layers without")));
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
        let partly =
            |kind: &AttentionKind| kind.rotary.growth.is_some() && kind.rotary.size() != kind.keys.size;
        if self.attention_kinds.iter().any(partly) {
            let expected = "rotary positions on whole heads where queries grow with them";
            return Err(bad(path, expected.into(), "positions on a part".into()));
        }
        Ok(self)
    }
}

/// What a model's file says it multiplies with; 1 where it says nothing.
struct Multipliers {
    embeddings: f64,
    /// What attention and the feed-forward network give.
    branches: f64,
    /// Products of queries and keys; `None` for what everyone has.
    products: Option<f64>,
    /// What logits are divided by.
    logits: f64,
}

impl Multipliers {
    /// Gives a model the numbers. x + m f(x / |x|) is m times x / m + f(x / |x|): states divided by m need no
    /// multiplication in any layer, and norms do not see it, if epsilon is divided by m^2.
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

/// A number that can be divided by.
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

/// The kinds of attention there are when a layer is of the kind that `kind` makes of whether it has the window and
/// whether it turns positions, and the kind of every layer. The one without a window comes first.
fn attention_kinds(
    windowed: &[bool],
    turned: &[bool],
    kind: impl Fn(bool, bool) -> AttentionKind,
) -> (Vec<AttentionKind>, Vec<usize>) {
    let mut kinds = Vec::new();
    let mut numbers = [[None; 2]; 2];
    let flags: Vec<(bool, bool)> = windowed.iter().copied().zip(turned.iter().copied()).collect();
    for (window, turn) in [(false, true), (false, false), (true, true), (true, false)] {
        if flags.contains(&(window, turn)) {
            let kind = kind(window, turn);
            let known = kinds.iter().position(|known| *known == kind);
            let number = known.unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            });
            numbers[usize::from(window)][usize::from(turn)] = Some(number);
        }
    }
    let number = |(window, turn)| numbers[usize::from(window)][usize::from(turn)].unwrap_or(0);
    (kinds, flags.into_iter().map(number).collect())
}

/// One of two kinds of attention, with the window or not, turned or not.
fn kind_of((window, turned): (bool, bool), global: &AttentionKind, local: &AttentionKind) -> AttentionKind {
    let kind = if window { local } else { global };
    let rotary = if turned { kind.rotary.clone() } else { kind.rotary.unturned() };
    AttentionKind { rotary, ..*kind }
}

/// The largest numbers of the kinds of attention.
fn largest(kinds: &[AttentionKind], of: impl Fn(&KeyHeads) -> usize) -> usize {
    kinds.iter().map(|kind| of(&kind.keys)).max().unwrap_or(1)
}

/// A window that is none when it is 0 or no token of the context is ever outside.
fn window(found: usize, context: usize) -> Option<usize> {
    (1..context).contains(&found).then_some(found)
}

/// A size that is there and not absurd.
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

/// How many components of a head are rotated.
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

/// Factors of which there is one for each of `count` frequencies.
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
