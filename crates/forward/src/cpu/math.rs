//! Everything between the products: norms, activations and sums over the vocabulary, row by row and
//! in a fixed order.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions rely on the contract of the caller alone, see docs/unsafe.md"
)]

use foretoken_model::Scoring;

use super::simd::{LANES, Simd};

/// Returns e^x, accurate to two units in the last place for x from -69 to 69. Beyond, it is that of
/// the nearer bound: so small, or so large, that a sum or a quotient forgets it, and its products
/// are no subnormal numbers, which some GPUs flush to zero.
///
/// Computed as 2^n e^r, with n the integer nearest to x / ln 2 and the Taylor series of e^r.
///
/// # Safety
/// [`Simd`]'s.
#[inline(always)]
pub unsafe fn exp<S: Simd>(x: S::F) -> S::F {
    const BOUND: f32 = 69.0;
    // ln 2 as a sum whose first part has few bits, so that its product with n is exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    const FACTORIALS: [f32; 7] = [5040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0];
    unsafe {
        let x = S::min(S::max(x, S::splat(-BOUND)), S::splat(BOUND));
        let n = S::to_int(S::mul(x, S::splat(std::f32::consts::LOG2_E)));
        let r = S::mul_add(S::to_float(n), S::splat(-LN_2_HIGH), x);
        let r = S::mul_add(S::to_float(n), S::splat(-LN_2_LOW), r);
        let mut series = S::splat(1.0 / FACTORIALS[0]);
        let mut term = 1;
        while term < FACTORIALS.len() {
            series = S::mul_add(series, r, S::splat(1.0 / FACTORIALS[term]));
            term += 1;
        }
        series = S::mul_add(series, r, S::splat(1.0));
        let power = S::as_float(S::shl_int(S::add_int(n, S::splat_int(127)), 23));
        S::mul(series, power)
    }
}

/// Returns softplus, `ln(1 + e^x)`, accurate to four units in the last place.
///
/// With z = e^-|x| and s = z / (2 + z), ln(1 + z) is 2 artanh(s) = 2 s (1 + s^2 / 3 + s^4 / 5 ...).
///
/// # Safety
/// [`Simd`]'s.
#[inline(always)]
pub unsafe fn softplus<S: Simd>(x: S::F) -> S::F {
    const TERMS: [f32; 7] = [13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0];
    unsafe {
        let zero = S::splat(0.0);
        let z = exp::<S>(S::sub(zero, S::abs(x)));
        let s = S::div(z, S::add(S::splat(2.0), z));
        let square = S::mul(s, s);
        let mut series = S::splat(1.0 / TERMS[0]);
        let mut term = 1;
        while term < TERMS.len() {
            series = S::mul_add(series, square, S::splat(1.0 / TERMS[term]));
            term += 1;
        }
        S::mul_add(S::add(s, s), series, S::max(x, zero))
    }
}

/// Computes `x = (x + scale * y) * factor` over `length` numbers.
///
/// # Safety
/// [`Simd`]'s, and both must be valid for `length` numbers.
#[inline(always)]
pub unsafe fn add_scaled<S: Simd>(x: *mut f32, y: *const f32, length: usize, scale: f32, factor: f32) {
    unsafe {
        for at in (0..length).step_by(LANES) {
            let count = LANES.min(length - at);
            let (to, y) = (load_part::<S>(x.add(at), count), load_part::<S>(y.add(at), count));
            let mut sums = [0f32; LANES];
            S::store(sums.as_mut_ptr(), S::mul(S::mul_add(S::splat(scale), y, to), S::splat(factor)));
            std::ptr::copy_nonoverlapping(sums.as_ptr(), x.add(at), count);
        }
    }
}

/// Returns the sum of `e^(scale (x - largest))` over `length` numbers, a multiple of [`LANES`].
///
/// # Safety
/// [`Simd`]'s.
#[inline(always)]
pub unsafe fn sum_exp<S: Simd>(x: *const f32, length: usize, largest: f32, scale: f32) -> f32 {
    unsafe {
        let mut sum = S::splat(0.0);
        for at in (0..length).step_by(LANES) {
            let below = S::sub(S::load(x.add(at)), S::splat(largest));
            sum = S::add(sum, exp::<S>(S::mul(below, S::splat(scale))));
        }
        S::sum(sum)
    }
}

