//! Rotary embedding, writing to the KV cache, and grouped-query attention. A row attends to the
//! positions it sees in their order, so that its bits do not depend on where they lie in the cache.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions rely on the contract of the caller alone, see docs/unsafe.md"
)]

use foretoken_model::RotaryLayout;

use super::cache::KvCache;
use super::latent::score_rows;
use super::math::{exp, largest_and_sum};
use super::simd::{LANES, Simd, Vector};

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

/// Attention of one row's heads that share a key head.
#[derive(Debug, Clone, Copy)]
pub struct AttentionJob<'a> {
    pub cache: &'a KvCache,
    pub kv_head: usize,
    pub head_size: usize,
    /// Size of a value in numbers.
    pub value_size: usize,
    /// Query heads in the group.
    pub heads: usize,
    /// Factor of the dot products.
    pub scale: f32,
    /// Sink of each head, a score without a value: `[heads]`, or empty.
    pub sinks: &'a [f32],
    /// `[heads, head_size]`
    pub queries: *const f32,
    /// `[heads, value_size]`
    pub out: *mut f32,
    /// Positions before this pass.
    pub cached: usize,
    /// First visible position of the cache; all from there on are visible. `cached` if none is.
    pub first: usize,
    /// Visible nodes of the pass itself, ascending, as offsets from `cached`.
    pub own: &'a [usize],
    /// Scratch memory for `heads` times [`AttentionJob::scores`] numbers.
    pub scratch: *mut f32,
}

impl AttentionJob<'_> {
    /// Scores that a head needs memory for with `positions` in the cache.
    pub fn scores(positions: usize) -> usize {
        positions.next_multiple_of(LANES) + LANES
    }

    /// Number of visible positions.
    fn length(&self) -> usize {
        self.cached - self.first + self.own.len()
    }

    /// Distance from one head's scores to the next head's.
    pub fn stride(&self) -> usize {
        Self::scores(self.last() + 1)
    }

    /// Last visible position; there is always one.
    pub fn last(&self) -> usize {
        self.own.last().map_or(self.cached, |own| self.cached + own + 1) - 1
    }
}

