//! Attention over keys and values in 8 bits. A head's key and value are rounded by themselves,
//! once, when they are cached, and queries are rounded for their scores. All sums over numbers and
//! positions are sums of integers and exact, so bits depend neither on the order of positions nor
//! on where they lie in the cache. Keys and queries are rotated before they are rounded, see
//! `hadamard.rs`.
//!
//! Keys with a bias, as those of Qwen2, have a large part that RoPE hardly turns. It is subtracted
//! from all keys of a head before they are rounded: a constant of all scores changes no softmax.
//!
//! Weights of a run are rounded to 15 bits, relative to the largest product of a weight and a
//! value's scale: 256 products of 15 and 8 bits fit in 32 bits.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions rely on the contract of the caller alone, see docs/unsafe.md"
)]

use foretoken_model::{KeyHeads, MAX_INT8_HEAD_SIZE, Rotary, RotaryLayout};
use half::f16;

use super::attention::{AttentionRun, Scoring, score};
use super::cache::KvCache;
use super::hadamard::{factors, rotate};
use super::math::{exp, load_part};
use super::simd::{LANES, Products, Simd, Vector};

/// Largest magnitude of an 8-bit number: -128 is not used.
const LARGEST: f32 = 127.0;

/// Largest rounded weight.
const LARGEST_WEIGHT: f32 = 32767.0;

/// Scale at which weights are rounded for their sum; 256 of them fit in 31 bits.
const WEIGHT_STEPS: f32 = (1 << 22) as f32;

/// Bytes of a rounded query before its numbers: its scale, and minus the sum of the numbers.
const QUERY_HEADER: usize = size_of::<f32>() + size_of::<i32>();

/// RoPE turns the constant part of keys by less than this, in radians per position.
const SLOW: f32 = 0.5 / 4096.0;

/// Constant part of the keys of all heads, from their bias: what RoPE hardly turns.
pub fn key_offsets(bias: &[f32], keys: KeyHeads, rotary: &Rotary) -> Vec<f32> {
    let mut offsets: Vec<f32> = bias[..keys.count * keys.size].to_vec();
    for head in offsets.chunks_mut(keys.size) {
        let half = rotary.size() / 2;
        for (pair, frequency) in rotary.inverse_frequencies.iter().enumerate() {
            let numbers = match rotary.layout {
                RotaryLayout::Interleaved => [2 * pair, 2 * pair + 1],
                RotaryLayout::Halves => [pair, pair + half],
            };
            let factor = if *frequency < SLOW { rotary.scale } else { 0.0 };
            numbers.into_iter().for_each(|number| head[number] *= factor);
        }
    }
    offsets
}

/// Scale of `size` numbers that are rounded to 8 bits; infinite if one of them is not finite.
#[inline(always)]
unsafe fn scale_of<S: Simd>(from: *const f32, size: usize) -> f32 {
    unsafe {
        let (mut largest, mut check) = (S::splat(0.0), S::splat(0.0));
        for at in (0..size).step_by(LANES) {
            let numbers = load_part::<S>(from.add(at), LANES.min(size - at));
            largest = S::max(S::abs(numbers), largest);
            check = S::add(check, S::sub(numbers, numbers));
        }
        if S::sum(check) == 0.0 { S::largest(largest) / LARGEST } else { f32::INFINITY }
    }
}

/// Rounds `count` numbers, at most [`LANES`], by the inverse of their scale.
#[inline(always)]
unsafe fn round<S: Simd>(from: *const f32, count: usize, inverse: f32) -> S::I {
    unsafe {
        let scaled = S::mul(load_part::<S>(from, count), S::splat(inverse));
        S::to_int(S::min(S::max(scaled, S::splat(-LARGEST)), S::splat(LARGEST)))
    }
}

/// Inverse of a scale; 0 for a scale of 0, whose numbers all become 0.
fn inverse(scale: f32) -> f32 {
    let inverse = 1.0 / scale;
    if inverse.is_finite() { inverse } else { 0.0 }
}

