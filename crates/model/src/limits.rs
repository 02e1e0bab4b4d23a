//! Limits of untrusted model files, with room above all known models. They are checked before
//! memory or time is spent on what a file claims.

use std::path::Path;

use crate::config::{MixerSpec, ModelConfig};
use crate::error::{Error, Result};

/// Query heads of a layer.
pub(crate) const HEADS: usize = 1024;

/// Experts of a layer.
pub(crate) const EXPERTS: usize = 4096;

/// Matrices that are addressed one by one: experts, or heads of latent attention, of all layers.
pub(crate) const PARTS: usize = 1 << 17;

/// Keys in the header of a GGUF file.
pub(crate) const KEYS: u64 = 10_000;

/// Tensors of a model, over all its files.
pub(crate) const TENSORS: usize = 1 << 18;

/// Files of a split model.
pub(crate) const FILES: usize = 1000;

/// Bytes of config.json and other small documents.
pub(crate) const SMALL_DOCUMENT: usize = 1 << 20;

/// Bytes of a chat template's document.
pub(crate) const DOCUMENT: usize = 4 << 20;

/// Bytes of tokenizer_config.json, which lists tens of thousands of added tokens of speech models.
pub(crate) const TOKENIZER_CONFIG: usize = 16 << 20;

/// Bytes of the index of a model's safetensors files.
pub(crate) const INDEX: usize = 16 << 20;

/// Bytes of tokenizer.json.
pub(crate) const TOKENIZER: usize = 64 << 20;

/// Bytes of a safetensors header.
pub(crate) const SAFETENSORS_HEADER: usize = 32 << 20;

/// Tokens that end a reply.
pub(crate) const ENDS: usize = 64;

/// Bytes of a whole token (a control or added token).
pub(crate) const WHOLE_TOKEN_BYTES: usize = 1024;

/// Checks the sizes of `config` that decide how many tensors are looked up.
///
/// # Errors
/// `Error::BadModel` for a size above its limit.
pub(crate) fn check(path: &Path, config: &ModelConfig) -> Result<()> {
    at_most(path, "attention heads", config.heads, HEADS)?;
    let (mut experts, mut latent_heads) = (0, 0);
    for layer in &config.layers {
        let count = layer.feed_forward.experts().map_or(0, |experts| experts.count);
        at_most(path, "experts in a layer", count, EXPERTS)?;
        experts += count;
        latent_heads += if matches!(layer.mixer, MixerSpec::Latent { .. }) { config.heads } else { 0 };
    }
    at_most(path, "experts in all layers", experts, PARTS)?;
    at_most(path, "heads of latent attention in all layers", latent_heads, PARTS)
}

/// Returns an error if `found` is more than `limit`.
///
/// # Errors
/// `Error::BadModel`.
pub(crate) fn at_most(path: &Path, what: &str, found: usize, limit: usize) -> Result<()> {
    if found <= limit {
        return Ok(());
    }
    Err(Error::BadModel {
        path: path.to_owned(),
        expected: format!("at most {limit} {what}"),
        found: found.to_string(),
        hint: "Choose another model.",
    })
}
