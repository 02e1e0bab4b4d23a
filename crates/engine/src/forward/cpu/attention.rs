//! Rotary positions, the cache's entries, and grouped-query attention: a row by itself, over the
//! positions it sees and in their order, so that its bits do not depend on where they lie in the cache.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions rely on the contract of the caller alone, see docs/unsafe.md"
)]

use super::cache::Cache;
use super::latent::score_rows;
use super::math::{exp, largest_and_sum};
use super::simd::{LANES, Simd, Vector};
use crate::model::RotaryLayout;

/// One row of a pass rotated by its position, and its keys and values written down.
#[derive(Debug, Clone, Copy)]
pub struct Rotation {
    pub layout: RotaryLayout,
    /// Components that are rotated, the first ones of a head.
    pub size: usize,
    /// `[size / 2]`
    pub cosines: *const f32,
    pub sines: *const f32,
}

impl Rotation {
    /// Turns one head.
    ///
    /// # Safety
    /// `head` must be good for `size` numbers.
    #[inline(always)]
    pub unsafe fn rotate(&self, head: *mut f32) {
        let half = self.size / 2;
        for pair in 0..half {
            let (first, second) = match self.layout {
                RotaryLayout::Interleaved => (2 * pair, 2 * pair + 1),
                RotaryLayout::Halves => (pair, pair + half),
            };
            // SAFETY: both indices are below `size`.
            unsafe {
                let (cosine, sine) = (*self.cosines.add(pair), *self.sines.add(pair));
                let (a, b) = (*head.add(first), *head.add(second));
                *head.add(first) = a.mul_add(cosine, -(b * sine));
                *head.add(second) = a.mul_add(sine, b * cosine);
            }
        }
    }
}

/// Writes one head's key and value of a position into the cache; the value alone where it is the key.
///
/// # Safety
/// [`Simd`]'s; `key` and `value` must be good for `head_size` numbers, and nobody else may touch this
/// position meanwhile.
#[inline(always)]
pub unsafe fn remember<S: Simd>(
    cache: &Cache,
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
            if !cache.has_rows() {
                let keys = cache.keys(kv_head, position).add(position % LANES);
                let halves = halves::<S>(key.add(at), count);
                for (number, half) in halves.into_iter().take(count).enumerate() {
                    *keys.add((at + number) * LANES) = half;
                }
            }
            values.add(at).cast::<[u16; LANES]>().write_unaligned(self::halves::<S>(value.add(at), count));
        }
    }
}

/// `count` numbers in half precision, and zeros.
#[inline(always)]
unsafe fn halves<S: Simd>(from: *const f32, count: usize) -> [u16; LANES] {
    let mut numbers = [0f32; LANES];
    let mut halves = [0; LANES];
    unsafe {
        std::ptr::copy_nonoverlapping(from, numbers.as_mut_ptr(), count);
        S::store_f16(halves.as_mut_ptr(), S::load(numbers.as_ptr()));
    }
    halves
}

/// The heads of one row that share a key head.
#[derive(Debug, Clone, Copy)]
pub struct Attention<'a> {
    pub cache: &'a Cache,
    pub kv_head: usize,
    pub head_size: usize,
    /// Numbers of a value.
    pub value_size: usize,
    /// Heads in the group.
    pub heads: usize,
    /// Products of queries and keys are multiplied by this.
    pub scale: f32,
    /// Of each head a score that has no value, `[heads]`; none where there are no sinks.
    pub sinks: &'a [f32],
    /// `[heads, head_size]`
    pub queries: *const f32,
    /// `[heads, value_size]`
    pub out: *mut f32,
    /// Positions before those of the pass.
    pub cached: usize,
    /// The first of them that this row sees; it sees all from there on. `cached` if it sees none.
    pub first: usize,
    /// What this row sees of the pass itself, ascending: positions after the first `cached`.
    pub own: &'a [usize],
    /// Room for `heads` times [`Attention::scores`] numbers.
    pub scratch: *mut f32,
}

impl Attention<'_> {
    /// Scores that a head needs room for when `positions` are in the cache.
    pub fn scores(positions: usize) -> usize {
        positions.next_multiple_of(LANES) + LANES
    }

    /// Positions seen.
    fn length(&self) -> usize {
        self.cached - self.first + self.own.len()
    }

    pub fn stride(&self) -> usize {
        Self::scores(self.last() + 1)
    }

    /// The last position seen; there always is one.
    pub fn last(&self) -> usize {
        self.own.last().map_or(self.cached, |own| self.cached + own + 1) - 1
    }
}

