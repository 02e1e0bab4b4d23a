//! Grouped-query attention over the cache with explicit visibility, as a masked matrix product.

use candle_core::{Device, Result, Tensor};

use crate::tree::TokenTree;

/// For the nodes from number `first` on `[nodes, cached + tree]`, 0 where a node may look, at what is
/// cached and at its own ancestors, of both together the last `window`, and -inf elsewhere.
pub fn mask(
    tree: &TokenTree,
    first: usize,
    cached: usize,
    window: Option<usize>,
    device: &Device,
) -> Result<Tensor> {
    let width = cached + tree.len();
    let rows = tree.len() - first;
    let window = window.unwrap_or(usize::MAX);
    let mut mask = vec![f32::NEG_INFINITY; rows * width];
    for (row, visible) in mask.chunks_mut(width).zip(tree.visible().into_iter().skip(first)) {
        let from = (cached + visible.len()).saturating_sub(window).min(cached);
        row[from..cached].fill(0.0);
        let own = &visible[visible.len().saturating_sub(window)..];
        own.iter().for_each(|&node| row[cached + node] = 0.0);
    }
    Tensor::from_vec(mask, (rows, width), device)
}

/// softmax(scale q k^T) v for each head.
///
/// `queries` `[heads, rows, head_size]`, `keys` and `values` `[kv_heads, length, head_size]`; head
/// `h` reads key head `h / (heads / kv_heads)`. Returns `[rows, heads * head_size]`.
pub fn attend(queries: &Tensor, keys: &Tensor, values: &Tensor, scale: f32, mask: &Tensor) -> Result<Tensor> {
    let (heads, rows, head_size) = queries.dims3()?;
    let (kv_heads, length, _) = keys.dims3()?;
    let group = heads / kv_heads;
    // The heads of a group share their keys, so they are further rows of one product.
    let queries = queries.contiguous()?.reshape((kv_heads, group * rows, head_size))?;
    let scores = (queries.matmul(&keys.t()?)? * f64::from(scale))?;
    let scores = scores.reshape((heads, rows, length))?.broadcast_add(mask)?;
    let weights = candle_nn::ops::softmax_last_dim(&scores)?;
    let mixed = weights.reshape((kv_heads, group * rows, length))?.matmul(&values.contiguous()?)?;
    mixed.reshape((heads, rows, head_size))?.transpose(0, 1)?.reshape((rows, heads * head_size))
}
