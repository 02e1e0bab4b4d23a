//! Multi-head latent attention (MLA): its weights, and the scores of queries over latents, which
//! are cached row by row.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions rely on the contract of the caller alone, see docs/unsafe.md"
)]

use foretoken_model::error::Result;
use foretoken_model::tables::latent::{of_keys, of_values};
use foretoken_model::{Latent as Sizes, ModelConfig, Weights};

use super::attention::AttentionRun;
use super::packing::{panels, vector};
use super::panels::Panels;
use super::simd::{LANES, Simd};

/// Weights of an MLA layer (DeepSeek-AI 2024), in absorbed form: queries are projected into the
/// latent space, so keys and values of heads are never materialised.
#[derive(Debug)]
pub struct Latent {
    pub sizes: Sizes,
    /// Index of its attention kind in the configuration.
    pub kind: usize,
    /// Low-rank projection of queries (`q_a`) and its norm; `None` where queries are projected
    /// directly.
    pub q_a: Option<(Panels, Vec<f32>)>, // [queries, hidden], [queries]
    pub q_b: Panels, // [heads * (plain + turned), queries or hidden]
    /// Projection to the latent and to the key's rotary part.
    pub kv_a: Panels, // [size + turned, hidden]
    pub kv_a_norm: Vec<f32>, // [size]
    /// Key projection of each head, applied to queries.
    pub k_b: Vec<Panels>, // [size, plain]
    /// Value projection of each head, applied to mixed latents.
    pub v_b: Vec<Panels>, // [value, size]
    pub output: Panels, // [hidden, heads * value]
}

impl Latent {
    /// Loads layer `index`, whose kind of attention is `kind`.
    pub fn load(
        weights: &Weights,
        config: &ModelConfig,
        sizes: Sizes,
        index: usize,
        kind: usize,
    ) -> Result<Self> {
        let name = |part: &str| format!("blk.{index}.{part}.weight");
        let matrix = |part: &str| panels(weights, &name(part));
        let of_heads = |part: fn(usize) -> String| {
            (0..config.heads).map(|head| matrix(&part(head))).collect::<Result<_>>()
        };
        let q_a = || Result::Ok((matrix("attn_q_a")?, vector(weights, &name("attn_q_a_norm"))?));
        Ok(Self {
            sizes,
            kind,
            q_a: sizes.queries.map(|_| q_a()).transpose()?,
            q_b: matrix(if sizes.queries.is_some() { "attn_q_b" } else { "attn_q" })?,
            kv_a: matrix("attn_kv_a_mqa")?,
            kv_a_norm: vector(weights, &name("attn_kv_a_norm"))?,
            k_b: of_heads(of_keys)?,
            v_b: of_heads(of_values)?,
            output: matrix("attn_output")?,
        })
    }

    /// First matrix that the layer reads.
    pub fn first(&self) -> &Panels {
        self.q_a.as_ref().map_or(&self.q_b, |(q_a, _)| q_a)
    }

    pub fn matrices(&self) -> impl Iterator<Item = &Panels> {
        let q_a = self.q_a.iter().map(|(q_a, _)| q_a);
        q_a.chain([&self.q_b, &self.kv_a]).chain(&self.k_b).chain(&self.v_b).chain([&self.output])
    }
}

/// Heads whose scores are computed together, and that one unit of work attends for.
pub const HEADS_AT_ONCE: usize = 4;

/// Computes the scores of all slots from the first to the last visible one, including those between
/// them that are not visible. Cached positions and queries lie in rows, padded with zeros to whole
/// vectors. Products are summed vector by vector and then across the lanes.
///
/// # Safety
/// As [`super::attention::attend`].
#[inline(always)]
pub unsafe fn score_rows<S: Simd>(job: &AttentionRun<'_>) {
    let mut head = 0;
    while head < job.heads {
        let count = HEADS_AT_ONCE.min(job.heads - head);
        for slot in job.slots.clone() {
            unsafe {
                match count {
                    1 => score_row::<S, 1>(job, slot, head),
                    2 => score_row::<S, 2>(job, slot, head),
                    3 => score_row::<S, 3>(job, slot, head),
                    _ => score_row::<S, HEADS_AT_ONCE>(job, slot, head),
                }
            }
        }
        head += count;
    }
}

#[inline(always)]
unsafe fn score_row<S: Simd, const N: usize>(job: &AttentionRun<'_>, slot: usize, head: usize) {
    unsafe {
        let (row, width) = (job.cache.value(job.kv_head, slot), job.cache.width());
        let queries = job.queries.add(head * width);
        let mut sums = [S::splat(0.0); N];
        for at in (0..width).step_by(LANES) {
            let numbers = S::load_f16(row.add(at));
            for query in 0..N {
                sums[query] = S::mul_add(numbers, S::load(queries.add(query * width + at)), sums[query]);
            }
        }
        for query in 0..N {
            let to = job.scratch.add((head + query) * job.stride() + slot - job.first_scored());
            *to = S::sum(sums[query]) * job.scale;
        }
    }
}
