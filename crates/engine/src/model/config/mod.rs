//! The numbers that describe a model, whatever the format: `gguf.rs` reads them from a header, `json.rs`
//! from a config.json. Refuses what would be computed wrongly; touches no weights.

mod block_head;
mod block_keys;
mod draft_head;
mod gguf;
mod json;
mod rotary;

use std::path::Path;

pub use block_head::{BlockHead, Confidence, Convolution, Selector};
pub use draft_head::{DraftHead, FusedNorms};
pub use rotary::Rotary;

use super::family::Family;
use crate::error::{Error, Result};

/// No size in a real model comes near; keeps a hostile header from asking for absurd allocations.
const MAX_SIZE: u64 = 1 << 24;

/// No real model has nearly as many layers.
const MAX_LAYERS: usize = 1 << 12;

/// No real model has heads nearly as large: a table with an entry for each component is made of what a file says.
const MAX_HEAD_SIZE: usize = 1 << 13;

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
    /// In place of the feed-forward network of every layer.
    pub experts: Option<Experts>,
    pub layers: usize,
    pub heads: usize,
    /// Divides `heads`.
    pub kv_heads: usize,
    /// Even.
    pub head_size: usize,
    /// Tokens the model was trained to see at once.
    pub context: usize,
    pub norm_epsilon: f64,
    /// The products of queries and keys are multiplied by this: mostly 1 / sqrt(head_size).
    pub query_scale: f32,
    /// The kinds of attention layers, one or two.
    pub attention_kinds: Vec<AttentionKind>,
    /// Of every layer its kind: an index of `attention_kinds`.
    pub attention_kind_of: Vec<usize>,
    /// The embedding is the output matrix too.
    pub tied_embeddings: bool,
    /// Of a model that is no use by itself.
    pub draft_head: Option<DraftHead>,
}

/// The feed-forward networks of a layer of which each token goes through a few.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Experts {
    pub count: usize,
    /// That a token goes through.
    pub used: usize,
    /// Of one of them.
    pub intermediate: usize,
    /// The shares of those a token goes through add up to 1. Otherwise they are what they are among all.
    pub normalised: bool,
}

/// How far a layer sees, and how it tells positions apart.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionKind {
    /// Tokens it sees, itself among them; `None` for all there are.
    pub window: Option<usize>,
    pub rotary: Rotary,
}

impl ModelConfig {
    /// What embeddings are multiplied with.
    pub fn embedding_scale(&self) -> f32 {
        if self.family.scaled_embeddings { (self.hidden as f32).sqrt() } else { 1.0 }
    }

    /// What has to hold between the numbers, whatever the format.
    fn validated(self, path: &Path) -> Result<Self> {
        if !self.heads.is_multiple_of(self.kv_heads) {
            let found = format!("{} heads and {} key-value heads", self.heads, self.kv_heads);
            return Err(bad(path, "key-value heads that divide the heads".into(), found));
        }
        if let Some(Experts { count, used, .. }) = self.experts
            && used > count
        {
            return Err(bad(path, format!("up to {count} experts per token"), used.to_string()));
        }
        if !self.head_size.is_multiple_of(2) {
            return Err(bad(path, "an even head size".into(), self.head_size.to_string()));
        }
        if !(self.norm_epsilon > 0.0 && self.norm_epsilon < 1.0) {
            let found = self.norm_epsilon.to_string();
            return Err(bad(path, "an RMS norm epsilon between 0 and 1".into(), found));
        }
        if !(self.query_scale.is_finite() && self.query_scale > 0.0) {
            return Err(bad(path, "a positive query scale".into(), self.query_scale.to_string()));
        }
        let rotated = self.attention_kinds.iter().flat_map(|kind| &kind.rotary.inverse_frequencies);
        let scales = self.attention_kinds.iter().map(|kind| &kind.rotary.scale);
        if !rotated.chain(scales).all(|f| f.is_finite() && *f > 0.0) {
            let found = "some that are not".into();
            return Err(bad(path, "positive rotary frequencies".into(), found));
        }
        Ok(self)
    }
}

/// 1 / sqrt(scalar)
fn query_scale(scalar: f64) -> f32 {
    1.0 / (scalar as f32).sqrt()
}

/// The kinds of attention there are when `windowed` layers have the `local` kind and the others the
/// `global` one, and the kind of every layer.
fn attention_kinds(
    windowed: &[bool],
    global: AttentionKind,
    local: AttentionKind,
) -> (Vec<AttentionKind>, Vec<usize>) {
    let alike = vec![0; windowed.len()];
    if global == local || windowed.iter().all(|windowed| !windowed) {
        return (vec![global], alike);
    }
    if windowed.iter().all(|&windowed| windowed) {
        return (vec![local], alike);
    }
    (vec![global, local], windowed.iter().map(|&windowed| usize::from(windowed)).collect())
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

/// Divides every frequency by its factor.
fn divide(path: &Path, name: &str, frequencies: &mut [f64], factors: &[f64]) -> Result<()> {
    if factors.len() != frequencies.len() {
        let expected = format!("{} values in {name}", frequencies.len());
        return Err(bad(path, expected, factors.len().to_string()));
    }
    frequencies.iter_mut().zip(factors).for_each(|(f, by)| *f /= by);
    Ok(())
}

fn bad_scaling(path: &Path, found: &str) -> Error {
    let expected = "rotary positions that are unscaled or scaled by 'linear', 'llama3' or 'longrope'";
    bad(path, expected.into(), format!("'{found}'"))
}

fn bad(path: &Path, expected: String, found: String) -> Error {
    Error::BadModel { path: path.to_owned(), expected, found, hint: "Choose another model." }
}
