//! AVX2 with FMA and F16C, and the same with AVX-VNNI: a vector is two registers.

use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::Simd;

/// How the two differ: in the products of bytes.
pub trait ByteProducts: Copy + 'static {
    type Partial: Copy;
    type W8: Copy;
    unsafe fn begin(onto: __m256i) -> Self::Partial;
    unsafe fn dot(sum: Self::Partial, weights: __m256i, x: __m256i) -> Self::Partial;
    unsafe fn finish(onto: __m256i, sum: Self::Partial) -> __m256i;
    unsafe fn begin8(negative_sum: i32) -> __m256i;
    unsafe fn eight(weights: __m256i) -> Self::W8;
    unsafe fn dot8(sum: __m256i, weights: Self::W8, x: __m256i) -> __m256i;
}

#[derive(Debug, Clone, Copy)]
pub struct Ymm<P>(PhantomData<P>);

pub type Avx2 = Ymm<Pairs>;
pub type AvxVnni = Ymm<Quads>;

/// Products of bytes are added up in pairs, in 16 bits.
#[derive(Debug, Clone, Copy)]
pub struct Pairs;

impl ByteProducts for Pairs {
    type Partial = __m256i;
    /// Magnitudes, and the weights themselves, whose signs go to the other factor.
    type W8 = (__m256i, __m256i);

    #[inline(always)]
    unsafe fn begin(_: __m256i) -> __m256i {
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn dot(sum: __m256i, weights: __m256i, x: __m256i) -> __m256i {
        unsafe { _mm256_add_epi16(sum, _mm256_maddubs_epi16(weights, x)) }
    }

    #[inline(always)]
    unsafe fn finish(onto: __m256i, sum: __m256i) -> __m256i {
        unsafe { _mm256_add_epi32(onto, _mm256_madd_epi16(sum, _mm256_set1_epi16(1))) }
    }

    #[inline(always)]
    unsafe fn begin8(_: i32) -> __m256i {
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn eight(weights: __m256i) -> Self::W8 {
        unsafe {
            let signed = _mm256_xor_si256(weights, _mm256_set1_epi8(-128));
            (_mm256_abs_epi8(signed), signed)
        }
    }

    #[inline(always)]
    unsafe fn dot8(sum: __m256i, (magnitudes, signs): Self::W8, x: __m256i) -> __m256i {
        unsafe {
            let pairs = _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(x, signs));
            _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        }
    }
}

/// Products of bytes are added up in fours, in 32 bits.
#[derive(Debug, Clone, Copy)]
pub struct Quads;

impl ByteProducts for Quads {
    type Partial = __m256i;
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
    unsafe fn begin8(negative_sum: i32) -> __m256i {
        unsafe { _mm256_slli_epi32::<7>(_mm256_set1_epi32(negative_sum)) }
    }

    #[inline(always)]
    unsafe fn eight(weights: __m256i) -> __m256i {
        weights
    }

    #[inline(always)]
    unsafe fn dot8(sum: __m256i, weights: __m256i, x: __m256i) -> __m256i {
        unsafe { _mm256_dpbusd_avx_epi32(sum, weights, x) }
    }
}

/// The sum of eight lanes, halves onto each other.
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

/// Both registers through one operation.
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

impl<P: ByteProducts> Simd for Ymm<P> {
    const TILE: usize = 4;
    type F = [__m256; 2];
    type I = [__m256i; 2];
    type B = [__m256i; 2];
    type W8 = [P::W8; 2];
    type Partial = [P::Partial; 2];

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::F {
        unsafe { [_mm256_set1_ps(x); 2] }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self::F {
        unsafe { [_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))] }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, x: Self::F) {
        unsafe {
            _mm256_storeu_ps(to, x[0]);
            _mm256_storeu_ps(to.add(8), x[1]);
        }
    }

    #[inline(always)]
    unsafe fn add(a: Self::F, b: Self::F) -> Self::F {
        unsafe { both!(_mm256_add_ps(a, b)) }
    }

    #[inline(always)]
    unsafe fn sub(a: Self::F, b: Self::F) -> Self::F {
        unsafe { both!(_mm256_sub_ps(a, b)) }
    }

    #[inline(always)]
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F {
        unsafe { both!(_mm256_mul_ps(a, b)) }
    }