/// Rounds one head's key and value and writes them at a position of the cache.
///
/// # Safety
/// As [`super::attention::store_kv`].
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
        let mut rotated = [0f32; MAX_INT8_HEAD_SIZE];
        std::ptr::copy_nonoverlapping(key, rotated.as_mut_ptr(), head_size);
        for (number, offset) in rotated.iter_mut().zip(cache.key_offsets(kv_head)) {
            *number -= offset;
        }
        rotate(&mut rotated[..head_size], factors(head_size)[0]);
        let key = rotated.as_ptr();
        let scales = cache.scales(kv_head, position);
        let mut inverses = [0.0; 2];
        for (row, numbers) in [key, value].into_iter().enumerate() {
            let scale = f16::from_f32(scale_of::<S>(numbers, head_size));
            *scales[row] = scale.to_bits();
            inverses[row] = inverse(scale.to_f32());
        }
        let mut bytes = [[0i8; LANES]; 2];
        for at in (0..head_size).step_by(LANES) {
            let count = LANES.min(head_size - at);
            S::store_i8(bytes[0].as_mut_ptr(), round::<S>(key.add(at), count, inverses[0]));
            S::store_i8(bytes[1].as_mut_ptr(), round::<S>(value.add(at), count, inverses[1]));
            for number in 0..count {
                let (to_key, to_value) = cache.int8_number(kv_head, position, at + number);
                *to_key = (bytes[0][number] as u8) ^ 128;
                *to_value = bytes[1][number];
            }
        }
    }
}

/// Rotates queries and rounds them to 8 bits in place: each becomes its scale, minus the sum of its
/// numbers, and the numbers.
///
/// # Safety
/// [`Simd`]'s; `queries` must be valid for `heads` times `head_size` numbers, a multiple of four.
#[inline(always)]
pub unsafe fn round_queries<S: Simd>(queries: *mut f32, heads: usize, head_size: usize) {
    for head in 0..heads {
        unsafe {
            let query = queries.add(head * head_size);
            let numbers = query.cast::<i8>().add(QUERY_HEADER);
            rotate(std::slice::from_raw_parts_mut(query, head_size), factors(head_size)[1]);
            let scale = scale_of::<S>(query, head_size);
            let (inverse, mut sum) = (inverse(scale), S::splat_int(0));
            let mut bytes = [0; LANES];
            for at in (0..head_size).step_by(LANES) {
                // Bytes are written behind the numbers that are still to be read.
                let count = LANES.min(head_size - at);
                let rounded = round::<S>(query.add(at), count, inverse);
                sum = S::add_int(sum, rounded);
                S::store_i8(bytes.as_mut_ptr(), rounded);
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), numbers.add(at), count);
            }
            *query = scale;
            *query.add(1).cast::<i32>() = -S::sum_int(sum);
        }
    }
}

/// Scores of rounded queries and keys in 8 bits.
struct Int8Keys;

impl Scoring for Int8Keys {
    #[inline(always)]
    unsafe fn score_blocks<S: Simd, const N: usize, const P: usize>(
        job: &AttentionRun<'_>,
        slot: usize,
        head: usize,
    ) {
        unsafe {
            let mut queries = [std::ptr::null::<f32>(); N];
            for query in 0..N {
                queries[query] = job.queries.add((head + query) * job.head_size);
            }
            for part in (0..LANES).step_by(S::Part::WIDTH) {
                score_part::<S, N, P>(job, slot, head, queries, part);
            }
        }
    }
}

