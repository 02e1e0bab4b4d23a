//! Grouped-query attention over the cache with explicit visibility. On the CPU a row is computed
//! by itself, over the positions it sees and in their order, so that its bits do not depend on what
//! else is in the pass; elsewhere it is a masked matrix product.

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::pool::on_all_threads;
use crate::tree::TokenTree;

/// Which positions each row of a pass may look at: all cached ones, and its own ancestors.
#[derive(Debug, Clone)]
pub struct Visibility {
    cached: usize,
    /// Positions in the cache, ascending, of what each row sees of the pass itself.
    rows: Vec<Vec<usize>>,
    /// `[rows, cached + rows]`, 0 where visible and -inf elsewhere; only off the CPU.
    mask: Option<Tensor>,
}

impl Visibility {
    pub fn new(tree: &TokenTree, cached: usize, device: &candle_core::Device) -> Result<Self> {
        let mut rows = tree.visible();
        rows.iter_mut().flatten().for_each(|node| *node += cached);
        let mask = if device.is_cpu() { None } else { Some(mask(&rows, cached, device)?) };
        Ok(Self { cached, rows, mask })
    }
}

fn mask(rows: &[Vec<usize>], cached: usize, device: &candle_core::Device) -> Result<Tensor> {
    let width = cached + rows.len();
    let mut mask = vec![f32::NEG_INFINITY; rows.len() * width];
    for (row, visible) in mask.chunks_mut(width).zip(rows) {
        row[..cached].fill(0.0);
        visible.iter().for_each(|&position| row[position] = 0.0);
    }
    Tensor::from_vec(mask, (rows.len(), width), device)
}

/// softmax(q k^T / sqrt(head_size)) v for each head.
///
/// `queries` `[heads, rows, head_size]`, `keys` and `values` `[kv_heads, length, head_size]`; head
/// `h` reads key head `h / (heads / kv_heads)`. Returns `[rows, heads * head_size]`.
pub fn attend(queries: &Tensor, keys: &Tensor, values: &Tensor, visibility: &Visibility) -> Result<Tensor> {
    match &visibility.mask {
        None => queries.apply_op3_no_bwd(keys, values, &RowByRow { visibility }),
        Some(mask) => masked_product(queries, keys, values, mask),
    }
}

fn masked_product(queries: &Tensor, keys: &Tensor, values: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let (heads, rows, head_size) = queries.dims3()?;
    let (kv_heads, length, _) = keys.dims3()?;
    let group = heads / kv_heads;
    // The heads of a group share their keys, so they are further rows of one product.
    let queries = queries.contiguous()?.reshape((kv_heads, group * rows, head_size))?;
    let scores = (queries.matmul(&keys.t()?)? * (head_size as f64).powf(-0.5))?;
    let scores = scores.reshape((heads, rows, length))?.broadcast_add(mask)?;
    let weights = candle_nn::ops::softmax_last_dim(&scores)?;
    let mixed = weights.reshape((kv_heads, group * rows, length))?.matmul(&values.contiguous()?)?;
    mixed.reshape((heads, rows, head_size))?.transpose(0, 1)?.reshape((rows, heads * head_size))
}

struct RowByRow<'a> {
    visibility: &'a Visibility,
}

/// A head-major matrix of the cache: `[heads, positions, size]` with any stride between heads.
#[derive(Clone, Copy)]
struct Heads<'a> {
    data: &'a [f32],
    stride: usize,
    size: usize,
}

impl<'a> Heads<'a> {
    fn of(storage: &'a CpuStorage, layout: &Layout) -> Result<Self> {
        let stride = layout.stride();
        let size = layout.dims()[2];
        if stride[1] != size || stride[2] != 1 {
            candle_core::bail!("attention: expected contiguous rows, found strides {stride:?}");
        }
        let data = &storage.as_slice::<f32>()?[layout.start_offset()..];
        Ok(Self { data, stride: stride[0], size })
    }

    fn row(&self, head: usize, position: usize) -> &'a [f32] {
        &self.data[head * self.stride + position * self.size..][..self.size]
    }
}

