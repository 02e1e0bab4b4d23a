//! Sixteen lanes of arithmetic, the vocabulary every kernel is written in once. An implementation
//! for each instruction set; all of them give the same bits, which the tests check against the
//! plain one in `scalar.rs`.
//!
//! What makes that possible: integer sums are exact, every floating-point operation is named (a
//! fused multiply-add is one everywhere), and the one reduction has a fixed order.

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

/// Lanes of a vector of numbers, and output rows of a panel of weights.
pub const LANES: usize = 16;

/// What is done to each lane by itself, on vectors of 32-bit numbers.
///
/// # Safety
/// Every function needs the instruction set it is written in, and pointers good for as many numbers
/// as its vector has. Nothing is asked of their alignment.
pub trait Vector: Copy + 'static {
    /// Lanes.
    const WIDTH: usize;
    /// Of f32.
    type F: Copy;
    /// Of i32.
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
    /// The larger; `b` where they are equal or one is NaN.
    unsafe fn max(a: Self::F, b: Self::F) -> Self::F;
    /// The smaller; `b` where they are equal or one is NaN.
    unsafe fn min(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn abs(x: Self::F) -> Self::F;

    /// IEEE half-precision numbers.
    unsafe fn load_f16(from: *const u16) -> Self::F;
    /// Rounds to the nearest, ties to even.
    unsafe fn store_f16(to: *mut u16, x: Self::F);

    unsafe fn splat_int(x: i32) -> Self::I;
    unsafe fn add_int(a: Self::I, b: Self::I) -> Self::I;
    /// `x << by`, `by` below 32.
    unsafe fn shl_int(x: Self::I, by: u32) -> Self::I;
    unsafe fn to_float(x: Self::I) -> Self::F;
    /// To the nearest integer, ties to even. Within the range of i32 only.
    unsafe fn to_int(x: Self::F) -> Self::I;
    /// The same bits as another type.
    unsafe fn as_float(x: Self::I) -> Self::F;
    /// Of each lane the low byte.
    unsafe fn store_i8(to: *mut i8, x: Self::I);
}

/// What the products of packed weights need besides: bytes, four to a lane.
///
/// # Safety
/// That of [`Vector`].
pub trait Products: Vector {
    /// Bytes, four to a lane.
    type B: Copy;
    /// Eight-bit weights made ready for [`Self::dot8`].
    type W8: Copy;
    /// A sum of products on its way to a [`Vector::I`].
    type Partial: Copy;

    unsafe fn load_bf16(from: *const u16) -> Self::F;
    /// Bytes, sign-extended.
    unsafe fn load_i8(from: *const i8) -> Self::I;
    /// Bytes, zero-extended.
    unsafe fn load_u8(from: *const u8) -> Self::I;
    /// `x >> by`, zeros coming in.
    unsafe fn shr_int(x: Self::I, by: u32) -> Self::I;
    unsafe fn and_int(x: Self::I, mask: i32) -> Self::I;
    unsafe fn or_int(a: Self::I, b: Self::I) -> Self::I;
    /// The lower 32 bits of the product.
    unsafe fn mul_int(a: Self::I, b: Self::I) -> Self::I;

    unsafe fn load_bytes(from: *const u8) -> Self::B;
    /// `(x >> by) & mask` of each byte; bits may come in from the neighbour, so `mask` must clear the
    /// upper `by`.
    unsafe fn shr_mask(x: Self::B, by: u32, mask: u8) -> Self::B;
    /// `(x << by) & mask` of each byte; `mask` must clear the lower `by`.
    unsafe fn shl_mask(x: Self::B, by: u32, mask: u8) -> Self::B;
    unsafe fn or(a: Self::B, b: Self::B) -> Self::B;
    /// Of a table the byte at the index that each byte is, which is below 16.
    unsafe fn choose(table: &[u8; 16], index: Self::B) -> Self::B;

    /// Begins a sum that shall be added to `onto` by [`Self::finish`].
    unsafe fn begin(onto: Self::I) -> Self::Partial;
    /// Adds to each lane the products of its four weights (unsigned) with the four numbers at `x`. One
    /// sum takes 8 products of weights below 2^4, or 4 of weights below 2^5.
    unsafe fn dot(sum: Self::Partial, weights: Self::B, x: *const i8) -> Self::Partial;
    /// `onto` must be what the sum began with.
    unsafe fn finish(onto: Self::I, sum: Self::Partial) -> Self::I;

    /// Adds to each lane `factor`, of eight bits with a sign, times the products of its sixteen weights,
    /// which are below 2^6, with the sixteen numbers at `x`.
    unsafe fn dot6(onto: Self::I, weights: [Self::B; 4], x: *const i8, factor: Self::I) -> Self::I;
    /// The products of the lower and of the upper 16 bits of each lane, all with signs, added up.
    unsafe fn dot_halves(a: Self::I, b: Self::I) -> Self::I;

    /// Begins a sum of products with eight-bit weights; `negative_sum` is minus the sum of all the
    /// numbers that will take part.
    unsafe fn begin8(negative_sum: i32) -> Self::I;
    /// From bytes that hold weight + 128.
    unsafe fn eight(weights: Self::B) -> Self::W8;
    /// As [`Self::dot`]; no number at `x` may be -128.
    unsafe fn dot8(sum: Self::I, weights: Self::W8, x: *const i8) -> Self::I;

    /// Asks for the cache line at `at`, which need not be memory of ours.
    unsafe fn prefetch(at: *const u8);
}

/// Vectors of [`LANES`] numbers.
///
/// # Safety
/// That of [`Vector`].
pub trait Simd: Vector {
    /// Rows of activations that a kernel multiplies at once.
    const TILE: usize;
    /// What a product works on at a time: as many of the lanes as leave room in the registers.
    type Part: Products;

    /// Sum of all lanes: halves onto each other, sixteen to eight to four to two to one.
    unsafe fn sum(x: Self::F) -> f32;
    /// The largest lane.
    unsafe fn largest(x: Self::F) -> f32;
    /// Sum of all lanes.
    unsafe fn sum_int(x: Self::I) -> i32;
}
