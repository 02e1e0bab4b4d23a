//! Multi-head latent attention (MLA): its weights, and the scores of queries over latents, which
//! are cached row by row.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions rely on the contract of the caller alone, see docs/unsafe.md"
)]

use super::attention::Attention;
use super::packing::{panels, vector};
use super::panels::Panels;
use super::simd::{LANES, Simd};
use crate::error::Result;
use crate::model::latent_tensors::{
    LATENT, LATENT_NORM, OUTPUT, QUERIES, QUERIES_DOWN, QUERIES_NORM, QUERIES_UP, of_keys, of_values,
};
use crate::model::{Latent as Sizes, ModelConfig, Weights};

/// Weights of an MLA layer (DeepSeek-AI 2024), in absorbed form: queries are projected into the
/// latent space, so keys and values of heads are never materialised.
#[derive(Debug)]
pub struct Latent {
    pub sizes: Sizes,
    /// Index of its attention kind in the configuration.
    pub kind: usize,
    /// Low-rank projection of queries (`q_a`) and its norm; `None` where queries are projected
    /// directly.
    pub down: Option<(Panels, Vec<f32>)>, // [queries, hidden], [queries]
    pub query: Panels, // [heads * (plain + turned), queries or hidden]
    /// Projection to the latent and to the key's rotary part (`kv_a`).
    pub latent: Panels, // [size + turned, hidden]
    pub norm: Vec<f32>, // [size]
    /// Key projection of each head, applied to queries.
    pub keys: Vec<Panels>, // [size, plain]
    /// Value projection of each head, applied to mixed latents.
    pub values: Vec<Panels>, // [value, size]
    pub output: Panels, // [hidden, heads * value]
}

impl Latent {
    pub fn load(weights: &Weights, config: &ModelConfig, sizes: Sizes, index: usize) -> Result<Self> {
        let name = |part: &str| format!("blk.{index}.{part}.weight");
        let matrix = |part: &str| panels(weights, &name(part));
        let of_heads = |part: fn(usize) -> String| {
            (0..config.heads).map(|head| matrix(&part(head))).collect::<Result<_>>()
        };
        let down = || Result::Ok((matrix(QUERIES_DOWN)?, vector(weights, &name(QUERIES_NORM))?));
        Ok(Self {
            sizes,
            kind: config.attention_kind_of[index],
            down: sizes.queries.map(|_| down()).transpose()?,
            query: matrix(if sizes.queries.is_some() { QUERIES_UP } else { QUERIES })?,
            latent: matrix(LATENT)?,
            norm: vector(weights, &name(LATENT_NORM))?,
            keys: of_heads(of_keys)?,
            values: of_heads(of_values)?,
            output: matrix(OUTPUT)?,
        })
    }

    /// First matrix that the layer reads.
    pub fn first(&self) -> &Panels {
        self.down.as_ref().map_or(&self.query, |(down, _)| down)
    }

    pub fn matrices(&self) -> impl Iterator<Item = &Panels> {
        let down = self.down.iter().map(|(down, _)| down);
        down.chain([&self.query, &self.latent]).chain(&self.keys).chain(&self.values).chain([&self.output])
    }
}

/// Heads whose scores are computed together, and that make up one unit of work.
pub const AT_ONCE: usize = 4;

/// Computes the scores of all positions from the first to the last visible one, including those
/// between them that are not visible. Cached positions and queries lie in rows, padded with zeros
/// to whole vectors. Products are summed vector by vector and then across the lanes.
///
/// # Safety
/// As [`super::attention::attend`].
#[inline(always)]
pub unsafe fn score_rows<S: Simd>(job: &Attention<'_>) {
    let mut head = 0;
    while head < job.heads {
        let count = AT_ONCE.min(job.heads - head);
        for position in job.first..=job.last() {
            unsafe {
                match count {
                    1 => score_row::<S, 1>(job, position, head),
                    2 => score_row::<S, 2>(job, position, head),
                    3 => score_row::<S, 3>(job, position, head),
                    _ => score_row::<S, AT_ONCE>(job, position, head),
                }
            }
        }
        head += count;
    }
}

#[inline(always)]
unsafe fn score_row<S: Simd, const N: usize>(job: &Attention<'_>, position: usize, head: usize) {
    unsafe {
        let (row, width) = (job.cache.value(job.kv_head, position), job.cache.width());
        let queries = job.queries.add(head * width);
        let mut sums = [S::splat(0.0); N];
        for at in (0..width).step_by(LANES) {
            let numbers = S::load_f16(row.add(at));
            for query in 0..N {
                sums[query] = S::mul_add(numbers, S::load(queries.add(query * width + at)), sums[query]);
            }
        }
        for query in 0..N {
            *job.scratch.add((head + query) * job.stride() + position) = S::sum(sums[query]) * job.scale;
        }
    }
}
