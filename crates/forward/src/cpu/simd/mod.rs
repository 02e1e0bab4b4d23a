//! SIMD traits over sixteen lanes, in which every kernel is written once. Each instruction set has
//! an implementation. All give the same bits, which the tests check against the plain one in
//! `scalar.rs`.
//!
//! This is possible because integer sums are exact, every floating-point operation is explicit (a
//! fused multiply-add is fused everywhere), and the one reduction has a fixed order.

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
#[cfg(target_arch = "aarch64")]
pub mod neon;
pub mod scalar;
#[cfg(test)]
mod tests;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod wide;

/// Lanes of a vector, and output rows of a panel of weights.
pub const LANES: usize = 16;

/// Lane-wise operations on vectors of 32-bit numbers.
///
/// # Safety
/// Every function needs the instruction set of its implementation, and pointers valid for as many
/// numbers as the vector has. They need no alignment.
pub trait Vector: Copy + 'static {
    /// Number of lanes.
    const WIDTH: usize;
    /// Vector of f32.
    type F: Copy;
    /// Vector of i32.
    type I: Copy;

    unsafe fn splat(x: f32) -> Self::F;
    unsafe fn load(from: *const f32) -> Self::F;
    unsafe fn store(to: *mut f32, x: Self::F);
    unsafe fn add(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn sub(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn div(a: Self::F, b: Self::F) -> Self::F;
    /// `a * b + c` with one rounding.
    unsafe fn mul_add(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// Maximum; `b` where both are equal or one is NaN.
    unsafe fn max(a: Self::F, b: Self::F) -> Self::F;
    /// Minimum; `b` where both are equal or one is NaN.
    unsafe fn min(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn abs(x: Self::F) -> Self::F;

    /// Loads half-precision numbers (IEEE binary16).
    unsafe fn load_f16(from: *const u16) -> Self::F;
    /// Stores half-precision numbers, rounded to nearest, ties to even.
    unsafe fn store_f16(to: *mut u16, x: Self::F);

    unsafe fn splat_int(x: i32) -> Self::I;
    unsafe fn add_int(a: Self::I, b: Self::I) -> Self::I;
    /// Shifts left by `by`, which is below 32.
    unsafe fn shl_int(x: Self::I, by: u32) -> Self::I;
    unsafe fn to_float(x: Self::I) -> Self::F;
    /// Rounds to the nearest integer, ties to even; only within the range of i32.
    unsafe fn to_int(x: Self::F) -> Self::I;
    /// Reinterprets the bits.
    unsafe fn as_float(x: Self::I) -> Self::F;
    /// Stores the low byte of each lane.
    unsafe fn store_i8(to: *mut i8, x: Self::I);
    /// Stores the low 16 bits of each lane.
    unsafe fn store_i16(to: *mut i16, x: Self::I);
}

/// Additional operations for products of packed weights: on bytes, four to a lane.
///
/// # Safety
/// As [`Vector`].
pub trait Products: Vector {
    /// Vector of bytes, four to a lane.
    type B: Copy;
    /// Eight-bit weights prepared for [`Self::dot8`].
    type W8: Copy;
    /// Intermediate sum of products, to be finished to [`Vector::I`].
    type Partial: Copy;
    /// Two bytes for each lane, prepared for [`Self::dot_pairs`].
    type Pairs: Copy;

    unsafe fn load_bf16(from: *const u16) -> Self::F;
    /// Loads bytes, sign-extended.
    unsafe fn load_i8(from: *const i8) -> Self::I;
    /// Loads bytes, zero-extended.
    unsafe fn load_u8(from: *const u8) -> Self::I;
    /// Logical shift right by `by`.
    unsafe fn shr_int(x: Self::I, by: u32) -> Self::I;
    unsafe fn and_int(x: Self::I, mask: i32) -> Self::I;
    unsafe fn or_int(a: Self::I, b: Self::I) -> Self::I;
    /// Lower 32 bits of the product.
    unsafe fn mul_int(a: Self::I, b: Self::I) -> Self::I;

    unsafe fn load_bytes(from: *const u8) -> Self::B;
    /// Computes `(x >> by) & mask` of each byte. Bits may come in from the neighbour, so `mask`
    /// must clear the upper `by` bits.
    unsafe fn shr_mask(x: Self::B, by: u32, mask: u8) -> Self::B;
    /// Computes `(x << by) & mask` of each byte; `mask` must clear the lower `by` bits.
    unsafe fn shl_mask(x: Self::B, by: u32, mask: u8) -> Self::B;
    unsafe fn or(a: Self::B, b: Self::B) -> Self::B;
    /// Looks up each byte, which is below 16, in `table`.
    unsafe fn lookup(table: &[u8; 16], index: Self::B) -> Self::B;

    /// Begins a sum that [`Self::finish`] adds to `onto`.
    unsafe fn begin(onto: Self::I) -> Self::Partial;
    /// Adds to each lane the products of its four unsigned weights with the four numbers at `x`.
    /// One sum takes 8 products of weights below 2^4, or 4 of weights below 2^5.
    unsafe fn dot(sum: Self::Partial, weights: Self::B, x: *const i8) -> Self::Partial;
    /// Finishes a sum; `onto` must be what it began with.
    unsafe fn finish(onto: Self::I, sum: Self::Partial) -> Self::I;

    /// Adds to each lane `factor`, a signed 8-bit number, times the products of its sixteen weights
    /// below 2^6 with the sixteen numbers at `x`.
    unsafe fn dot6(onto: Self::I, weights: [Self::B; 4], x: *const i8, factor: Self::I) -> Self::I;
    /// Sum of the products of the signed lower and upper 16 bits of each lane.
    unsafe fn dot_halves(a: Self::I, b: Self::I) -> Self::I;

    /// Begins a sum of products with eight-bit weights. `negative_sum` is minus the sum of all
    /// numbers at `x` that follow.
    unsafe fn begin8(negative_sum: i32) -> Self::I;
    /// Prepares weights from bytes that hold weight + 128.
    unsafe fn prepare8(weights: Self::B) -> Self::W8;
    /// Adds products as [`Self::dot`] does; no number at `x` may be -128.
    unsafe fn dot8(sum: Self::I, weights: Self::W8, x: *const i8) -> Self::I;

    /// Loads two signed bytes for each lane.
    unsafe fn load_pairs(from: *const i8) -> Self::Pairs;
    /// Adds to each lane the products of its two bytes with the two numbers at `x`.
    unsafe fn dot_pairs(sum: Self::I, pairs: Self::Pairs, x: *const i16) -> Self::I;

    /// Prefetches the cache line at `at`, which may be any address.
    unsafe fn prefetch(at: *const u8);
}

/// Vectors of [`LANES`] numbers.
///
/// # Safety
/// As [`Vector`].
pub trait Simd: Vector {
    /// Rows of activations that one kernel call multiplies.
    const TILE: usize;
    /// Vector that products work on: all lanes, or as many as leave room in the registers.
    type Part: Products;

    /// Sum of all lanes: halves are added onto each other, sixteen to eight to four to two to one.
    unsafe fn sum(x: Self::F) -> f32;
    /// Largest lane.
    unsafe fn largest(x: Self::F) -> f32;
    /// Sum of all lanes.
    unsafe fn sum_int(x: Self::I) -> i32;
}