/// Multiplications below which handing work to other threads costs more than it saves.
const WORTH_SHARING: usize = 1 << 17;

impl CustomOp3 for RowByRow<'_> {
    fn name(&self) -> &'static str {
        "attention, row by row"
    }

    fn cpu_fwd(
        &self,
        queries: &CpuStorage,
        query_layout: &Layout,
        keys: &CpuStorage,
        key_layout: &Layout,
        values: &CpuStorage,
        value_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (heads, rows, head_size) = query_layout.shape().dims3()?;
        let (kv_heads, length, _) = key_layout.shape().dims3()?;
        let queries = Heads::of(queries, query_layout)?;
        let keys = Heads::of(keys, key_layout)?;
        let values = Heads::of(values, value_layout)?;
        let group = heads / kv_heads;
        let mut out = vec![0f32; rows * heads * head_size];
        let one = |scores: &mut Vec<f32>, (index, out): (usize, &mut [f32])| {
            let (row, head) = (index / heads, index % heads);
            let positions = || (0..self.visibility.cached).chain(self.visibility.rows[row].iter().copied());
            let query = queries.row(head, row);
            attend_row(
                query,
                |p| keys.row(head / group, p),
                |p| values.row(head / group, p),
                positions,
                scores,
                out,
            );
        };
        if rows * heads * length * head_size < WORTH_SHARING {
            let mut scores = Vec::new();
            out.chunks_mut(head_size).enumerate().for_each(|item| one(&mut scores, item));
        } else {
            on_all_threads(|| out.par_chunks_mut(head_size).enumerate().for_each_init(Vec::new, one));
        }
        Ok((CpuStorage::F32(out), (rows, heads * head_size).into()))
    }
}

/// One head of one row; `scores` is scratch memory.
fn attend_row<'a, P: Iterator<Item = usize>>(
    query: &[f32],
    key: impl Fn(usize) -> &'a [f32],
    value: impl Fn(usize) -> &'a [f32],
    positions: impl Fn() -> P,
    scores: &mut Vec<f32>,
    out: &mut [f32],
) {
    let scale = (query.len() as f32).powf(-0.5);
    scores.clear();
    scores.extend(positions().map(|position| dot(query, key(position)) * scale));
    let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0f32;
    for (score, position) in scores.iter().zip(positions()) {
        let weight = (score - highest).exp();
        sum += weight;
        for (out, value) in out.iter_mut().zip(value(position)) {
            *out += weight * value;
        }
    }
    out.iter_mut().for_each(|out| *out /= sum);
}

/// Sixteen partial sums, so that the compiler can use vector registers; always in one order.
fn dot(left: &[f32], right: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0f32; LANES];
    let (left_blocks, left_rest) = left.as_chunks::<LANES>();
    let (right_blocks, right_rest) = right.as_chunks::<LANES>();
    for (left, right) in left_blocks.iter().zip(right_blocks) {
        for lane in 0..LANES {
            sums[lane] += left[lane] * right[lane];
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(l, r)| l * r).sum();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::Device;

    fn random(shape: (usize, usize, usize)) -> Tensor {
        Tensor::randn(0f32, 1f32, shape, &Device::Cpu).unwrap()
    }

    #[test]
    fn row_by_row_agrees_with_the_masked_product_on_a_tree() {
        let (cached, head_size) = (5, 20);
        let mut tree = TokenTree::chain([1, 2]);
        tree.push(3, Some(0));
        tree.push(4, Some(2));
        let length = cached + tree.len();
        let queries = random((6, tree.len(), head_size));
        let (keys, values) = (random((3, length, head_size)), random((3, length, head_size)));
        let visibility = Visibility::new(&tree, cached, &Device::Cpu).unwrap();
        let mask = mask(&visibility.rows, cached, &Device::Cpu).unwrap();
        let expected = masked_product(&queries, &keys, &values, &mask).unwrap();
        let found = attend(&queries, &keys, &values, &visibility).unwrap();
        let worst = (expected - found).unwrap().abs().unwrap().max_all().unwrap();
        assert!(worst.to_scalar::<f32>().unwrap() < 1e-5);
    }
}
