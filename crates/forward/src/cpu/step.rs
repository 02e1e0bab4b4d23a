//! Kernels of recurrent layers: recorded updates are applied to a block of a head's state matrix,
//! and a row reads it, in one pass over memory; and the causal convolution. Columns of the matrix
//! are independent, so it is processed in blocks of columns.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions rely on the contract of the caller alone, see docs/unsafe.md"
)]

use super::math::exp;
use super::simd::{LANES, Simd};

/// Columns of a state matrix that are processed together.
pub const COLUMNS: usize = 2 * LANES;

/// Rows of a state matrix whose products are summed by themselves. Sums of such runs are added in
/// order; a GPU computes them side by side.
const KEYS: usize = 32;

/// Most updates that one step applies.
pub const MAX_UPDATES: usize = 32;

/// Widest convolution.
pub const MAX_TAPS: usize = 16;

/// Update of a block M by one row: `decay * M + key * correction^T`.
#[derive(Debug, Clone, Copy)]
pub struct BlockUpdate {
    pub decay: f32,
    /// `[keys]`
    pub key: *const f32,
    /// `[COLUMNS]`
    pub correction: *const f32,
}

/// Work on a block of a state matrix: load, update, store, read.
#[derive(Debug, Clone, Copy)]
pub struct MatrixStep<'a> {
    /// Rows of the matrix, a multiple of [`LANES`].
    pub keys: usize,
    /// Source, `[keys, COLUMNS]`; null for zeros.
    pub from: *const f32,
    /// Destination, which may be the source; null to discard.
    pub to: *mut f32,
    /// Updates to apply, in order.
    pub updates: &'a [BlockUpdate],
    /// Key and query, `[keys]` each, and the destination of the result.
    pub read: Option<(*const f32, *const f32, *mut Read)>,
}

/// Result of reading a block M.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Read {
    /// M^T key
    pub by_key: [f32; COLUMNS],
    /// M^T query
    pub by_query: [f32; COLUMNS],
    /// key^T query
    pub product: f32,
}

impl Read {
    pub const ZERO: Self = Self { by_key: [0.0; COLUMNS], by_query: [0.0; COLUMNS], product: 0.0 };
}

/// Runs a step.
///
/// # Safety
/// [`Simd`]'s; the pointers must be valid for the shapes of their fields, and nothing else may
/// access what is written.
#[inline(always)]
pub unsafe fn step<S: Simd>(step: &MatrixStep<'_>) {
    unsafe {
        match step.updates {
            [] => step_with::<S, 0>(step),
            [_] => step_with::<S, 1>(step),
            _ => step_with::<S, MAX_UPDATES>(step),
        }
    }
}

/// Specialised on no update, one, or `MAX_UPDATES` for any larger number.
#[inline(always)]
unsafe fn step_with<S: Simd, const N: usize>(step: &MatrixStep<'_>) {
    let MatrixStep { keys, from, to, updates, read } = *step;
    unsafe {
        let (key, query) = read.map_or((std::ptr::null(), std::ptr::null()), |(key, query, _)| (key, query));
        // Of keys and of queries.
        let mut sums = [[S::splat(0.0); 2]; 2];
        let mut one = [S::splat(0.0); 2];
        if N == 1 {
            one = [S::load(updates[0].correction), S::load(updates[0].correction.add(LANES))];
        }
        for first in (0..keys).step_by(KEYS) {
            let mut run = [[S::splat(0.0); 2]; 2];
            for row in first..keys.min(first + KEYS) {
                let at = row * COLUMNS;
                let mut numbers = [S::splat(0.0); 2];
                if !from.is_null() {
                    numbers = [S::load(from.add(at)), S::load(from.add(at + LANES))];
                }
                if N == 1 {
                    let (decay, key) = (S::splat(updates[0].decay), S::splat(*updates[0].key.add(row)));
                    for half in 0..2 {
                        numbers[half] = S::mul_add(key, one[half], S::mul(decay, numbers[half]));
                    }
                } else if N > 1 {
                    for BlockUpdate { decay, key, correction } in updates {
                        let (decay, key) = (S::splat(*decay), S::splat(*key.add(row)));
                        for half in 0..2 {
                            let correction = S::load(correction.add(half * LANES));
                            numbers[half] = S::mul_add(key, correction, S::mul(decay, numbers[half]));
                        }
                    }
                }
                if !to.is_null() {
                    S::store(to.add(at), numbers[0]);
                    S::store(to.add(at + LANES), numbers[1]);
                }
                if read.is_some() {
                    let (key, query) = (S::splat(*key.add(row)), S::splat(*query.add(row)));
                    for half in 0..2 {
                        run[0][half] = S::mul_add(numbers[half], key, run[0][half]);
                        run[1][half] = S::mul_add(numbers[half], query, run[1][half]);
                    }
                }
            }
            for (sums, run) in sums.iter_mut().zip(run) {
                for half in 0..2 {
                    sums[half] = S::add(sums[half], run[half]);
                }
            }
        }
        if let Some((key, query, out)) = read {
            let out = &mut *out;
            for half in 0..2 {
                S::store(out.by_key.as_mut_ptr().add(half * LANES), sums[0][half]);
                S::store(out.by_query.as_mut_ptr().add(half * LANES), sums[1][half]);
            }
            let mut products = S::splat(0.0);
            for at in (0..keys).step_by(LANES) {
                products = S::mul_add(S::load(key.add(at)), S::load(query.add(at)), products);
            }
            out.product = S::sum(products);
        }
    }
}

