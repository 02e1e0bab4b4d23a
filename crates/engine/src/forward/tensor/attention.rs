//! Grouped-query attention over the cache with explicit visibility, as a masked matrix product.

use candle_core::{Result, Tensor};

/// softmax(scale q k^T) v for each head.
///
/// `queries` `[heads, rows, head_size]`, `keys` and `values` `[kv_heads, length, head_size]`, of which only
/// the last two dimensions need to lie together; `mask` `[rows, length]`, none where all rows see everything.
/// Head `h` reads key head `h / (heads / kv_heads)`. Returns `[rows, heads * head_size]`.
pub fn attend(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    scale: f32,
    mask: Option<&Tensor>,
) -> Result<Tensor> {
    let (heads, rows, head_size) = queries.dims3()?;
    let (kv_heads, length, _) = keys.dims3()?;
    let group = heads / kv_heads;
    // The heads of a group share their keys, so they are further rows of one product.
    let queries = queries.contiguous()?.reshape((kv_heads, group * rows, head_size))?;
    let mut scores = (queries.matmul(&keys.t()?)? * f64::from(scale))?;
    if let Some(mask) = mask {
        scores = scores.reshape((heads, rows, length))?.broadcast_add(mask)?;
    }
    let weights = candle_nn::ops::softmax_last_dim(&scores)?;
    let mixed = weights.reshape((kv_heads, group * rows, length))?.matmul(values)?;
    mixed.reshape((heads, rows, head_size))?.transpose(0, 1)?.reshape((rows, heads * head_size))
}
