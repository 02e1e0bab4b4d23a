//! NEON with dot products (Arm since 2018, all Apple silicon): a vector is four registers.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions rely on the contract of the caller alone, see docs/unsafe.md"
)]

use std::arch::aarch64::*;
use std::arch::asm;

use super::wide::Wide;
use super::{Products, Simd, Vector};

pub type Neon = Wide<TwoRegisters, 2>;

/// Two registers.
#[derive(Debug, Clone, Copy)]
pub struct TwoRegisters;

/// Applies one operation to both registers.
macro_rules! both {
    ($f:ident($a:expr)) => {{
        let a = $a;
        [$f(a[0]), $f(a[1])]
    }};
    ($f:ident($a:expr, $b:expr)) => {{
        let (a, b) = ($a, $b);
        [$f(a[0], b[0]), $f(a[1], b[1])]
    }};
    ($f:ident($a:expr, $b:expr, $c:expr)) => {{
        let (a, b, c) = ($a, $b, $c);
        [$f(a[0], b[0], c[0]), $f(a[1], b[1], c[1])]
    }};
}

/// Adds to each lane the products of four signed bytes with the four of `x`.
#[inline(always)]
unsafe fn sdot(sum: int32x4_t, a: uint8x16_t, x: f32) -> int32x4_t {
    let mut sum = sum;
    // SAFETY: register arithmetic, with an instruction that callers of kernels guarantee.
    unsafe {
        asm!(
            "sdot {sum:v}.4s, {a:v}.16b, {x:v}.4b[0]",
            sum = inout(vreg) sum,
            a = in(vreg) a,
            x = in(vreg) x,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}

/// The four bytes at `x`, for one element of a register. A load that fills all elements would
/// occupy a vector unit of Arm's cores, which the products need.
#[inline(always)]
unsafe fn four(x: *const i8) -> f32 {
    unsafe { x.cast::<f32>().read_unaligned() }
}

impl Vector for TwoRegisters {
    const WIDTH: usize = 8;
    type F = [float32x4_t; 2];
    type I = [int32x4_t; 2];

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::F {
        unsafe { [vdupq_n_f32(x); 2] }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self::F {
        unsafe { [vld1q_f32(from), vld1q_f32(from.add(4))] }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, x: Self::F) {
        unsafe {
            vst1q_f32(to, x[0]);
            vst1q_f32(to.add(4), x[1]);
        }
    }

    #[inline(always)]
    unsafe fn add(a: Self::F, b: Self::F) -> Self::F {
        unsafe { both!(vaddq_f32(a, b)) }
    }

    #[inline(always)]
    unsafe fn sub(a: Self::F, b: Self::F) -> Self::F {
        unsafe { both!(vsubq_f32(a, b)) }
    }

    #[inline(always)]
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F {
        unsafe { both!(vmulq_f32(a, b)) }
    }

    #[inline(always)]
    unsafe fn div(a: Self::F, b: Self::F) -> Self::F {
        unsafe { both!(vdivq_f32(a, b)) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        unsafe { both!(vfmaq_f32(c, a, b)) }
    }

    #[inline(always)]
    unsafe fn max(a: Self::F, b: Self::F) -> Self::F {
        unsafe { both!(vbslq_f32(both!(vcgtq_f32(a, b)), a, b)) }
    }

    #[inline(always)]
    unsafe fn min(a: Self::F, b: Self::F) -> Self::F {
        unsafe { both!(vbslq_f32(both!(vcltq_f32(a, b)), a, b)) }
    }

    #[inline(always)]
    unsafe fn abs(x: Self::F) -> Self::F {
        unsafe { both!(vabsq_f32(x)) }
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self::F {
        unsafe {
            let halves = vld1q_u16(from);
            [
                vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(halves))),
                vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(halves))),
            ]
        }
    }

    #[inline(always)]
    unsafe fn store_f16(to: *mut u16, x: Self::F) {
        unsafe {
            let halves = both!(vreinterpret_u16_f16(both!(vcvt_f16_f32(x))));
            vst1q_u16(to, vcombine_u16(halves[0], halves[1]))
        }
    }

    #[inline(always)]
    unsafe fn splat_int(x: i32) -> Self::I {
        unsafe { [vdupq_n_s32(x); 2] }
    }

    #[inline(always)]
    unsafe fn add_int(a: Self::I, b: Self::I) -> Self::I {
        unsafe { both!(vaddq_s32(a, b)) }
    }

    #[inline(always)]
    unsafe fn shl_int(x: Self::I, by: u32) -> Self::I {
        unsafe { both!(vshlq_s32(x, [vdupq_n_s32(by as i32); 2])) }
    }

    #[inline(always)]
    unsafe fn to_float(x: Self::I) -> Self::F {
        unsafe { both!(vcvtq_f32_s32(x)) }
    }

    #[inline(always)]
    unsafe fn to_int(x: Self::F) -> Self::I {
        unsafe { both!(vcvtnq_s32_f32(x)) }
    }

    #[inline(always)]
    unsafe fn as_float(x: Self::I) -> Self::F {
        unsafe { both!(vreinterpretq_f32_s32(x)) }
    }

    #[inline(always)]
    unsafe fn store_i8(to: *mut i8, x: Self::I) {
        unsafe {
            let words = both!(vmovn_s32(x));
            vst1_s8(to, vmovn_s16(vcombine_s16(words[0], words[1])))
        }
    }

    #[inline(always)]
    unsafe fn store_i16(to: *mut i16, x: Self::I) {
        unsafe {
            let words = both!(vmovn_s32(x));
            vst1q_s16(to, vcombine_s16(words[0], words[1]))
        }
    }
}

impl Products for TwoRegisters {
    type B = [uint8x16_t; 2];
    type W8 = [uint8x16_t; 2];
    type Partial = Self::I;
    /// First bytes of all lanes, and second bytes.
    type Pairs = [int16x8_t; 2];

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self::F {
        unsafe {
            let halves = vld1q_u16(from);
            let wide = [vshll_n_u16::<16>(vget_low_u16(halves)), vshll_n_u16::<16>(vget_high_u16(halves))];
            both!(vreinterpretq_f32_u32(wide))
        }
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> Self::I {
        unsafe {
            let words = vmovl_s8(vld1_s8(from));
            [vmovl_s16(vget_low_s16(words)), vmovl_s16(vget_high_s16(words))]
        }
    }

    #[inline(always)]
    unsafe fn load_u8(from: *const u8) -> Self::I {
        unsafe {
            let words = vmovl_u8(vld1_u8(from));
            both!(vreinterpretq_s32_u32([vmovl_u16(vget_low_u16(words)), vmovl_u16(vget_high_u16(words))]))
        }
    }

    #[inline(always)]
    unsafe fn shr_int(x: Self::I, by: u32) -> Self::I {
        unsafe {
            let shifted = both!(vshlq_u32(both!(vreinterpretq_u32_s32(x)), [vdupq_n_s32(-(by as i32)); 2]));
            both!(vreinterpretq_s32_u32(shifted))
        }
    }

    #[inline(always)]
    unsafe fn and_int(x: Self::I, mask: i32) -> Self::I {
        unsafe { both!(vandq_s32(x, [vdupq_n_s32(mask); 2])) }
    }

    #[inline(always)]
    unsafe fn or_int(a: Self::I, b: Self::I) -> Self::I {
        unsafe { both!(vorrq_s32(a, b)) }
    }

    #[inline(always)]
    unsafe fn mul_int(a: Self::I, b: Self::I) -> Self::I {
        unsafe { both!(vmulq_s32(a, b)) }
    }

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self::B {
        unsafe { [vld1q_u8(from), vld1q_u8(from.add(16))] }
    }

    #[inline(always)]
    unsafe fn shr_mask(x: Self::B, by: u32, mask: u8) -> Self::B {
        unsafe {
            let shifted = both!(vshlq_u8(x, [vdupq_n_s8(-(by as i8)); 2]));
            both!(vandq_u8(shifted, [vdupq_n_u8(mask); 2]))
        }
    }

    #[inline(always)]
    unsafe fn shl_mask(x: Self::B, by: u32, mask: u8) -> Self::B {
        unsafe {
            let shifted = both!(vshlq_u8(x, [vdupq_n_s8(by as i8); 2]));
            both!(vandq_u8(shifted, [vdupq_n_u8(mask); 2]))
        }
    }

    #[inline(always)]
    unsafe fn or(a: Self::B, b: Self::B) -> Self::B {
        unsafe { both!(vorrq_u8(a, b)) }
    }

    #[inline(always)]
    unsafe fn lookup(table: &[u8; 16], index: Self::B) -> Self::B {
        unsafe { both!(vqtbl1q_u8([vld1q_u8(table.as_ptr()); 2], index)) }
    }

    #[inline(always)]
    unsafe fn begin(onto: Self::I) -> Self::I {
        onto
    }

    #[inline(always)]
    unsafe fn dot(sum: Self::I, weights: Self::B, x: *const i8) -> Self::I {
        unsafe { both!(sdot(sum, weights, [four(x); 2])) }
    }

    #[inline(always)]
    unsafe fn finish(_: Self::I, sum: Self::I) -> Self::I {
        sum
    }

    #[inline(always)]
    unsafe fn dot6(onto: Self::I, weights: [Self::B; 4], x: *const i8, factor: Self::I) -> Self::I {
        unsafe {
            let mut sum = Self::splat_int(0);
            for (vector, weights) in weights.into_iter().enumerate() {
                sum = Self::dot(sum, weights, x.add(4 * vector));
            }
            both!(vmlaq_s32(onto, sum, factor))
        }
    }

    #[inline(always)]
    unsafe fn dot_halves(a: Self::I, b: Self::I) -> Self::I {
        unsafe {
            let (a, b) = (both!(vreinterpretq_s16_s32(a)), both!(vreinterpretq_s16_s32(b)));
            let low = both!(vmull_s16(both!(vget_low_s16(a)), both!(vget_low_s16(b))));
            both!(vpaddq_s32(low, both!(vmull_high_s16(a, b))))
        }
    }

    #[inline(always)]
    unsafe fn begin8(_: i32) -> Self::I {
        unsafe { Self::splat_int(0) }
    }

    #[inline(always)]
    unsafe fn prepare8(weights: Self::B) -> Self::B {
        unsafe { both!(veorq_u8(weights, [vdupq_n_u8(128); 2])) }
    }

    #[inline(always)]
    unsafe fn dot8(sum: Self::I, weights: Self::B, x: *const i8) -> Self::I {
        unsafe { Self::dot(sum, weights, x) }
    }

    #[inline(always)]
    unsafe fn load_pairs(from: *const i8) -> Self::Pairs {
        unsafe {
            let bytes = vld2_s8(from);
            [vmovl_s8(bytes.0), vmovl_s8(bytes.1)]
        }
    }

    #[inline(always)]
    unsafe fn dot_pairs(sum: Self::I, pairs: Self::Pairs, x: *const i16) -> Self::I {
        let mut sum = sum;
        for (byte, pairs) in pairs.into_iter().enumerate() {
            unsafe {
                let x = x.add(byte).read_unaligned();
                sum[0] = vmlal_n_s16(sum[0], vget_low_s16(pairs), x);
                sum[1] = vmlal_high_n_s16(sum[1], pairs, x);
            }
        }
        sum
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const u8) {
        // SAFETY: any address may be prefetched.
        unsafe { asm!("prfm pldl1keep, [{}]", in(reg) at, options(readonly, nostack, preserves_flags)) };
    }
}

impl Simd for Neon {
    const TILE: usize = 8;
    type Part = TwoRegisters;

    #[inline(always)]
    unsafe fn sum(x: Self::F) -> f32 {
        unsafe {
            let eight = both!(vaddq_f32(x[0], x[1]));
            let four = vaddq_f32(eight[0], eight[1]);
            let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
            vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
        }
    }

    #[inline(always)]
    unsafe fn largest(x: Self::F) -> f32 {
        unsafe {
            let eight = both!(vmaxq_f32(x[0], x[1]));
            vmaxvq_f32(vmaxq_f32(eight[0], eight[1]))
        }
    }

    #[inline(always)]
    unsafe fn sum_int(x: Self::I) -> i32 {
        unsafe {
            let eight = both!(vaddq_s32(x[0], x[1]));
            vaddvq_s32(vaddq_s32(eight[0], eight[1]))
        }
    }
}
