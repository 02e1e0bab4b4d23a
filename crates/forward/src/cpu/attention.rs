//! Rotary embedding, writing to the KV cache, and grouped-query attention. A row attends to the
//! positions it sees in their order, run by run, so that its bits depend neither on where they lie
//! in the cache nor on which threads attend to which run.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions rely on the contract of the caller alone, see docs/unsafe.md"
)]

use std::ops::Range;

use foretoken_model::RotaryLayout;

use super::cache::KvCache;
use super::latent::score_rows;
use super::math::exp;
use super::simd::{LANES, Simd, Vector};
use super::visible::{RUN, Visible};

/// Rotary embedding of one row's heads.
#[derive(Debug, Clone, Copy)]
pub struct Rotation {
    pub layout: RotaryLayout,
    /// Components that are rotated, the first ones of a head (`n_rot`).
    pub rotary_dim: usize,
    /// Cosines of the row's angles, `[rotary_dim / 2]`.
    pub cosines: *const f32,
    /// Sines of the row's angles, `[rotary_dim / 2]`.
    pub sines: *const f32,
}

impl Rotation {
    /// Rotates one head.
    ///
    /// # Safety
    /// `head` must be valid for `rotary_dim` numbers.
    #[inline(always)]
    pub unsafe fn rotate(&self, head: *mut f32) {
        let half = self.rotary_dim / 2;
        for pair in 0..half {
            let (first, second) = match self.layout {
                RotaryLayout::Interleaved => (2 * pair, 2 * pair + 1),
                RotaryLayout::Halves => (pair, pair + half),
            };
            // SAFETY: both indices are below `rotary_dim`.
            unsafe {
                let (cosine, sine) = (*self.cosines.add(pair), *self.sines.add(pair));
                let (a, b) = (*head.add(first), *head.add(second));
                *head.add(first) = a.mul_add(cosine, -(b * sine));
                *head.add(second) = a.mul_add(sine, b * cosine);
            }
        }
    }
}

/// Writes one head's key and value at a position of the cache; only the value if it holds the key.
///
/// # Safety
/// [`Simd`]'s; `key` and `value` must be valid for `head_size` numbers, and nothing else may access
/// this position meanwhile.
#[inline(always)]
pub unsafe fn store_kv<S: Simd>(
    cache: &KvCache,
    kv_head: usize,
    position: usize,
    head_size: usize,
    key: *const f32,
    value: *const f32,
) {
    unsafe {
        let values = cache.value(kv_head, position);
        for at in (0..head_size).step_by(LANES) {
            let count = LANES.min(head_size - at);
            if !cache.has_joint_rows() {
                let keys = cache.keys(kv_head, position).add(position % LANES);
                let halves = to_f16::<S>(key.add(at), count);
                for (number, half) in halves.into_iter().take(count).enumerate() {
                    *keys.add((at + number) * LANES) = half;
                }
            }
            values.add(at).cast::<[u16; LANES]>().write_unaligned(to_f16::<S>(value.add(at), count));
        }
    }
}

/// Converts `count` numbers to half precision, padded with zeros.
#[inline(always)]
unsafe fn to_f16<S: Simd>(from: *const f32, count: usize) -> [u16; LANES] {
    let mut numbers = [0f32; LANES];
    let mut halves = [0; LANES];
    unsafe {
        std::ptr::copy_nonoverlapping(from, numbers.as_mut_ptr(), count);
        S::store_f16(halves.as_mut_ptr(), S::load(numbers.as_ptr()));
    }
    halves
}

/// Attention of query heads over one run of positions, before it is joined with that of other runs.
#[derive(Debug, Clone)]
pub struct AttentionRun<'a> {
    pub cache: &'a KvCache,
    pub kv_head: usize,
    /// Numbers from one query to the next, and of a key.
    pub head_size: usize,
    /// Size of a value in numbers.
    pub value_size: usize,
    /// Query heads of the key head, of one row or of rows that see the same positions of the run.
    pub heads: usize,
    /// Factor of the dot products.
    pub scale: f32,
    /// `[heads, head_size]`; rounded for keys in 8 bits, see `int8_attention.rs`.
    pub queries: *const f32,
    pub visible: Visible<'a>,
    /// Visible text positions of the run; there is one.
    pub positions: Range<usize>,
    /// Their slots in the cache, from the first to the last.
    pub slots: Range<usize>,
    /// Results, `[heads, part_size]`: the values' sum, weighted by e^(score - largest score), then
    /// from [`Self::value_width`] on the largest score and the sum of the weights.
    pub parts: *mut f32,
    /// Memory for `heads + 1` times [`Self::scores`] numbers.
    pub scratch: *mut f32,
}

