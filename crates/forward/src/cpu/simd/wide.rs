//! A vector made of several registers of an instruction set.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions rely on the contract of the caller alone, see docs/unsafe.md"
)]

use std::marker::PhantomData;

use super::Vector;

/// `N` vectors side by side.
#[derive(Debug, Clone, Copy)]
pub struct Wide<V, const N: usize>(PhantomData<V>);

/// Applies `$part` to each of the vectors.
macro_rules! each {
    (|$i:ident| $part:expr) => {{
        let $i = 0;
        let mut all = [unsafe { $part }; N];
        for $i in 1..N {
            all[$i] = unsafe { $part };
        }
        all
    }};
}

impl<V: Vector, const N: usize> Vector for Wide<V, N> {
    const WIDTH: usize = N * V::WIDTH;
    type F = [V::F; N];
    type I = [V::I; N];

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::F {
        unsafe { [V::splat(x); N] }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self::F {
        each!(|i| V::load(from.add(i * V::WIDTH)))
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, x: Self::F) {
        for i in 0..N {
            unsafe { V::store(to.add(i * V::WIDTH), x[i]) }
        }
    }

    #[inline(always)]
    unsafe fn add(a: Self::F, b: Self::F) -> Self::F {
        each!(|i| V::add(a[i], b[i]))
    }

    #[inline(always)]
    unsafe fn sub(a: Self::F, b: Self::F) -> Self::F {
        each!(|i| V::sub(a[i], b[i]))
    }

    #[inline(always)]
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F {
        each!(|i| V::mul(a[i], b[i]))
    }

    #[inline(always)]
    unsafe fn div(a: Self::F, b: Self::F) -> Self::F {
        each!(|i| V::div(a[i], b[i]))
    }

    #[inline(always)]
    unsafe fn mul_add(a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        each!(|i| V::mul_add(a[i], b[i], c[i]))
    }

    #[inline(always)]
    unsafe fn max(a: Self::F, b: Self::F) -> Self::F {
        each!(|i| V::max(a[i], b[i]))
    }

    #[inline(always)]
    unsafe fn min(a: Self::F, b: Self::F) -> Self::F {
        each!(|i| V::min(a[i], b[i]))
    }

    #[inline(always)]
    unsafe fn abs(x: Self::F) -> Self::F {
        each!(|i| V::abs(x[i]))
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self::F {
        each!(|i| V::load_f16(from.add(i * V::WIDTH)))
    }

    #[inline(always)]
    unsafe fn store_f16(to: *mut u16, x: Self::F) {
        for i in 0..N {
            unsafe { V::store_f16(to.add(i * V::WIDTH), x[i]) }
        }
    }

    #[inline(always)]
    unsafe fn splat_int(x: i32) -> Self::I {
        unsafe { [V::splat_int(x); N] }
    }

    #[inline(always)]
    unsafe fn add_int(a: Self::I, b: Self::I) -> Self::I {
        each!(|i| V::add_int(a[i], b[i]))
    }

    #[inline(always)]
    unsafe fn shl_int(x: Self::I, by: u32) -> Self::I {
        each!(|i| V::shl_int(x[i], by))
    }

    #[inline(always)]
    unsafe fn to_float(x: Self::I) -> Self::F {
        each!(|i| V::to_float(x[i]))
    }

    #[inline(always)]
    unsafe fn to_int(x: Self::F) -> Self::I {
        each!(|i| V::to_int(x[i]))
    }

    #[inline(always)]
    unsafe fn as_float(x: Self::I) -> Self::F {
        each!(|i| V::as_float(x[i]))
    }

    #[inline(always)]
    unsafe fn store_i8(to: *mut i8, x: Self::I) {
        for i in 0..N {
            unsafe { V::store_i8(to.add(i * V::WIDTH), x[i]) }
        }
    }

    #[inline(always)]
    unsafe fn store_i16(to: *mut i16, x: Self::I) {
        for i in 0..N {
            unsafe { V::store_i16(to.add(i * V::WIDTH), x[i]) }
        }
    }
}
