//! The tensors of attention to latents, of random weights: as GLM-4.7-Flash has it.

use super::making::Making;
use super::mixture::Part;
use super::shape::Shape;
use super::tensor::Tensor;

/// The vector that keys and values of all heads are made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latent {
    /// Its numbers. What a shape's head has beyond them turns.
    pub size: usize,
    /// A head's numbers of a query that do not turn, and of a value.
    pub plain: usize,
    pub value: usize,
    /// Numbers of the vector that queries are made of.
    pub queries: usize,
    /// The width of the feed-forward network of the first layers.
    pub dense: usize,
}

impl Latent {
    /// First layers without experts.
    pub const FIRST: usize = 1;

    /// Of a layer.
    pub fn attention(&self, shape: &Shape, making: &Making) -> Vec<Tensor> {
        let Self { size, plain, value, queries, .. } = *self;
        let Shape { hidden, heads, head_size, .. } = *shape;
        vec![
            making.norm("attn_norm", hidden),
            making.one("attn_q_a", Part::Other, [queries, hidden], 1.0),
            making.norm("attn_q_a_norm", queries),
            making.one("attn_q_b", Part::Other, [heads * (plain + shape.turned()), queries], 1.0),
            making.one("attn_kv_a_mqa", Part::Other, [head_size, hidden], 1.0),
            making.norm("attn_kv_a_norm", size),
            making.stack("attn_k_b", Part::Other, [heads, size, plain], 1.0),
            making.stack("attn_v_b", making.sensitive(), [heads, value, size], 1.0),
            making.one("attn_output", Part::Other, [hidden, heads * value], making.added),
        ]
    }
}
