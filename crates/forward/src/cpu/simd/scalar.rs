//! Plain Rust: the reference for every other implementation, and the fallback for processors
//! without their instructions.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions rely on the contract of the caller alone, see docs/unsafe.md"
)]

use half::{bf16, f16};

use super::{LANES, Products, Simd, Vector};

#[derive(Debug, Clone, Copy)]
pub struct Scalar;

type F = [f32; LANES];
type I = [i32; LANES];
type B = [u8; 4 * LANES];

#[inline(always)]
fn each<T: Copy, U: Copy, R: Copy + Default>(
    a: [T; LANES],
    b: [U; LANES],
    f: impl Fn(T, U) -> R,
) -> [R; LANES] {
    let mut out = [R::default(); LANES];
    for lane in 0..LANES {
        out[lane] = f(a[lane], b[lane]);
    }
    out
}

#[inline(always)]
fn bytes(x: B, f: impl Fn(u8) -> u8) -> B {
    let mut out = x;
    for byte in &mut out {
        *byte = f(*byte);
    }
    out
}

/// Adds to each lane the four products of `weights - offset` with the numbers at `x`.
#[inline(always)]
unsafe fn dot(sum: I, weights: B, x: *const i8, offset: i32) -> I {
    let x = unsafe { x.cast::<[i8; 4]>().read_unaligned() };
    let mut out = sum;
    for lane in 0..LANES {
        for byte in 0..4 {
            out[lane] += (i32::from(weights[4 * lane + byte]) - offset) * i32::from(x[byte]);
        }
    }
    out
}

impl Vector for Scalar {
    const WIDTH: usize = LANES;
    type F = F;
    type I = I;