/// Correction of a row of Gated DeltaNet in a block, and what its query reads.
#[derive(Debug, Clone, Copy)]
pub struct Correction<'a> {
    pub read: &'a Read,
    pub decay: f32,
    pub beta: f32,
    /// `[COLUMNS]`, as the following
    pub values: *const f32,
    pub correction: *mut f32,
    pub out: *mut f32,
}

/// Computes `correction = beta (values - decay M^T key)` and
/// `out = decay M^T query + (key^T query) correction`.
///
/// # Safety
/// [`Simd`]'s; the pointers must be valid for the shapes of their fields.
#[inline(always)]
pub unsafe fn correct<S: Simd>(job: &Correction<'_>) {
    unsafe {
        let (decay, beta, product) = (S::splat(job.decay), S::splat(job.beta), S::splat(job.read.product));
        for at in (0..COLUMNS).step_by(LANES) {
            let by_key = S::load(job.read.by_key.as_ptr().add(at));
            let by_query = S::load(job.read.by_query.as_ptr().add(at));
            let rest = S::mul_add(S::splat(-job.decay), by_key, S::load(job.values.add(at)));
            let correction = S::mul(beta, rest);
            S::store(job.correction.add(at), correction);
            S::store(job.out.add(at), S::mul_add(product, correction, S::mul(decay, by_query)));
        }
    }
}

/// Result of a row of Mamba-2 in a block.
#[derive(Debug, Clone, Copy)]
pub struct ReadOut<'a> {
    pub read: &'a Read,
    pub decay: f32,
    /// The row's addition to the matrix by its key, `[COLUMNS]`, as the following.
    pub added: *const f32,
    /// Factor of the values that go past the matrix.
    pub skip: f32,
    pub values: *const f32,
    pub out: *mut f32,
}

/// Computes `out = decay M^T query + ((key^T query) added + skip values)`.
///
/// # Safety
/// [`Simd`]'s; the pointers must be valid for the shapes of their fields.
#[inline(always)]
pub unsafe fn read_out<S: Simd>(job: &ReadOut<'_>) {
    unsafe {
        let (decay, skip, product) = (S::splat(job.decay), S::splat(job.skip), S::splat(job.read.product));
        for at in (0..COLUMNS).step_by(LANES) {
            let past = S::mul(skip, S::load(job.values.add(at)));
            let own = S::mul_add(product, S::load(job.added.add(at)), past);
            let by_query = S::load(job.read.by_query.as_ptr().add(at));
            S::store(job.out.add(at), S::mul_add(decay, by_query, own));
        }
    }
}

/// Convolution of some channels of a row with the rows before it.
#[derive(Debug, Clone, Copy)]
pub struct ConvolutionJob {
    /// Rows in the window, the oldest first; null before the beginning of the text.
    pub rows: [*const f32; MAX_TAPS],
    pub taps: usize,
    /// Weights of each row, the oldest first, `stride` apart.
    pub kernel: *const f32,
    /// Added to the result; null without a bias.
    pub bias: *const f32,
    pub stride: usize,
    /// Channels to compute, rounded up to whole vectors.
    pub channels: usize,
    /// Applies SiLU, `x / (1 + e^-x)`.
    pub activated: bool,
    pub out: *mut f32,
}

/// Runs a convolution.
///
/// # Safety
/// [`Simd`]'s; the pointers must be valid for the shapes of their fields.
#[inline(always)]
pub unsafe fn convolve<S: Simd>(job: &ConvolutionJob) {
    unsafe {
        for at in (0..job.channels).step_by(LANES) {
            let mut sum = if job.bias.is_null() { S::splat(0.0) } else { S::load(job.bias.add(at)) };
            for (tap, row) in job.rows[..job.taps].iter().enumerate() {
                if !row.is_null() {
                    sum =
                        S::mul_add(S::load(job.kernel.add(tap * job.stride + at)), S::load(row.add(at)), sum);
                }
            }
            if job.activated {
                let below = S::add(S::splat(1.0), exp::<S>(S::sub(S::splat(0.0), sum)));
                sum = S::div(sum, below);
            }
            S::store(job.out.add(at), sum);
        }
    }
}
