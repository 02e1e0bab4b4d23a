//! AVX2 with FMA and F16C, and its variant with AVX-VNNI: a vector is two registers.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions rely on the contract of the caller alone, see docs/unsafe.md"
)]

use std::arch::asm;
use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::wide::Wide;
use super::{Products, Simd, Vector};

pub type Avx2 = Wide<Ymm<Pairs>, 2>;
pub type AvxVnni = Wide<Ymm<Quads>, 2>;

/// One register.
#[derive(Debug, Clone, Copy)]
pub struct Ymm<P>(PhantomData<P>);

/// Products of bytes, see [`Products`], in which the two variants differ.
pub trait Bytes: Copy + 'static {
    type W8: Copy;
    unsafe fn begin(onto: __m256i) -> __m256i;
    unsafe fn dot(sum: __m256i, weights: __m256i, x: __m256i) -> __m256i;
    unsafe fn finish(onto: __m256i, sum: __m256i) -> __m256i;
    unsafe fn dot6(onto: __m256i, weights: [__m256i; 4], x: [__m256i; 4], factor: __m256i) -> __m256i;
    unsafe fn begin8(negative_sum: i32) -> __m256i;
    unsafe fn prepare8(weights: __m256i) -> Self::W8;
    unsafe fn dot8(sum: __m256i, weights: Self::W8, x: __m256i) -> __m256i;
}

/// Byte products summed in pairs of 16 bits. 8 pairs fit for weights below 2^4, 4 for weights below
/// 2^5 and 2 for weights below 2^6.
#[derive(Debug, Clone, Copy)]
pub struct Pairs;

/// Returns `sum`, of which the compiler knows nothing: it would combine the additions of a sum, and
/// run out of registers.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn opaque(sum: __m256i) -> __m256i {
    let mut sum = sum;
    // SAFETY: there is no instruction.
    unsafe { asm!("/* {0} */", inout(ymm_reg) sum, options(pure, nomem, nostack, preserves_flags)) };
    sum
}

impl Bytes for Pairs {
    /// Magnitudes, and the weights themselves, whose signs are applied to the other factor.
    type W8 = [__m256i; 2];

    #[inline(always)]
    unsafe fn begin(_: __m256i) -> __m256i {
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn dot(sum: __m256i, weights: __m256i, x: __m256i) -> __m256i {
        unsafe { opaque(_mm256_add_epi16(sum, _mm256_maddubs_epi16(weights, x))) }
    }

    #[inline(always)]
    unsafe fn finish(onto: __m256i, sum: __m256i) -> __m256i {
        unsafe { _mm256_add_epi32(onto, _mm256_madd_epi16(sum, _mm256_set1_epi16(1))) }
    }

    #[inline(always)]
    unsafe fn dot6(onto: __m256i, weights: [__m256i; 4], x: [__m256i; 4], factor: __m256i) -> __m256i {
        unsafe {
            let low = _mm256_and_si256(factor, _mm256_set1_epi32(0xffff));
            let factors = _mm256_or_si256(low, _mm256_slli_epi32::<16>(factor));
            let mut sum = onto;
            for from in [0, 2] {
                let pairs = _mm256_maddubs_epi16(weights[from], x[from]);
                let pairs = Self::dot(pairs, weights[from + 1], x[from + 1]);
                sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, factors));
            }
            sum
        }
    }

    #[inline(always)]
    unsafe fn begin8(_: i32) -> __m256i {
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn prepare8(weights: __m256i) -> Self::W8 {
        unsafe {
            let signed = _mm256_xor_si256(weights, _mm256_set1_epi8(-128));
            [_mm256_abs_epi8(signed), signed]
        }
    }

    #[inline(always)]
    unsafe fn dot8(sum: __m256i, [magnitudes, signs]: Self::W8, x: __m256i) -> __m256i {
        unsafe {
            let pairs = _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(x, signs));
            Self::finish(sum, pairs)
        }
    }
}

/// Byte products summed in fours of 32 bits.
#[derive(Debug, Clone, Copy)]
pub struct Quads;

impl Bytes for Quads {
    type W8 = __m256i;

    #[inline(always)]
    unsafe fn begin(onto: __m256i) -> __m256i {
        onto
    }