/// Computes `out = x / sqrt(mean(x^2) + epsilon) * weight` over `length` numbers (Zhang and
/// Sennrich 2019). `out` may be `x`.
///
/// # Safety
/// [`Simd`]'s, and all three must be valid for `length` numbers.
#[inline(always)]
pub unsafe fn rms_norm<S: Simd>(
    x: *const f32,
    weight: *const f32,
    out: *mut f32,
    length: usize,
    epsilon: f32,
) {
    let (whole, rest) = (length - length % LANES, length % LANES);
    unsafe {
        let sum = S::sum(sum_of_squares::<S>(x, length));
        let scale = S::splat(1.0 / (sum / length as f32 + epsilon).sqrt());
        for at in (0..whole).step_by(LANES) {
            let normed = S::mul(S::mul(S::load(x.add(at)), scale), S::load(weight.add(at)));
            S::store(out.add(at), normed);
        }
        if rest > 0 {
            let (x, weight) = (load_part::<S>(x.add(whole), rest), load_part::<S>(weight.add(whole), rest));
            let mut normed = [0f32; LANES];
            S::store(normed.as_mut_ptr(), S::mul(S::mul(x, scale), weight));
            std::ptr::copy_nonoverlapping(normed.as_ptr(), out.add(whole), rest);
        }
    }
}

/// Numbers whose squares are summed by themselves. Such sums do not wait for each other, and a GPU
/// computes them side by side.
const SQUARES: usize = 256;

/// Returns the sums of the squares of `length` numbers, lane by lane.
#[inline(always)]
unsafe fn sum_of_squares<S: Simd>(x: *const f32, length: usize) -> S::F {
    let whole = length - length % LANES;
    unsafe {
        let mut sum = S::splat(0.0);
        for first in (0..length).step_by(SQUARES) {
            let end = length.min(first + SQUARES);
            let mut squares = S::splat(0.0);
            for at in (first..end.min(whole)).step_by(LANES) {
                let x = S::load(x.add(at));
                squares = S::mul_add(x, x, squares);
            }
            if end > whole {
                let x = load_part::<S>(x.add(whole), length - whole);
                squares = S::mul_add(x, x, squares);
            }
            sum = S::add(sum, squares);
        }
        sum
    }
}

/// Loads `count` numbers, padded with zeros.
///
/// # Safety
/// [`Simd`]'s, and `from` must be valid for `count` numbers, at most [`LANES`].
#[inline(always)]
pub unsafe fn load_part<S: Simd>(from: *const f32, count: usize) -> S::F {
    let mut numbers = [0f32; LANES];
    unsafe {
        if count == LANES {
            return S::load(from);
        }
        std::ptr::copy_nonoverlapping(from, numbers.as_mut_ptr(), count);
        S::load(numbers.as_ptr())
    }
}

/// SwiGLU: `gate = gate / (1 + e^-gate) * up` over `length` numbers, a multiple of [`LANES`].
///
/// # Safety
/// [`Simd`]'s.
#[inline(always)]
pub unsafe fn silu_times<S: Simd>(gate: *mut f32, up: *const f32, length: usize) {
    unsafe {
        for at in (0..length).step_by(LANES) {
            let x = S::load(gate.add(at));
            let below = S::add(S::splat(1.0), exp::<S>(S::sub(S::splat(0.0), x)));
            S::store(gate.add(at), S::mul(S::div(x, below), S::load(up.add(at))));
        }
    }
}

