//! Rotary positions, the cache's entries, and grouped-query attention: a row by itself, over the
//! positions it sees and in their order, so that its bits do not depend on where they lie in the cache.

use super::cache::Cache;
use super::math::{exp, largest_and_sum};
use super::simd::{LANES, Simd, Vector};
use crate::model::RotaryLayout;

/// One row of a pass turned by its position, and its keys and values written down.
#[derive(Debug, Clone, Copy)]
pub struct Rotation {
    pub layout: RotaryLayout,
    /// Components that are turned, the first ones of a head.
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
    pub unsafe fn turn(&self, head: *mut f32) {
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
                *head.add(first) = a * cosine - b * sine;
                *head.add(second) = a * sine + b * cosine;
            }
        }
    }
}

/// Writes one head's key and value of a position into the cache.
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
        let (keys, values) =
            (cache.keys(kv_head, position).add(position % LANES), cache.value(kv_head, position));
        for at in (0..head_size).step_by(LANES) {
            let count = LANES.min(head_size - at);
            let halves = halves::<S>(key.add(at), count);
            for (number, half) in halves.into_iter().take(count).enumerate() {
                *keys.add((at + number) * LANES) = half;
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
    /// Heads in the group.
    pub heads: usize,
    /// Products of queries and keys are multiplied by this.
    pub scale: f32,
    /// `[heads, head_size]`
    pub queries: *const f32,
    /// `[heads, head_size]`
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

    fn stride(&self) -> usize {
        Self::scores(self.last() + 1)
    }

    /// The last position seen; there always is one.
    fn last(&self) -> usize {
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
        score::<S>(job);
        for head in 0..job.heads {
            let scores = job.scratch.add(head * job.stride());
            line_up(job, scores);
            // What is seen begins here wherever the pass begins, so its lanes are always the same.
            let sum = soften::<S>(scores.add(job.first), job.length());
            // The weights are used before they are divided by their sum.
            mix::<S>(job, head, scores, 1.0 / sum);
        }
    }
}

/// Scores of all positions from the first to the last one seen, whether seen or not.
#[inline(always)]
unsafe fn score<S: Simd>(job: &Attention<'_>) {
    for position in (job.first - job.first % LANES..=job.last()).step_by(LANES) {
        let keys = job.cache.keys(job.kv_head, position);
        let mut head = 0;
        unsafe {
            while S::Part::WIDTH == LANES && head + 8 <= job.heads {
                score_block::<S, 8>(job, keys, position, head);
                head += 8;
            }
            while head + 4 <= job.heads {
                score_block::<S, 4>(job, keys, position, head);
                head += 4;
            }
            while head < job.heads {
                score_block::<S, 1>(job, keys, position, head);
                head += 1;
            }
        }
    }
}

/// Sixteen positions against `N` heads.
#[inline(always)]
unsafe fn score_block<S: Simd, const N: usize>(
    job: &Attention<'_>,
    keys: *const u16,
    position: usize,
    head: usize,
) {
    unsafe {
        let queries = job.queries.add(head * job.head_size);
        let mut sums = [S::splat(0.0); N];
        for number in 0..job.head_size {
            let keys = S::load_f16(keys.add(number * LANES));
            for query in 0..N {
                sums[query] =
                    S::mul_add(keys, S::splat(*queries.add(query * job.head_size + number)), sums[query]);
            }
        }
        let scale = S::splat(job.scale);
        for query in 0..N {
            let to = job.scratch.add((head + query) * job.stride() + position);
            S::store(to, S::mul(sums[query], scale));
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

/// e^(score - largest) in place; returns the sum.
#[inline(always)]
unsafe fn soften<S: Simd>(scores: *mut f32, length: usize) -> f32 {
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
        sum
    }
}

/// The weighted sum of the values.
#[inline(always)]
unsafe fn mix<S: Simd>(job: &Attention<'_>, head: usize, weights: *const f32, scale: f32) {
    let mut number = 0;
    let out = head * job.head_size;
    unsafe {
        while number + 4 * LANES <= job.head_size {
            mix_numbers::<S, 4>(job, number, weights, scale, job.out.add(out + number));
            number += 4 * LANES;
        }
        while number + LANES <= job.head_size {
            mix_numbers::<S, 1>(job, number, weights, scale, job.out.add(out + number));
            number += LANES;
        }
        if number < job.head_size {
            let mut last = [0f32; LANES];
            mix_numbers::<S, 1>(job, number, weights, scale, last.as_mut_ptr());
            let to = job.out.add(out + number);
            std::ptr::copy_nonoverlapping(last.as_ptr(), to, job.head_size - number);
        }
    }
}

/// `V` vectors of the result, from `number` on.
#[inline(always)]
unsafe fn mix_numbers<S: Simd, const V: usize>(
    job: &Attention<'_>,
    number: usize,
    weights: *const f32,
    scale: f32,
    out: *mut f32,
) {
    unsafe {
        let mut sums = [S::splat(0.0); V];
        let width = job.head_size.next_multiple_of(LANES);
        let mut position = job.first;
        while position < job.cached {
            let end = job.cached.min(position + Cache::run(position));
            let mut value = job.cache.value(job.kv_head, position).add(number);
            while position < end {
                add_value::<S, V>(&mut sums, *weights.add(position), value);
                value = value.add(width);
                position += 1;
            }
        }
        for (index, own) in job.own.iter().enumerate() {
            let value = job.cache.value(job.kv_head, job.cached + own).add(number);
            add_value::<S, V>(&mut sums, *weights.add(job.cached + index), value);
        }
        for (vector, sum) in sums.into_iter().enumerate() {
            S::store(out.add(vector * LANES), S::mul(sum, S::splat(scale)));
        }
    }
}

#[inline(always)]
unsafe fn add_value<S: Simd, const V: usize>(sums: &mut [S::F; V], weight: f32, value: *const u16) {
    for (vector, sum) in sums.iter_mut().enumerate() {
        unsafe { *sum = S::mul_add(S::splat(weight), S::load_f16(value.add(vector * LANES)), *sum) };
    }
}