impl AttentionRun<'_> {
    /// Scores that a head needs memory for in a pass over so many nodes.
    pub fn scores(nodes: usize) -> usize {
        (RUN + nodes).next_multiple_of(LANES) + 2 * LANES
    }

    /// Numbers of a value, padded to whole vectors.
    pub fn value_width(value_size: usize) -> usize {
        value_size.next_multiple_of(LANES)
    }

    /// Numbers of the result of one head.
    pub fn part_size(value_size: usize) -> usize {
        Self::value_width(value_size) + LANES
    }

    /// Slot of the first score.
    pub fn first_scored(&self) -> usize {
        self.slots.start / LANES * LANES
    }

    /// Distance from one head's scores to the next head's.
    pub fn stride(&self) -> usize {
        (self.slots.end - self.first_scored()).next_multiple_of(LANES) + LANES
    }
}

/// Computes the parts of a run: `softmax(scale q k^T) v` before its division.
///
/// # Safety
/// [`Simd`]'s; the pointers must be valid for the shapes of their fields, and the cache must hold
/// all visible positions.
#[inline(always)]
pub unsafe fn attend<S: Simd>(job: &AttentionRun<'_>) {
    unsafe {
        if job.cache.has_joint_rows() {
            score_rows::<S>(job);
        } else {
            score::<S, F16Keys>(job);
        }
        let mut head = 0;
        while head < job.heads {
            let count = unrolled::<S>(4, 4).min(job.heads - head);
            match count {
                1 => softmax_and_mix::<S, 1>(job, head),
                2 => softmax_and_mix::<S, 2>(job, head),
                3 => softmax_and_mix::<S, 3>(job, head),
                _ => softmax_and_mix::<S, 4>(job, head),
            }
            head += count;
        }
    }
}

/// Parts of one head's runs, to be joined.
#[derive(Debug, Clone, Copy)]
pub struct Join {
    /// Part of the first run, see [`AttentionRun::parts`]. Joining overwrites the largest scores.
    pub parts: *mut f32,
    /// Distance from one run's part to the next run's.
    pub stride: usize,
    pub runs: usize,
    pub value_size: usize,
    /// A score without a value.
    pub sink: Option<f32>,
    /// `[value_size]`
    pub out: *mut f32,
}

/// Joins the runs of a head in order: sums weighted by e^(largest score of the run - largest of
/// all), divided by the sum of all weights.
///
/// # Safety
/// [`Simd`]'s; the pointers must be valid for the shapes of their fields.
#[inline(always)]
pub unsafe fn join<S: Simd>(job: &Join) {
    let width = AttentionRun::value_width(job.value_size);
    unsafe {
        let part = |run: usize| job.parts.add(run * job.stride);
        let largest = (0..job.runs).map(|run| *part(run).add(width)).fold(f32::NEG_INFINITY, f32::max);
        let weight = |score: f32| S::largest(exp::<S>(S::splat(score - largest)));
        let mut sum = 0f32;
        for run in 0..job.runs {
            let factor = part(run).add(width);
            *factor = weight(*factor);
            sum = (*factor).mul_add(*factor.add(1), sum);
        }
        // A sink far above all scores makes the sum huge, and the weights vanish.
        sum += job.sink.map_or(0.0, weight);
        let scale = S::splat(1.0 / sum);
        for at in (0..width).step_by(LANES) {
            let mut mixed = S::splat(0.0);
            for run in 0..job.runs {
                let part = part(run);
                mixed = S::mul_add(S::splat(*part.add(width)), S::load(part.add(at)), mixed);
            }
            let mixed = S::mul(mixed, scale);
            let out = job.out.add(at);
            if at + LANES <= job.value_size {
                S::store(out, mixed);
            } else {
                let mut last = [0f32; LANES];
                S::store(last.as_mut_ptr(), mixed);
                std::ptr::copy_nonoverlapping(last.as_ptr(), out, job.value_size - at);
            }
        }
    }
}

/// Loop unrolling by available registers: `whole` where one register is a whole vector, else
/// `parts`.
#[inline(always)]
const fn unrolled<S: Simd>(whole: usize, parts: usize) -> usize {
    if S::Part::WIDTH == LANES { whole } else { parts }
}

/// Scores of queries over blocks of sixteen slots, by the format of the keys.
pub trait Scoring {
    /// Scores `P` blocks of sixteen slots for `N` heads.
    ///
    /// # Safety
    /// As [`attend`]; all blocks begin before the last slot.
    unsafe fn score_blocks<S: Simd, const N: usize, const P: usize>(
        job: &AttentionRun<'_>,
        slot: usize,
        head: usize,
    );
}