    #[inline(always)]
    unsafe fn dot(sum: __m256i, weights: __m256i, x: __m256i) -> __m256i {
        unsafe { _mm256_dpbusd_avx_epi32(sum, weights, x) }
    }

    #[inline(always)]
    unsafe fn finish(_: __m256i, sum: __m256i) -> __m256i {
        sum
    }

    #[inline(always)]
    unsafe fn dot6(onto: __m256i, weights: [__m256i; 4], x: [__m256i; 4], factor: __m256i) -> __m256i {
        unsafe {
            let mut sum = _mm256_setzero_si256();
            for vector in 0..4 {
                sum = Self::dot(sum, weights[vector], x[vector]);
            }
            _mm256_add_epi32(onto, _mm256_mullo_epi32(sum, factor))
        }
    }

    #[inline(always)]
    unsafe fn begin8(negative_sum: i32) -> __m256i {
        unsafe { _mm256_slli_epi32::<7>(_mm256_set1_epi32(negative_sum)) }
    }

    #[inline(always)]
    unsafe fn prepare8(weights: __m256i) -> __m256i {
        weights
    }

    #[inline(always)]
    unsafe fn dot8(sum: __m256i, weights: __m256i, x: __m256i) -> __m256i {
        unsafe { Self::dot(sum, weights, x) }
    }
}

/// Sum of eight lanes: halves are added onto each other.
#[inline(always)]
pub unsafe fn sum8(x: __m256) -> f32 {
    unsafe {
        let four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
    }
}

#[inline(always)]
unsafe fn count(by: u32) -> __m128i {
    unsafe { _mm_cvtsi32_si128(by as i32) }
}

/// The four bytes at `x`, broadcast to every lane.
#[inline(always)]
unsafe fn four(x: *const i8) -> __m256i {
    unsafe { _mm256_set1_epi32(x.cast::<i32>().read_unaligned()) }
}

impl<P: Bytes> Vector for Ymm<P> {
    const WIDTH: usize = 8;
    type F = __m256;
    type I = __m256i;

