//! AVX-512 with VNNI (Ice Lake, Zen 4 and later): a vector is one register, and one instruction
//! multiplies 64 pairs of bytes.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions rely on the contract of the caller alone, see docs/unsafe.md"
)]

use std::arch::x86_64::*;

use super::{LANES, Products, Simd, Vector};

#[derive(Debug, Clone, Copy)]
pub struct Avx512;

/// Shift count in a register, for shifts by a variable. The compiler uses an immediate wherever the
/// count is constant.
#[inline(always)]
unsafe fn count(by: u32) -> __m128i {
    unsafe { _mm_cvtsi32_si128(by as i32) }
}

/// The four bytes at `x`, broadcast to every lane.
#[inline(always)]
unsafe fn four(x: *const i8) -> __m512i {
    unsafe { _mm512_set1_epi32(x.cast::<i32>().read_unaligned()) }
}

impl Vector for Avx512 {
    const WIDTH: usize = LANES;
    type F = __m512;
    type I = __m512i;

    #[inline(always)]
    unsafe fn splat(x: f32) -> __m512 {
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512 {
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, x: __m512) {
        unsafe { _mm512_storeu_ps(to, x) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn div(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_div_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 {
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn max(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn min(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_min_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn abs(x: __m512) -> __m512 {
        unsafe { _mm512_abs_ps(x) }
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> __m512 {
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store_f16(to: *mut u16, x: __m512) {
        unsafe { _mm256_storeu_si256(to.cast(), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x)) }
    }

    #[inline(always)]
    unsafe fn splat_int(x: i32) -> __m512i {
        unsafe { _mm512_set1_epi32(x) }
    }

    #[inline(always)]
    unsafe fn add_int(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_add_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn shl_int(x: __m512i, by: u32) -> __m512i {
        unsafe { _mm512_sll_epi32(x, count(by)) }
    }

    #[inline(always)]
    unsafe fn to_float(x: __m512i) -> __m512 {
        unsafe { _mm512_cvtepi32_ps(x) }
    }

    #[inline(always)]
    unsafe fn to_int(x: __m512) -> __m512i {
        unsafe { _mm512_cvtps_epi32(x) }
    }

    #[inline(always)]
    unsafe fn as_float(x: __m512i) -> __m512 {
        unsafe { _mm512_castsi512_ps(x) }
    }

    #[inline(always)]
    unsafe fn store_i8(to: *mut i8, x: __m512i) {
        unsafe { _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(x)) }
    }

    #[inline(always)]
    unsafe fn store_i16(to: *mut i16, x: __m512i) {
        unsafe { _mm256_storeu_si256(to.cast(), _mm512_cvtepi32_epi16(x)) }
    }
}

impl Products for Avx512 {
    type B = __m512i;
    type W8 = __m512i;
    type Partial = __m512i;
    type Pairs = __m512i;

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> __m512 {
        unsafe {
            let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
        }
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> __m512i {
        unsafe { _mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_u8(from: *const u8) -> __m512i {
        unsafe { _mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn shr_int(x: __m512i, by: u32) -> __m512i {
        unsafe { _mm512_srl_epi32(x, count(by)) }
    }

    #[inline(always)]
    unsafe fn and_int(x: __m512i, mask: i32) -> __m512i {
        unsafe { _mm512_and_si512(x, _mm512_set1_epi32(mask)) }
    }

    #[inline(always)]
    unsafe fn or_int(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_or_si512(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_int(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_mullo_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> __m512i {
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn shr_mask(x: __m512i, by: u32, mask: u8) -> __m512i {
        unsafe { _mm512_and_si512(_mm512_srl_epi16(x, count(by)), _mm512_set1_epi8(mask as i8)) }
    }

    #[inline(always)]
    unsafe fn shl_mask(x: __m512i, by: u32, mask: u8) -> __m512i {
        unsafe { _mm512_and_si512(_mm512_sll_epi16(x, count(by)), _mm512_set1_epi8(mask as i8)) }
    }

    #[inline(always)]
    unsafe fn or(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_or_si512(a, b) }
    }

    #[inline(always)]
    unsafe fn lookup(table: &[u8; 16], index: __m512i) -> __m512i {
        unsafe { _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast())), index) }
    }

    #[inline(always)]
    unsafe fn begin(onto: __m512i) -> __m512i {
        onto
    }

    #[inline(always)]
    unsafe fn dot(sum: __m512i, weights: __m512i, x: *const i8) -> __m512i {
        unsafe { _mm512_dpbusd_epi32(sum, weights, four(x)) }
    }

    #[inline(always)]
    unsafe fn finish(_: __m512i, sum: __m512i) -> __m512i {
        sum
    }

    #[inline(always)]
    unsafe fn dot6(onto: __m512i, weights: [__m512i; 4], x: *const i8, factor: __m512i) -> __m512i {
        unsafe {
            let mut sum = _mm512_setzero_si512();
            for (vector, weights) in weights.into_iter().enumerate() {
                sum = _mm512_dpbusd_epi32(sum, weights, four(x.add(4 * vector)));
            }
            _mm512_add_epi32(onto, _mm512_mullo_epi32(sum, factor))
        }
    }

    #[inline(always)]
    unsafe fn dot_halves(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_madd_epi16(a, b) }
    }

    #[inline(always)]
    unsafe fn begin8(negative_sum: i32) -> __m512i {
        unsafe { _mm512_slli_epi32::<7>(_mm512_set1_epi32(negative_sum)) }
    }

    #[inline(always)]
    unsafe fn prepare8(weights: __m512i) -> __m512i {
        weights
    }

    #[inline(always)]
    unsafe fn dot8(sum: __m512i, weights: __m512i, x: *const i8) -> __m512i {
        unsafe { _mm512_dpbusd_epi32(sum, weights, four(x)) }
    }

    #[inline(always)]
    unsafe fn load_pairs(from: *const i8) -> __m512i {
        unsafe { _mm512_cvtepi8_epi16(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn dot_pairs(sum: __m512i, pairs: __m512i, x: *const i16) -> __m512i {
        unsafe { _mm512_dpwssd_epi32(sum, pairs, four(x.cast())) }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const u8) {
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
}

impl Simd for Avx512 {
    const TILE: usize = 8;
    type Part = Self;

    #[inline(always)]
    unsafe fn sum(x: __m512) -> f32 {
        unsafe {
            let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(x)));
            super::avx2::sum8(_mm256_add_ps(_mm512_castps512_ps256(x), high))
        }
    }

    #[inline(always)]
    unsafe fn largest(x: __m512) -> f32 {
        unsafe { _mm512_reduce_max_ps(x) }
    }

    #[inline(always)]
    unsafe fn sum_int(x: __m512i) -> i32 {
        unsafe { _mm512_reduce_add_epi32(x) }
    }
}