/// Scores over keys in half precision.
struct F16Keys;

/// Computes the scores of all slots from the first to the last visible one, including those between
/// them that are not visible. An addition's latency is four times its throughput, so with few heads
/// several blocks of slots are summed side by side.
///
/// # Safety
/// As [`attend`].
#[inline(always)]
pub unsafe fn score<S: Simd, K: Scoring>(job: &AttentionRun<'_>) {
    let (mut slot, end) = (job.first_scored(), job.slots.end);
    while slot < end {
        let blocks = (end - slot).div_ceil(LANES);
        // SAFETY: all blocks begin before the last slot.
        let done = unsafe {
            match job.heads {
                1 if blocks >= 4 => side_by_side::<S, K, 1, 4>(job, slot),
                2 if blocks >= 2 => side_by_side::<S, K, 2, 2>(job, slot),
                3 if blocks >= unrolled::<S>(2, usize::MAX) => side_by_side::<S, K, 3, 2>(job, slot),
                4 if blocks >= unrolled::<S>(2, usize::MAX) => side_by_side::<S, K, 4, 2>(job, slot),
                _ => score_block::<S, K>(job, slot),
            }
        };
        slot += done * LANES;
    }
}

/// Scores `P` blocks for all `N` heads. Returns `P`.
#[inline(always)]
unsafe fn side_by_side<S: Simd, K: Scoring, const N: usize, const P: usize>(
    job: &AttentionRun<'_>,
    slot: usize,
) -> usize {
    unsafe { K::score_blocks::<S, N, P>(job, slot, 0) };
    P
}

/// Scores sixteen slots for all heads. Returns the number of blocks, 1.
#[inline(always)]
unsafe fn score_block<S: Simd, K: Scoring>(job: &AttentionRun<'_>, slot: usize) -> usize {
    let mut head = 0;
    while head < job.heads {
        let count = unrolled::<S>(8, 4).min(job.heads - head);
        unsafe {
            match count {
                1 => K::score_blocks::<S, 1, 1>(job, slot, head),
                2 => K::score_blocks::<S, 2, 1>(job, slot, head),
                3 => K::score_blocks::<S, 3, 1>(job, slot, head),
                4 => K::score_blocks::<S, 4, 1>(job, slot, head),
                5 => K::score_blocks::<S, 5, 1>(job, slot, head),
                6 => K::score_blocks::<S, 6, 1>(job, slot, head),
                7 => K::score_blocks::<S, 7, 1>(job, slot, head),
                _ => K::score_blocks::<S, 8, 1>(job, slot, head),
            };
        }
        head += count;
    }
    1
}

impl Scoring for F16Keys {
    #[inline(always)]
    unsafe fn score_blocks<S: Simd, const N: usize, const P: usize>(
        job: &AttentionRun<'_>,
        slot: usize,
        head: usize,
    ) {
        unsafe {
            let queries = job.queries.add(head * job.head_size);
            let mut keys = [std::ptr::null::<u16>(); P];
            for block in 0..P {
                keys[block] = job.cache.keys(job.kv_head, slot + block * LANES);
            }
            let mut sums = [[S::splat(0.0); N]; P];
            for number in 0..job.head_size {
                for block in 0..P {
                    let keys = S::load_f16(keys[block].add(number * LANES));
                    for query in 0..N {
                        let query_number = S::splat(*queries.add(query * job.head_size + number));
                        sums[block][query] = S::mul_add(keys, query_number, sums[block][query]);
                    }
                }
            }
            let (scale, at) = (S::splat(job.scale), slot - job.first_scored());
            for block in 0..P {
                for query in 0..N {
                    let to = job.scratch.add((head + query) * job.stride() + at + block * LANES);
                    S::store(to, S::mul(sums[block][query], scale));
                }
            }
        }
    }
}