/// Computes `softmax(scale q k^T) v` for the heads of a group.
///
/// # Safety
/// [`Simd`]'s; the pointers must be valid for the shapes of their fields, and the cache must hold
/// all visible positions.
#[inline(always)]
pub unsafe fn attend<S: Simd>(job: &AttentionJob<'_>) {
    unsafe {
        if job.cache.has_joint_rows() {
            score_rows::<S>(job);
        } else {
            score::<S>(job);
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

/// Loop unrolling by available registers: `whole` where one register is a whole vector, else
/// `parts`.
#[inline(always)]
const fn unrolled<S: Simd>(whole: usize, parts: usize) -> usize {
    if S::Part::WIDTH == LANES { whole } else { parts }
}

/// Computes the scores of all positions from the first to the last visible one, including those
/// between them that are not visible. An addition's latency is four times its throughput, so with
/// few heads several blocks of positions are summed side by side.
#[inline(always)]
unsafe fn score<S: Simd>(job: &AttentionJob<'_>) {
    let mut position = job.first - job.first % LANES;
    while position <= job.last() {
        let blocks = (job.last() - position) / LANES + 1;
        // SAFETY: all blocks begin at or before the last position.
        let done = unsafe {
            match job.heads {
                1 if blocks >= 4 => score_blocks::<S, 1, 4>(job, position, 0),
                2 if blocks >= 2 => score_blocks::<S, 2, 2>(job, position, 0),
                3 if blocks >= unrolled::<S>(2, usize::MAX) => score_blocks::<S, 3, 2>(job, position, 0),
                _ => score_block::<S>(job, position),
            }
        };
        position += done * LANES;
    }
}

/// Scores sixteen positions for all heads. Returns the number of blocks, 1.
#[inline(always)]
unsafe fn score_block<S: Simd>(job: &AttentionJob<'_>, position: usize) -> usize {
    let mut head = 0;
    while head < job.heads {
        let count = unrolled::<S>(8, 4).min(job.heads - head);
        unsafe {
            match count {
                1 => score_blocks::<S, 1, 1>(job, position, head),
                2 => score_blocks::<S, 2, 1>(job, position, head),
                3 => score_blocks::<S, 3, 1>(job, position, head),
                4 => score_blocks::<S, 4, 1>(job, position, head),
                5 => score_blocks::<S, 5, 1>(job, position, head),
                6 => score_blocks::<S, 6, 1>(job, position, head),
                7 => score_blocks::<S, 7, 1>(job, position, head),
                _ => score_blocks::<S, 8, 1>(job, position, head),
            };
        }
        head += count;
    }
    1
}

/// Scores `P` blocks of sixteen positions for `N` heads. Returns `P`.
#[inline(always)]
unsafe fn score_blocks<S: Simd, const N: usize, const P: usize>(
    job: &AttentionJob<'_>,
    position: usize,
    head: usize,
) -> usize {
    unsafe {
        let queries = job.queries.add(head * job.head_size);
        let mut keys = [std::ptr::null::<u16>(); P];
        for block in 0..P {
            keys[block] = job.cache.keys(job.kv_head, position + block * LANES);
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
        let scale = S::splat(job.scale);
        for block in 0..P {
            for query in 0..N {
                let to = job.scratch.add((head + query) * job.stride() + position + block * LANES);
                S::store(to, S::mul(sums[block][query], scale));
            }
        }
    }
    P
}

/// Applies softmax to the scores of `N` heads and sums the values by it; values are loaded once for
/// all.
#[inline(always)]
unsafe fn softmax_and_mix<S: Simd, const N: usize>(job: &AttentionJob<'_>, head: usize) {
    unsafe {
        let mut weights = [std::ptr::null::<f32>(); N];
        let mut scales = [0f32; N];
        for index in 0..N {
            let scores = job.scratch.add((head + index) * job.stride());
            compact_scores(job, scores);
            // Visible scores always start here, so their lanes do not depend on where a pass
            // begins.
            let sum = softmax::<S>(scores.add(job.first), job.length(), job.sinks.get(head + index));
            // Division by the sum comes after the weighted sum of values.
            (weights[index], scales[index]) = (scores, 1.0 / sum);
        }
        let out = job.out.add(head * job.value_size);
        if S::Part::WIDTH == LANES || N == 1 {
            mix::<S, N, 4>(job, weights, scales, out);
        } else if N == 2 {
            mix::<S, N, 2>(job, weights, scales, out);
        } else {
            mix::<S, N, 1>(job, weights, scales, out);
        }
    }
}

/// Moves the scores of visible nodes next to each other; in a chain they already are.
#[inline(always)]
unsafe fn compact_scores(job: &AttentionJob<'_>, scores: *mut f32) {
    for (to, &from) in job.own.iter().enumerate() {
        unsafe { *scores.add(job.cached + to) = *scores.add(job.cached + from) };
    }
}

/// Replaces scores by `e^(score - largest)` and returns their sum, including the sink.
#[inline(always)]
unsafe fn softmax<S: Simd>(scores: *mut f32, length: usize, sink: Option<&f32>) -> f32 {
    unsafe {
        let whole = length.next_multiple_of(LANES);
        for padding in length..whole {
            *scores.add(padding) = f32::NEG_INFINITY;
        }
        let (largest, sum) = largest_and_sum::<S>(scores, whole);
        for at in (0..length).step_by(LANES) {
            let weight = exp::<S>(S::sub(S::load(scores.add(at)), S::splat(largest)));
            S::store(scores.add(at), weight);
        }
        // A sink far above all scores makes the sum huge or infinite, and the weights vanish.
        sink.map_or(sum, |sink| sum + S::largest(exp::<S>(S::splat(sink - largest))))
    }
}

/// Sums the values by their weights for `N` heads, `V` vectors at a time.
#[inline(always)]
unsafe fn mix<S: Simd, const N: usize, const V: usize>(
    job: &AttentionJob<'_>,
    weights: [*const f32; N],
    scales: [f32; N],
    out: *mut f32,
) {
    let mut number = 0;
    unsafe {
        while number + V * LANES <= job.value_size {
            let sums = mix_numbers::<S, N, V>(job, number, weights, scales);
            for head in 0..N {
                for vector in 0..V {
                    S::store(out.add(head * job.value_size + number + vector * LANES), sums[head][vector]);
                }
            }
            number += V * LANES;
        }
        while number < job.value_size {
            let sums = mix_numbers::<S, N, 1>(job, number, weights, scales);
            let count = LANES.min(job.value_size - number);
            for head in 0..N {
                let mut mixed = [0f32; LANES];
                S::store(mixed.as_mut_ptr(), sums[head][0]);
                let to = out.add(head * job.value_size + number);
                std::ptr::copy_nonoverlapping(mixed.as_ptr(), to, count);
            }
            number += LANES;
        }
    }
}

/// Computes `V` vectors of each head's result, from `number` on.
#[inline(always)]
unsafe fn mix_numbers<S: Simd, const N: usize, const V: usize>(
    job: &AttentionJob<'_>,
    number: usize,
    weights: [*const f32; N],
    scales: [f32; N],
) -> [[S::F; V]; N] {
    unsafe {
        let mut sums = [[S::splat(0.0); V]; N];
        let width = job.cache.width();
        let mut position = job.first;
        while position < job.cached {
            let end = job.cached.min(position + KvCache::contiguous(position));
            let mut value = job.cache.value(job.kv_head, position).add(number);
            while position < end {
                add_value::<S, N, V>(&mut sums, weights, position, value);
                value = value.add(width);
                position += 1;
            }
        }
        for (index, own) in job.own.iter().enumerate() {
            let value = job.cache.value(job.kv_head, job.cached + own).add(number);
            add_value::<S, N, V>(&mut sums, weights, job.cached + index, value);
        }
        for head in 0..N {
            for vector in 0..V {
                sums[head][vector] = S::mul(sums[head][vector], S::splat(scales[head]));
            }
        }
        sums
    }
}

#[inline(always)]
unsafe fn add_value<S: Simd, const N: usize, const V: usize>(
    sums: &mut [[S::F; V]; N],
    weights: [*const f32; N],
    position: usize,
    value: *const u16,
) {
    unsafe {
        for vector in 0..V {
            let value = S::load_f16(value.add(vector * LANES));
            for head in 0..N {
                let weight = S::splat(*weights[head].add(position));
                sums[head][vector] = S::mul_add(weight, value, sums[head][vector]);
            }
        }
    }
}