    #[inline(always)]
    unsafe fn div(a: Self::F, b: Self::F) -> Self::F {
        unsafe { both!(_mm256_div_ps(a, b)) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        unsafe { both!(_mm256_fmadd_ps(a, b, c)) }
    }

    #[inline(always)]
    unsafe fn max(a: Self::F, b: Self::F) -> Self::F {
        unsafe { both!(_mm256_max_ps(a, b)) }
    }

    #[inline(always)]
    unsafe fn min(a: Self::F, b: Self::F) -> Self::F {
        unsafe { both!(_mm256_min_ps(a, b)) }
    }

    #[inline(always)]
    unsafe fn abs(x: Self::F) -> Self::F {
        unsafe { both!(_mm256_andnot_ps([_mm256_set1_ps(-0.0); 2], x)) }
    }

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
    unsafe fn load_f16(from: *const u16) -> Self::F {
        unsafe {
            [
                _mm256_cvtph_ps(_mm_loadu_si128(from.cast())),
                _mm256_cvtph_ps(_mm_loadu_si128(from.add(8).cast())),
            ]
        }
    }

    #[inline(always)]
    unsafe fn store_f16(to: *mut u16, x: Self::F) {
        unsafe {
            _mm_storeu_si128(to.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x[0]));
            _mm_storeu_si128(to.add(8).cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x[1]));
        }
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self::F {
        unsafe {
            let wide = [
                _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast())),
                _mm256_cvtepu16_epi32(_mm_loadu_si128(from.add(8).cast())),
            ];
            [
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide[0])),
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide[1])),
            ]
        }
    }

    #[inline(always)]
    unsafe fn splat_int(x: i32) -> Self::I {
        unsafe { [_mm256_set1_epi32(x); 2] }
    }

    #[inline(always)]
    unsafe fn add_int(a: Self::I, b: Self::I) -> Self::I {
        unsafe { both!(_mm256_add_epi32(a, b)) }
    }

    #[inline(always)]
    unsafe fn mul_int(a: Self::I, b: Self::I) -> Self::I {
        unsafe { both!(_mm256_mullo_epi32(a, b)) }
    }

    #[inline(always)]
    unsafe fn shl_int(x: Self::I, by: u32) -> Self::I {
        unsafe { both!(_mm256_sll_epi32(x, [count(by); 2])) }
    }

    #[inline(always)]
    unsafe fn shr_int(x: Self::I, by: u32) -> Self::I {
        unsafe { both!(_mm256_srl_epi32(x, [count(by); 2])) }
    }

    #[inline(always)]
    unsafe fn and_int(x: Self::I, mask: i32) -> Self::I {
        unsafe { both!(_mm256_and_si256(x, [_mm256_set1_epi32(mask); 2])) }
    }

    #[inline(always)]
    unsafe fn or_int(a: Self::I, b: Self::I) -> Self::I {
        unsafe { both!(_mm256_or_si256(a, b)) }
    }

    #[inline(always)]
    unsafe fn load_u8(from: *const u8) -> Self::I {
        unsafe {
            let small = _mm_loadu_si128(from.cast());
            [_mm256_cvtepu8_epi32(small), _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(small, small))]
        }
    }

    #[inline(always)]
    unsafe fn to_float(x: Self::I) -> Self::F {
        unsafe { both!(_mm256_cvtepi32_ps(x)) }
    }

    #[inline(always)]
    unsafe fn to_int(x: Self::F) -> Self::I {
        unsafe { both!(_mm256_cvtps_epi32(x)) }
    }

    #[inline(always)]
    unsafe fn as_float(x: Self::I) -> Self::F {
        unsafe { both!(_mm256_castsi256_ps(x)) }
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> Self::I {
        unsafe {
            let small = _mm_loadu_si128(from.cast());
            [_mm256_cvtepi8_epi32(small), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(small, small))]
        }
    }

    #[inline(always)]
    unsafe fn store_i8(to: *mut i8, x: Self::I) {
        unsafe {
            // Masked to a byte, so that packing cannot saturate.
            let low = both!(_mm256_and_si256(x, [_mm256_set1_epi32(0xff); 2]));
            let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(low[0], low[1]));
            let bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
            _mm_storeu_si128(to.cast(), bytes);
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

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self::B {
        unsafe { [_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(from.add(32).cast())] }
    }

    #[inline(always)]
    unsafe fn shr_mask(x: Self::B, by: u32, mask: u8) -> Self::B {
        unsafe {
            let shifted = both!(_mm256_srl_epi16(x, [count(by); 2]));
            both!(_mm256_and_si256(shifted, [_mm256_set1_epi8(mask as i8); 2]))
        }
    }

    #[inline(always)]
    unsafe fn shl_mask(x: Self::B, by: u32, mask: u8) -> Self::B {
        unsafe {
            let shifted = both!(_mm256_sll_epi16(x, [count(by); 2]));
            both!(_mm256_and_si256(shifted, [_mm256_set1_epi8(mask as i8); 2]))
        }
    }

    #[inline(always)]
    unsafe fn or(a: Self::B, b: Self::B) -> Self::B {
        unsafe { both!(_mm256_or_si256(a, b)) }
    }

    #[inline(always)]
    unsafe fn begin(onto: Self::I) -> Self::Partial {
        unsafe { [P::begin(onto[0]), P::begin(onto[1])] }
    }

    #[inline(always)]
    unsafe fn dot(sum: Self::Partial, weights: Self::B, x: i32) -> Self::Partial {
        unsafe {
            let x = _mm256_set1_epi32(x);
            [P::dot(sum[0], weights[0], x), P::dot(sum[1], weights[1], x)]
        }
    }

    #[inline(always)]
    unsafe fn finish(onto: Self::I, sum: Self::Partial) -> Self::I {
        unsafe { [P::finish(onto[0], sum[0]), P::finish(onto[1], sum[1])] }
    }

    #[inline(always)]
    unsafe fn begin8(negative_sum: i32) -> Self::I {
        unsafe { [P::begin8(negative_sum); 2] }
    }

    #[inline(always)]
    unsafe fn eight(weights: Self::B) -> Self::W8 {
        unsafe { [P::eight(weights[0]), P::eight(weights[1])] }
    }

    #[inline(always)]
    unsafe fn dot8(sum: Self::I, weights: Self::W8, x: i32) -> Self::I {
        unsafe {
            let x = _mm256_set1_epi32(x);
            [P::dot8(sum[0], weights[0], x), P::dot8(sum[1], weights[1], x)]
        }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const u8) {
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
}