    #[inline(always)]
    unsafe fn splat(x: f32) -> __m256 {
        unsafe { _mm256_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256 {
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, x: __m256) {
        unsafe { _mm256_storeu_ps(to, x) }
    }

    #[inline(always)]
    unsafe fn add(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_sub_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn div(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_div_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 {
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn max(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_max_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn min(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_min_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn abs(x: __m256) -> __m256 {
        unsafe { _mm256_andnot_ps(_mm256_set1_ps(-0.0), x) }
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> __m256 {
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store_f16(to: *mut u16, x: __m256) {
        unsafe { _mm_storeu_si128(to.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x)) }
    }

    #[inline(always)]
    unsafe fn splat_int(x: i32) -> __m256i {
        unsafe { _mm256_set1_epi32(x) }
    }

    #[inline(always)]
    unsafe fn add_int(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_add_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn shl_int(x: __m256i, by: u32) -> __m256i {
        unsafe { _mm256_sll_epi32(x, count(by)) }
    }

    #[inline(always)]
    unsafe fn to_float(x: __m256i) -> __m256 {
        unsafe { _mm256_cvtepi32_ps(x) }
    }

    #[inline(always)]
    unsafe fn to_int(x: __m256) -> __m256i {
        unsafe { _mm256_cvtps_epi32(x) }
    }

    #[inline(always)]
    unsafe fn as_float(x: __m256i) -> __m256 {
        unsafe { _mm256_castsi256_ps(x) }
    }

    #[inline(always)]
    unsafe fn store_i8(to: *mut i8, x: __m256i) {
        unsafe {
            // Masked to a byte, so that packing cannot saturate.
            let low = _mm256_and_si256(x, _mm256_set1_epi32(0xff));
            let words = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256::<1>(low));
            _mm_storel_epi64(to.cast(), _mm_packus_epi16(words, words));
        }
    }

    #[inline(always)]
    unsafe fn store_i16(to: *mut i16, x: __m256i) {
        unsafe {
            // Masked to 16 bits, so that packing cannot saturate.
            let low = _mm256_and_si256(x, _mm256_set1_epi32(0xffff));
            let words = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256::<1>(low));
            _mm_storeu_si128(to.cast(), words);
        }
    }
}

impl<P: Bytes> Products for Ymm<P> {
    type B = __m256i;
    type W8 = P::W8;
    type Partial = __m256i;
    type Pairs = __m256i;

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> __m256 {
        unsafe {
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()))))
        }
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> __m256i {
        unsafe { _mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_u8(from: *const u8) -> __m256i {
        unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast())) }
    }

    #[inline(always)]
    unsafe fn shr_int(x: __m256i, by: u32) -> __m256i {
        unsafe { _mm256_srl_epi32(x, count(by)) }
    }

    #[inline(always)]
    unsafe fn and_int(x: __m256i, mask: i32) -> __m256i {
        unsafe { _mm256_and_si256(x, _mm256_set1_epi32(mask)) }
    }

    #[inline(always)]
    unsafe fn or_int(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_or_si256(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_int(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_mullo_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> __m256i {
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn shr_mask(x: __m256i, by: u32, mask: u8) -> __m256i {
        unsafe { _mm256_and_si256(_mm256_srl_epi16(x, count(by)), _mm256_set1_epi8(mask as i8)) }
    }

    #[inline(always)]
    unsafe fn shl_mask(x: __m256i, by: u32, mask: u8) -> __m256i {
        unsafe { _mm256_and_si256(_mm256_sll_epi16(x, count(by)), _mm256_set1_epi8(mask as i8)) }
    }

    #[inline(always)]
    unsafe fn or(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_or_si256(a, b) }
    }

    #[inline(always)]
    unsafe fn lookup(table: &[u8; 16], index: __m256i) -> __m256i {
        unsafe {
            _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast())), index)
        }
    }

    #[inline(always)]
    unsafe fn begin(onto: __m256i) -> __m256i {
        unsafe { P::begin(onto) }
    }

    #[inline(always)]
    unsafe fn dot(sum: __m256i, weights: __m256i, x: *const i8) -> __m256i {
        unsafe { P::dot(sum, weights, four(x)) }
    }

    #[inline(always)]
    unsafe fn finish(onto: __m256i, sum: __m256i) -> __m256i {
        unsafe { P::finish(onto, sum) }
    }

    #[inline(always)]
    unsafe fn dot6(onto: __m256i, weights: [__m256i; 4], x: *const i8, factor: __m256i) -> __m256i {
        unsafe { P::dot6(onto, weights, [four(x), four(x.add(4)), four(x.add(8)), four(x.add(12))], factor) }
    }

    #[inline(always)]
    unsafe fn dot_halves(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_madd_epi16(a, b) }
    }

    #[inline(always)]
    unsafe fn begin8(negative_sum: i32) -> __m256i {
        unsafe { P::begin8(negative_sum) }
    }

    #[inline(always)]
    unsafe fn prepare8(weights: __m256i) -> P::W8 {
        unsafe { P::prepare8(weights) }
    }

    #[inline(always)]
    unsafe fn dot8(sum: __m256i, weights: P::W8, x: *const i8) -> __m256i {
        unsafe { P::dot8(sum, weights, four(x)) }
    }

    #[inline(always)]
    unsafe fn load_pairs(from: *const i8) -> __m256i {
        unsafe { _mm256_cvtepi8_epi16(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn dot_pairs(sum: __m256i, pairs: __m256i, x: *const i16) -> __m256i {
        unsafe { _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, four(x.cast()))) }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const u8) {
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
}

impl<P: Bytes> Simd for Wide<Ymm<P>, 2> {
    const TILE: usize = 8;
    type Part = Ymm<P>;

    #[inline(always)]
    unsafe fn sum(x: Self::F) -> f32 {
        unsafe { sum8(_mm256_add_ps(x[0], x[1])) }
    }

    #[inline(always)]
    unsafe fn largest(x: Self::F) -> f32 {
        unsafe {
            let eight = _mm256_max_ps(x[0], x[1]);
            let four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
        }
    }

    #[inline(always)]
    unsafe fn sum_int(x: Self::I) -> i32 {
        unsafe {
            let eight = _mm256_add_epi32(x[0], x[1]);
            let four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256::<1>(eight));
            let two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
            _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<1>(two)))
        }
    }
}
