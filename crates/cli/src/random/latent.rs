//! Tensors of multi-head latent attention (MLA) with random weights, as in GLM-4.7-Flash.

use super::builder::TensorBuilder;
use super::mixture::MatrixRole;
use super::shape::Shape;
use super::tensor::Tensor;

/// Sizes of multi-head latent attention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latent {
    /// `kv_lora_rank`; the rest of the shape's head size is `qk_rope_head_dim`.
    pub kv_lora_rank: usize,
    /// `qk_nope_head_dim`, which is the size of a value too.
    pub qk_nope_head_dim: usize,
    pub value: usize,
    /// `q_lora_rank`.
    pub q_lora_rank: usize,
    /// Width of the dense feed-forward network of the first layers.
    pub dense: usize,
}

impl Latent {
    /// Number of dense layers at the beginning.
    pub const FIRST: usize = 1;

    /// Tensors of a layer.
    pub fn attention(&self, shape: &Shape, builder: &TensorBuilder) -> Vec<Tensor> {
        let Self { kv_lora_rank, qk_nope_head_dim, value, q_lora_rank, .. } = *self;
        let Shape { hidden, heads, head_size, .. } = *shape;
        vec![
            builder.norm("attn_norm", hidden),
            builder.one("attn_q_a", MatrixRole::Other, [q_lora_rank, hidden], 1.0),
            builder.norm("attn_q_a_norm", q_lora_rank),
            builder.one(
                "attn_q_b",
                MatrixRole::Other,
                [heads * (qk_nope_head_dim + shape.rope_dim()), q_lora_rank],
                1.0,
            ),
            builder.one("attn_kv_a_mqa", MatrixRole::Other, [head_size, hidden], 1.0),
            builder.norm("attn_kv_a_norm", kv_lora_rank),
            builder.stack("attn_k_b", MatrixRole::Other, [heads, kv_lora_rank, qk_nope_head_dim], 1.0),
            builder.stack("attn_v_b", builder.sensitive(), [heads, value, kv_lora_rank], 1.0),
            builder.one("attn_output", MatrixRole::Other, [hidden, heads * value], builder.added),
        ]
    }
}