/// GeGLU: `gate = gelu(gate) * up` over `length` numbers, a multiple of [`LANES`]. gelu(x) is x / 2
/// (1 + tanh(z)) = x / (1 + e^(-2z)) with z = sqrt(2 / pi) (x + 0.044715 x^3) (Hendrycks and Gimpel
/// 2016).
///
/// # Safety
/// [`Simd`]'s.
#[inline(always)]
pub unsafe fn gelu_times<S: Simd>(gate: *mut f32, up: *const f32, length: usize) {
    // -2 sqrt(2 / pi), and 0.044715 times that.
    const LINEAR: f32 = -1.595_769;
    const CUBIC: f32 = -0.071_354_814;
    unsafe {
        for at in (0..length).step_by(LANES) {
            let x = S::load(gate.add(at));
            let slope = S::mul_add(S::mul(x, x), S::splat(CUBIC), S::splat(LINEAR));
            let below = S::add(S::splat(1.0), exp::<S>(S::mul(x, slope)));
            S::store(gate.add(at), S::mul(S::div(x, below), S::load(up.add(at))));
        }
    }
}

/// SwiGLU with clamping (gpt-oss): `gate = gate / (1 + e^(-1.702 gate)) * (up + 1)` over `length`
/// numbers, a multiple of [`LANES`]. Gates are clamped to 7 and ups to -7 to 7.
///
/// # Safety
/// [`Simd`]'s.
#[inline(always)]
pub unsafe fn clamped_times<S: Simd>(gate: *mut f32, up: *const f32, length: usize) {
    const STEEPNESS: f32 = 1.702;
    const BOUND: f32 = 7.0;
    unsafe {
        for at in (0..length).step_by(LANES) {
            let x = S::min(S::load(gate.add(at)), S::splat(BOUND));
            let up = S::min(S::max(S::load(up.add(at)), S::splat(-BOUND)), S::splat(BOUND));
            let below = S::add(S::splat(1.0), exp::<S>(S::mul(x, S::splat(-STEEPNESS))));
            S::store(gate.add(at), S::mul(S::div(x, below), S::add(up, S::splat(1.0))));
        }
    }
}

/// Multiplies with a sigmoid gate: `x = x / (1 + e^-gate)` over `length` numbers.
///
/// # Safety
/// [`Simd`]'s, and both must be valid for `length` numbers.
#[inline(always)]
pub unsafe fn sigmoid_times<S: Simd>(x: *mut f32, gate: *const f32, length: usize) {
    unsafe {
        for at in (0..length).step_by(LANES) {
            let count = LANES.min(length - at);
            let (numbers, gate) = (load_part::<S>(x.add(at), count), load_part::<S>(gate.add(at), count));
            let below = S::add(S::splat(1.0), exp::<S>(S::sub(S::splat(0.0), gate)));
            let mut gated = [0f32; LANES];
            S::store(gated.as_mut_ptr(), S::div(numbers, below));
            std::ptr::copy_nonoverlapping(gated.as_ptr(), x.add(at), count);
        }
    }
}

/// Applies [`Scoring`] to `length` numbers, a multiple of [`LANES`]: `scale * x`, then the soft cap
/// `cap * tanh(x / cap)`, computed as cap - 2 cap / (1 + e^(2x / cap)).
///
/// # Safety
/// [`Simd`]'s.
#[inline(always)]
pub unsafe fn score<S: Simd>(x: *mut f32, length: usize, scoring: Scoring) {
    unsafe {
        for at in (0..length).step_by(LANES) {
            let mut score = S::mul(S::load(x.add(at)), S::splat(scoring.scale));
            if let Some(cap) = scoring.cap {
                let below = S::add(S::splat(1.0), exp::<S>(S::mul(score, S::splat(2.0 / cap))));
                score = S::sub(S::splat(cap), S::div(S::splat(2.0 * cap), below));
            }
            S::store(x.add(at), score);
        }
    }
}

/// Returns the largest of `length` numbers, a multiple of [`LANES`], and the sum of
/// `e^(x - largest)`.
///
/// # Safety
/// [`Simd`]'s.
#[inline(always)]
pub unsafe fn largest_and_sum<S: Simd>(x: *const f32, length: usize) -> (f32, f32) {
    unsafe {
        let mut largest = S::load(x);
        for at in (LANES..length).step_by(LANES) {
            largest = S::max(S::load(x.add(at)), largest);
        }
        let largest = S::largest(largest);
        let mut sum = S::splat(0.0);
        for at in (0..length).step_by(LANES) {
            sum = S::add(sum, exp::<S>(S::sub(S::load(x.add(at)), S::splat(largest))));
        }
        (largest, S::sum(sum))
    }
}