/// Computes the scores of the lanes from `part` on, of `P` blocks of slots.
#[inline(always)]
unsafe fn score_part<S: Simd, const N: usize, const P: usize>(
    job: &AttentionRun<'_>,
    slot: usize,
    head: usize,
    queries: [*const f32; N],
    part: usize,
) {
    unsafe {
        let mut sums = [[S::Part::splat_int(0); N]; P];
        let mut numbers = [std::ptr::null::<i8>(); N];
        for query in 0..N {
            let begin = S::Part::begin8(*queries[query].add(1).cast::<i32>());
            for block in 0..P {
                sums[block][query] = begin;
            }
            numbers[query] = queries[query].cast::<i8>().add(QUERY_HEADER);
        }
        let mut keys = [std::ptr::null::<u8>(); P];
        for block in 0..P {
            keys[block] = job.cache.int8_keys(job.kv_head, slot + block * LANES).add(4 * part);
        }
        for group in 0..job.head_size / 4 {
            for block in 0..P {
                let keys = S::Part::prepare8(S::Part::load_bytes(keys[block].add(group * 4 * LANES)));
                for query in 0..N {
                    let numbers = numbers[query].add(4 * group);
                    sums[block][query] = S::Part::dot8(sums[block][query], keys, numbers);
                }
            }
        }
        let at = slot - job.first_scored() + part;
        for block in 0..P {
            let [scales, _] = job.cache.scales(job.kv_head, slot + block * LANES);
            let scales = S::Part::load_f16(scales.add(part));
            for query in 0..N {
                let factor = S::Part::splat(*queries[query] * job.scale);
                let score = S::Part::mul(S::Part::to_float(sums[block][query]), scales);
                let to = job.scratch.add((head + query) * job.stride() + at + block * LANES);
                S::Part::store(to, S::Part::mul(score, factor));
            }
        }
    }
}

/// Computes the parts of a run as [`super::attention::attend`] does, for rounded queries.
///
/// # Safety
/// As [`super::attention::attend`].
#[inline(always)]
pub unsafe fn attend<S: Simd>(job: &AttentionRun<'_>) {
    unsafe {
        score::<S, Int8Keys>(job);
        let (first, scores) = (job.first_scored(), job.scratch);
        let scales = scores.add(job.heads * job.stride());
        for at in (0..scored(job)).step_by(LANES) {
            let [_, values] = job.cache.scales(job.kv_head, first + at);
            S::store(scales.add(at), S::load_f16(values));
        }
        for_each_hidden(job, |slot| {
            *scales.add(slot - first) = 0.0;
            (0..job.heads)
                .for_each(|head| *scores.add(head * job.stride() + slot - first) = f32::NEG_INFINITY);
        });
        let mut head = 0;
        while head < job.heads {
            let count = 4.min(job.heads - head);
            match count {
                1 => softmax_and_mix::<S, 1>(job, head, scales),
                2 => softmax_and_mix::<S, 2>(job, head, scales),
                3 => softmax_and_mix::<S, 3>(job, head, scales),
                _ => softmax_and_mix::<S, 4>(job, head, scales),
            }
            head += count;
        }
    }
}

/// Number of slots that are scored.
fn scored(job: &AttentionRun<'_>) -> usize {
    (job.slots.end - job.first_scored()).next_multiple_of(LANES)
}

/// Calls `hide` with each scored slot that is not visible.
fn for_each_hidden(job: &AttentionRun<'_>, mut hide: impl FnMut(usize)) {
    let (first, cached) = (job.first_scored(), job.visible.cached);
    let mut next = first;
    if job.positions.start < cached {
        (first..job.positions.start).for_each(&mut hide);
        next = job.positions.end.min(cached);
    }
    for position in job.positions.start.max(cached)..job.positions.end {
        let slot = job.visible.slot(position);
        (next..slot).for_each(&mut hide);
        next = slot + 1;
    }
    (next..first + scored(job)).for_each(hide);
}

/// Turns the scores of `N` heads into rounded weights and sums the values by them.
#[inline(always)]
unsafe fn softmax_and_mix<S: Simd, const N: usize>(job: &AttentionRun<'_>, head: usize, scales: *const f32) {
    let size = AttentionRun::part_size(job.value_size);
    unsafe {
        let parts = job.parts.add(head * size);
        let (mut weights, mut factors) = ([std::ptr::null::<i16>(); N], [0.0; N]);
        for index in 0..N {
            let scores = job.scratch.add((head + index) * job.stride());
            let softmax = softmax::<S>(scores, scales, scored(job));
            let ends = parts.add(index * size + AttentionRun::value_width(job.value_size));
            (*ends, *ends.add(1)) = (softmax.largest, softmax.sum);
            (weights[index], factors[index]) = (scores.cast(), softmax.factor);
        }
        if S::Part::WIDTH == LANES || N == 1 {
            mix::<S::Part, N, 4>(job, weights, factors, parts);
        } else {
            mix::<S::Part, N, 2>(job, weights, factors, parts);
        }
    }
}