/// Turns the scores of `N` heads into weights and sums the values by them; values are loaded once
/// for all.
#[inline(always)]
unsafe fn softmax_and_mix<S: Simd, const N: usize>(job: &AttentionRun<'_>, head: usize) {
    let (positions, size) = (&job.positions, AttentionRun::part_size(job.value_size));
    unsafe {
        let mut weights = [std::ptr::null::<f32>(); N];
        let parts = job.parts.add(head * size);
        for index in 0..N {
            let scores = job.scratch.add((head + index) * job.stride());
            compact_scores(job, scores);
            // The first visible position always begins a vector, so that lanes do not depend on
            // where a pass begins.
            let scores = scores.add(job.slots.start - job.first_scored());
            let (largest, sum) = softmax::<S>(scores, positions.len());
            let ends = parts.add(index * size + AttentionRun::value_width(job.value_size));
            (*ends, *ends.add(1)) = (largest, sum);
            weights[index] = scores;
        }
        if S::Part::WIDTH == LANES || N == 1 {
            mix::<S, N, 4>(job, weights, parts);
        } else if N == 2 {
            mix::<S, N, 2>(job, weights, parts);
        } else {
            mix::<S, N, 1>(job, weights, parts);
        }
    }
}

/// Moves the scores of visible slots next to each other; in a chain they already are.
#[inline(always)]
unsafe fn compact_scores(job: &AttentionRun<'_>, scores: *mut f32) {
    let (positions, scored) = (&job.positions, job.first_scored());
    let first = job.slots.start - scored;
    for position in positions.start.max(job.visible.cached)..positions.end {
        unsafe {
            *scores.add(first + position - positions.start) =
                *scores.add(job.visible.slot(position) - scored);
        }
    }
}

/// Replaces scores by `e^(score - largest)`. Returns the largest one and the sum.
#[inline(always)]
unsafe fn softmax<S: Simd>(scores: *mut f32, length: usize) -> (f32, f32) {
    let whole = length.next_multiple_of(LANES);
    unsafe {
        let padding = scores.add(length);
        for index in 0..whole - length {
            *padding.add(index) = f32::NEG_INFINITY;
        }
        let mut largest = S::load(scores);
        for at in (LANES..whole).step_by(LANES) {
            largest = S::max(S::load(scores.add(at)), largest);
        }
        let largest = S::largest(largest);
        for at in (0..whole).step_by(LANES) {
            let weight = exp::<S>(S::sub(S::load(scores.add(at)), S::splat(largest)));
            S::store(scores.add(at), weight);
        }
        for index in 0..whole - length {
            *padding.add(index) = 0.0;
        }
        let mut sum = S::splat(0.0);
        for at in (0..whole).step_by(LANES) {
            sum = S::add(sum, S::load(scores.add(at)));
        }
        (largest, S::sum(sum))
    }
}

/// Sums the values by their weights for `N` heads, `V` vectors at a time.
#[inline(always)]
unsafe fn mix<S: Simd, const N: usize, const V: usize>(
    job: &AttentionRun<'_>,
    weights: [*const f32; N],
    parts: *mut f32,
) {
    let width = AttentionRun::value_width(job.value_size);
    let mut number = 0;
    unsafe {
        while number + V * LANES <= width {
            mix_numbers::<S, N, V>(job, number, weights, parts);
            number += V * LANES;
        }
        while number < width {
            mix_numbers::<S, N, 1>(job, number, weights, parts);
            number += LANES;
        }
    }
}

/// Computes `V` vectors of each head's part, from `number` on.
#[inline(always)]
unsafe fn mix_numbers<S: Simd, const N: usize, const V: usize>(
    job: &AttentionRun<'_>,
    number: usize,
    weights: [*const f32; N],
    parts: *mut f32,
) {
    let (positions, size) = (&job.positions, AttentionRun::part_size(job.value_size));
    let cached = positions.end.min(job.visible.cached).saturating_sub(positions.start);
    unsafe {
        let mut sums = [[S::splat(0.0); V]; N];
        if cached > 0 {
            // The cached positions of a run lie in one page.
            let mut value = job.cache.value(job.kv_head, positions.start).add(number);
            for index in 0..cached {
                add_value::<S, N, V>(&mut sums, weights, index, value);
                value = value.add(job.cache.width());
            }
        }
        for index in cached..positions.len() {
            let slot = job.visible.slot(positions.start + index);
            add_value::<S, N, V>(&mut sums, weights, index, job.cache.value(job.kv_head, slot).add(number));
        }
        for head in 0..N {
            for vector in 0..V {
                S::store(parts.add(head * size + number + vector * LANES), sums[head][vector]);
            }
        }
    }
}

#[inline(always)]
unsafe fn add_value<S: Simd, const N: usize, const V: usize>(
    sums: &mut [[S::F; V]; N],
    weights: [*const f32; N],
    index: usize,
    value: *const u16,
) {
    unsafe {
        for vector in 0..V {
            let value = S::load_f16(value.add(vector * LANES));
            for head in 0..N {
                let weight = S::splat(*weights[head].add(index));
                sums[head][vector] = S::mul_add(weight, value, sums[head][vector]);
            }
        }
    }
}