    #[inline(always)]
    unsafe fn splat(x: f32) -> F {
        [x; LANES]
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> F {
        unsafe { from.cast::<F>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, x: F) {
        unsafe { to.cast::<F>().write_unaligned(x) }
    }

    #[inline(always)]
    unsafe fn add(a: F, b: F) -> F {
        each(a, b, |a, b| a + b)
    }

    #[inline(always)]
    unsafe fn sub(a: F, b: F) -> F {
        each(a, b, |a, b| a - b)
    }

    #[inline(always)]
    unsafe fn mul(a: F, b: F) -> F {
        each(a, b, |a, b| a * b)
    }

    #[inline(always)]
    unsafe fn div(a: F, b: F) -> F {
        each(a, b, |a, b| a / b)
    }

    #[inline(always)]
    unsafe fn mul_add(a: F, b: F, c: F) -> F {
        let mut out = c;
        for lane in 0..LANES {
            out[lane] = a[lane].mul_add(b[lane], c[lane]);
        }
        out
    }

    #[inline(always)]
    unsafe fn max(a: F, b: F) -> F {
        each(a, b, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    unsafe fn min(a: F, b: F) -> F {
        each(a, b, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    unsafe fn abs(x: F) -> F {
        each(x, x, |x, _| x.abs())
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> F {
        let halves = unsafe { from.cast::<[u16; LANES]>().read_unaligned() };
        each(halves, halves, |half, _| f16::from_bits(half).to_f32())
    }

    #[inline(always)]
    unsafe fn store_f16(to: *mut u16, x: F) {
        let halves = each(x, x, |x, _| f16::from_f32(x).to_bits());
        unsafe { to.cast::<[u16; LANES]>().write_unaligned(halves) }
    }

    #[inline(always)]
    unsafe fn splat_int(x: i32) -> I {
        [x; LANES]
    }

    #[inline(always)]
    unsafe fn add_int(a: I, b: I) -> I {
        each(a, b, i32::wrapping_add)
    }

    #[inline(always)]
    unsafe fn shl_int(x: I, by: u32) -> I {
        each(x, x, |x, _| x << by)
    }

    #[inline(always)]
    unsafe fn to_float(x: I) -> F {
        each(x, x, |x, _| x as f32)
    }

    #[inline(always)]
    unsafe fn to_int(x: F) -> I {
        each(x, x, |x, _| x.round_ties_even() as i32)
    }

    #[inline(always)]
    unsafe fn as_float(x: I) -> F {
        each(x, x, |x, _| f32::from_bits(x as u32))
    }

    #[inline(always)]
    unsafe fn store_i8(to: *mut i8, x: I) {
        let small = each(x, x, |x, _| x as i8);
        unsafe { to.cast::<[i8; LANES]>().write_unaligned(small) }
    }

    #[inline(always)]
    unsafe fn store_i16(to: *mut i16, x: I) {
        let small = each(x, x, |x, _| x as i16);
        unsafe { to.cast::<[i16; LANES]>().write_unaligned(small) }
    }
}

impl Products for Scalar {
    type B = B;
    type W8 = B;
    type Partial = I;
    type Pairs = [[i8; 2]; LANES];

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> F {
        let halves = unsafe { from.cast::<[u16; LANES]>().read_unaligned() };
        each(halves, halves, |half, _| bf16::from_bits(half).to_f32())
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> I {
        let small = unsafe { from.cast::<[i8; LANES]>().read_unaligned() };
        each(small, small, |x, _| i32::from(x))
    }

    #[inline(always)]
    unsafe fn load_u8(from: *const u8) -> I {
        let small = unsafe { from.cast::<[u8; LANES]>().read_unaligned() };
        each(small, small, |x, _| i32::from(x))
    }

    #[inline(always)]
    unsafe fn shr_int(x: I, by: u32) -> I {
        each(x, x, |x, _| (x as u32 >> by) as i32)
    }

    #[inline(always)]
    unsafe fn and_int(x: I, mask: i32) -> I {
        each(x, x, |x, _| x & mask)
    }

    #[inline(always)]
    unsafe fn or_int(a: I, b: I) -> I {
        each(a, b, |a, b| a | b)
    }

    #[inline(always)]
    unsafe fn mul_int(a: I, b: I) -> I {
        each(a, b, i32::wrapping_mul)
    }

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> B {
        unsafe { from.cast::<B>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn shr_mask(x: B, by: u32, mask: u8) -> B {
        bytes(x, |x| (x >> by) & mask)
    }

    #[inline(always)]
    unsafe fn shl_mask(x: B, by: u32, mask: u8) -> B {
        bytes(x, |x| (x << by) & mask)
    }

    #[inline(always)]
    unsafe fn or(a: B, b: B) -> B {
        let mut out = a;
        for (out, b) in out.iter_mut().zip(b) {
            *out |= b;
        }
        out
    }

    #[inline(always)]
    unsafe fn lookup(table: &[u8; 16], index: B) -> B {
        bytes(index, |index| table[usize::from(index & 15)])
    }

    #[inline(always)]
    unsafe fn begin(onto: I) -> I {
        onto
    }

    #[inline(always)]
    unsafe fn dot(sum: I, weights: B, x: *const i8) -> I {
        unsafe { dot(sum, weights, x, 0) }
    }

    #[inline(always)]
    unsafe fn finish(_: I, sum: I) -> I {
        sum
    }

    #[inline(always)]
    unsafe fn dot6(onto: I, weights: [B; 4], x: *const i8, factor: I) -> I {
        let mut sum = [0; LANES];
        for (vector, weights) in weights.into_iter().enumerate() {
            sum = unsafe { dot(sum, weights, x.add(4 * vector), 0) };
        }
        each(onto, each(sum, factor, |sum, factor| sum * factor), |onto, product| onto + product)
    }

    #[inline(always)]
    unsafe fn dot_halves(a: I, b: I) -> I {
        let product = |a: i32, b: i32| i32::from(a as i16) * i32::from(b as i16);
        each(a, b, |a, b| product(a, b) + product(a >> 16, b >> 16))
    }

    #[inline(always)]
    unsafe fn begin8(_: i32) -> I {
        [0; LANES]
    }

    #[inline(always)]
    unsafe fn prepare8(weights: B) -> B {
        weights
    }

    #[inline(always)]
    unsafe fn dot8(sum: I, weights: B, x: *const i8) -> I {
        unsafe { dot(sum, weights, x, 128) }
    }

    #[inline(always)]
    unsafe fn load_pairs(from: *const i8) -> Self::Pairs {
        unsafe { from.cast::<Self::Pairs>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn dot_pairs(sum: I, pairs: Self::Pairs, x: *const i16) -> I {
        let x = unsafe { x.cast::<[i16; 2]>().read_unaligned() };
        let product = |byte: i8, x: i16| i32::from(byte) * i32::from(x);
        each(sum, pairs, |sum, pair| sum + product(pair[0], x[0]) + product(pair[1], x[1]))
    }

    #[inline(always)]
    unsafe fn prefetch(_: *const u8) {}
}

impl Simd for Scalar {
    const TILE: usize = 4;
    type Part = Self;

    #[inline(always)]
    unsafe fn sum(x: F) -> f32 {
        let mut x = x;
        for half in [8, 4, 2, 1] {
            for lane in 0..half {
                x[lane] += x[lane + half];
            }
        }
        x[0]
    }

    #[inline(always)]
    unsafe fn largest(x: F) -> f32 {
        x.into_iter().fold(x[0], |largest, x| if x > largest { x } else { largest })
    }

    #[inline(always)]
    unsafe fn sum_int(x: I) -> i32 {
        x.into_iter().fold(0, i32::wrapping_add)
    }
}