/// Result of [`softmax`].
struct Softmax {
    largest: f32,
    /// Sum of the weights.
    sum: f32,
    /// Factor of the rounded weights.
    factor: f32,
}

/// Replaces scores by 16-bit integers: `e^(score - largest)` times the scale of the slot's value,
/// rounded.
#[inline(always)]
unsafe fn softmax<S: Simd>(scores: *mut f32, scales: *const f32, length: usize) -> Softmax {
    unsafe {
        let mut largest = S::splat(f32::NEG_INFINITY);
        for at in (0..length).step_by(LANES) {
            largest = S::max(S::load(scores.add(at)), largest);
        }
        let largest = S::largest(largest);
        let (mut sum, mut top) = (S::splat_int(0), S::splat(0.0));
        for at in (0..length).step_by(LANES) {
            let weight = exp::<S>(S::sub(S::load(scores.add(at)), S::splat(largest)));
            // Only scores that are not finite have larger weights.
            let weight = S::min(weight, S::splat(1.0));
            sum = S::add_int(sum, S::to_int(S::mul(weight, S::splat(WEIGHT_STEPS))));
            let scaled = S::mul(weight, S::load(scales.add(at)));
            top = S::max(scaled, top);
            S::store(scores.add(at), scaled);
        }
        let top = S::largest(top);
        let inverse = S::splat(LARGEST_WEIGHT * inverse(top));
        for at in (0..length).step_by(LANES) {
            let weight = S::mul(S::load(scores.add(at)), inverse);
            let weight = S::min(S::max(weight, S::splat(0.0)), S::splat(LARGEST_WEIGHT));
            S::store_i16(scores.cast::<i16>().add(at), S::to_int(weight));
        }
        Softmax { largest, sum: S::sum_int(sum) as f32 / WEIGHT_STEPS, factor: top / LARGEST_WEIGHT }
    }
}

/// Sums the values by their weights for `N` heads, `V` vectors at a time.
#[inline(always)]
unsafe fn mix<P: Products, const N: usize, const V: usize>(
    job: &AttentionRun<'_>,
    weights: [*const i16; N],
    factors: [f32; N],
    parts: *mut f32,
) {
    let width = AttentionRun::value_width(job.value_size);
    let mut number = 0;
    unsafe {
        while number + V * P::WIDTH <= width {
            mix_numbers::<P, N, V>(job, number, weights, factors, parts);
            number += V * P::WIDTH;
        }
        while number < width {
            mix_numbers::<P, N, 1>(job, number, weights, factors, parts);
            number += P::WIDTH;
        }
    }
}

/// Computes `V` vectors of each head's part, from `number` on.
#[inline(always)]
unsafe fn mix_numbers<P: Products, const N: usize, const V: usize>(
    job: &AttentionRun<'_>,
    number: usize,
    weights: [*const i16; N],
    factors: [f32; N],
    parts: *mut f32,
) {
    let size = AttentionRun::part_size(job.value_size);
    let (first, mut slot) = (job.first_scored(), job.first_scored());
    unsafe {
        let mut sums = [[P::splat_int(0); V]; N];
        while slot < job.slots.end {
            let end = job.slots.end.min(slot + KvCache::contiguous(slot));
            let mut values = job.cache.int8_values(job.kv_head, slot).add(2 * number);
            while slot < end {
                for vector in 0..V {
                    let pairs = P::load_pairs(values.add(2 * vector * P::WIDTH));
                    for head in 0..N {
                        let weights = weights[head].add(slot - first);
                        sums[head][vector] = P::dot_pairs(sums[head][vector], pairs, weights);
                    }
                }
                values = values.add(2 * job.cache.width());
                slot += 2;
            }
        }
        for head in 0..N {
            for vector in 0..V {
                let mixed = P::mul(P::to_float(sums[head][vector]), P::splat(factors[head]));
                P::store(parts.add(head * size + number + vector * P::WIDTH), mixed);
            }
        }
    }
}