/// softmax(scale q k^T) v for the heads of a group.
///
/// # Safety
/// [`Simd`]'s; the pointers must be good for what the fields say, and the cache must hold what is seen.
#[inline(always)]
pub unsafe fn attend<S: Simd>(job: &Attention<'_>) {
    unsafe {
        if job.cache.has_rows() {
            score_rows::<S>(job);
        } else {
            score::<S>(job);
        }
        let mut head = 0;
        while head < job.heads {
            let count = most::<S>(4, 4).min(job.heads - head);
            match count {
                1 => soften_and_mix::<S, 1>(job, head),
                2 => soften_and_mix::<S, 2>(job, head),
                3 => soften_and_mix::<S, 3>(job, head),
                _ => soften_and_mix::<S, 4>(job, head),
            }
            head += count;
        }
    }
}

/// As many of something as there are registers for: `whole` where a register is a whole vector.
#[inline(always)]
const fn most<S: Simd>(whole: usize, parts: usize) -> usize {
    if S::Part::WIDTH == LANES { whole } else { parts }
}

/// Scores of all positions from the first to the last one seen, whether seen or not. A sum waits for
/// itself four times as long as the processor needs to add to another, so that few heads take several
/// blocks of positions at once.
#[inline(always)]
unsafe fn score<S: Simd>(job: &Attention<'_>) {
    let mut position = job.first - job.first % LANES;
    while position <= job.last() {
        let blocks = (job.last() - position) / LANES + 1;
        // SAFETY: all blocks begin before or with the last position.
        let done = unsafe {
            match job.heads {
                1 if blocks >= 4 => score_blocks::<S, 1, 4>(job, position, 0),
                2 if blocks >= 2 => score_blocks::<S, 2, 2>(job, position, 0),
                3 if blocks >= most::<S>(2, usize::MAX) => score_blocks::<S, 3, 2>(job, position, 0),
                _ => score_block::<S>(job, position),
            }
        };
        position += done * LANES;
    }
}

/// Sixteen positions against all heads. Returns the blocks done, which is one.
#[inline(always)]
unsafe fn score_block<S: Simd>(job: &Attention<'_>, position: usize) -> usize {
    let mut head = 0;
    while head < job.heads {
        let count = most::<S>(8, 4).min(job.heads - head);
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

/// `P` blocks of sixteen positions against `N` heads. Returns the blocks done.
#[inline(always)]
unsafe fn score_blocks<S: Simd, const N: usize, const P: usize>(
    job: &Attention<'_>,
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

/// The softmax of `N` heads' scores, and the values mixed by it. They are loaded once for all.
#[inline(always)]
unsafe fn soften_and_mix<S: Simd, const N: usize>(job: &Attention<'_>, head: usize) {
    unsafe {
        let mut weights = [std::ptr::null::<f32>(); N];
        let mut scales = [0f32; N];
        for index in 0..N {
            let scores = job.scratch.add((head + index) * job.stride());
            line_up(job, scores);
            // What is seen begins here wherever the pass begins, so its lanes are always the same.
            let sum = soften::<S>(scores.add(job.first), job.length(), job.sinks.get(head + index));
            // The weights are used before they are divided by their sum.
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

/// Puts the scores of what is seen next to each other; a chain's already are.
#[inline(always)]
unsafe fn line_up(job: &Attention<'_>, scores: *mut f32) {
    for (to, &from) in job.own.iter().enumerate() {
        unsafe { *scores.add(job.cached + to) = *scores.add(job.cached + from) };
    }
}

/// e^(score - largest) in place; returns the sum, in which the sink has its part.
#[inline(always)]
unsafe fn soften<S: Simd>(scores: *mut f32, length: usize, sink: Option<&f32>) -> f32 {
    unsafe {
        let whole = length.next_multiple_of(LANES);
        for beyond in length..whole {
            *scores.add(beyond) = f32::NEG_INFINITY;
        }
        let (largest, sum) = largest_and_sum::<S>(scores, whole);
        for at in (0..length).step_by(LANES) {
            let weight = exp::<S>(S::sub(S::load(scores.add(at)), S::splat(largest)));
            S::store(scores.add(at), weight);
        }
        // One that is larger than the others by more than there are numbers for leaves these next to nothing.
        sink.map_or(sum, |sink| sum + S::largest(exp::<S>(S::splat(sink - largest))))
    }
}

/// The weighted sums of the values for `N` heads, `V` vectors of numbers at a time.
#[inline(always)]
unsafe fn mix<S: Simd, const N: usize, const V: usize>(
    job: &Attention<'_>,
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

/// `V` vectors of each head's result, from `number` on.
#[inline(always)]
unsafe fn mix_numbers<S: Simd, const N: usize, const V: usize>(
    job: &Attention<'_>,
    number: usize,
    weights: [*const f32; N],
    scales: [f32; N],
) -> [[S::F; V]; N] {
    unsafe {
        let mut sums = [[S::splat(0.0); V]; N];
        let width = job.cache.width();
        let mut position = job.first;
        while position < job.cached {
            let end = job.cached.min(position + Cache::run(position));
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
