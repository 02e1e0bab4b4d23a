//! Tensors outside layers.

use super::super::config::DraftHead;
use super::spec::TensorSpec;

/// Embedding, `[vocabulary, hidden]`.
pub const EMBEDDING: &str = "token_embd.weight";
/// Output matrix, `[vocabulary, hidden]`; absent if the embedding is tied to it.
pub const OUTPUT: &str = "output.weight";
/// Norm before the output matrix, `[hidden]`.
pub(crate) const OUTPUT_NORM: &str = "output_norm.weight";
/// Table of per-layer input embeddings, `[tokens, layers * width]`.
pub const PER_LAYER_EMBEDDING: &str = "per_layer_token_embd.weight";
/// Projection of the embedding to per-layer inputs, `[layers * width, hidden]`.
pub const PER_LAYER_PROJECTION: &str = "per_layer_model_proj.weight";
/// Norm of that projection, `[width]`.
pub const PER_LAYER_NORM: &str = "per_layer_proj_norm.weight";
/// A draft head's table from output rows to target tokens.
pub(crate) const TOKEN_TABLE: &str = "d2t";
/// Divisors of the rotary frequencies in GGUF files, one for each pair of rotated components.
pub(crate) const ROPE_FACTORS: &str = "rope_freqs.weight";
/// LongRoPE's divisors for texts longer than the original context.
pub(crate) const LONG_FACTORS: &str = "rope_factors_long.weight";
/// LongRoPE's divisors for texts up to the original context.
pub(crate) const SHORT_FACTORS: &str = "rope_factors_short.weight";

/// Draft heads may take the embedding and the output matrix from their target. An assistant has an
/// output matrix of its own.
pub(super) const TENSORS: [TensorSpec; 6] = [
    TensorSpec::new(EMBEDDING, &["model.embed_tokens.weight", "embed_tokens.weight"], |p| {
        vec![p.config.tokens(), p.config.carried()]
    })
    .optional(|p| p.head().is_some()),
    TensorSpec::new(PER_LAYER_EMBEDDING, &["model.embed_tokens_per_layer.weight"], |p| {
        vec![p.config.tokens(), p.config.depth() * p.spec().per_layer_input.unwrap_or_default()]
    })
    .when(|p| p.spec().per_layer_input.is_some()),
    TensorSpec::new(PER_LAYER_PROJECTION, &["model.per_layer_model_projection.weight"], |p| {
        vec![p.config.depth() * p.spec().per_layer_input.unwrap_or_default(), p.hidden()]
    })
    .when(|p| p.spec().per_layer_input.is_some()),
    TensorSpec::new(PER_LAYER_NORM, &["model.per_layer_projection_norm.weight"], |p| {
        vec![p.spec().per_layer_input.unwrap_or_default()]
    })
    .when(|p| p.spec().per_layer_input.is_some()),
    TensorSpec::new(OUTPUT_NORM, &["model.norm.weight", "norm.weight", "model.embedding_norm.weight"], |p| {
        vec![p.hidden()]
    }),
    TensorSpec::new(OUTPUT, &["lm_head.weight"], |p| vec![p.config.vocabulary, p.hidden()])
        .when(|p| !p.config.tied_embeddings)
        .optional(|p| p.head().is_some_and(|head: &DraftHead| head.assistant().is_none())),
];

/// Returns whether a tensor is part of the configuration.
pub(super) fn is_rotary(name: &str) -> bool {
    [ROPE_FACTORS, LONG_FACTORS, SHORT_FACTORS].contains(&name)
}
