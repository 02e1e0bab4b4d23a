//! Products of unquantised weights: F16, BF16 and F32.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions rely on the contract of the caller alone, see docs/unsafe.md"
)]

use std::marker::PhantomData;

use super::panels::Format;
use super::product::{Blocks, PanelBlock};
use super::simd::Products;

/// Unquantised weights; a block is one input.
pub struct Unquantised<N>(PhantomData<N>);

/// Loading of such a format.
pub trait Numbers {
    const FORMAT: Format;
    unsafe fn load<S: Products>(block: PanelBlock) -> S::F;
}

impl<N: Numbers> Blocks for Unquantised<N> {
    const FORMAT: Format = N::FORMAT;
    type X = (*const f32, usize);

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(
        block: PanelBlock,
        x: Self::X,
        index: usize,
        sums: &mut [S::F; M],
    ) {
        unsafe {
            block.prefetch_ahead::<S, Self, M>(0, 1);
            let ((x, stride), weights) = (x, N::load::<S>(block));
            for row in 0..M {
                sums[row] = S::mul_add(weights, S::splat(*x.add(row * stride + index)), sums[row]);
            }
        }
    }
}

pub struct F16;
pub struct Bf16;
pub struct F32;

impl Numbers for F16 {
    const FORMAT: Format = Format::F16;
    #[inline(always)]
    unsafe fn load<S: Products>(block: PanelBlock) -> S::F {
        unsafe { block.halves::<S>(0) }
    }
}

impl Numbers for Bf16 {
    const FORMAT: Format = Format::Bf16;
    #[inline(always)]
    unsafe fn load<S: Products>(block: PanelBlock) -> S::F {
        unsafe { S::load_bf16(block.at.cast::<u16>().add(block.lane)) }
    }
}

impl Numbers for F32 {
    const FORMAT: Format = Format::F32;
    #[inline(always)]
    unsafe fn load<S: Products>(block: PanelBlock) -> S::F {
        unsafe { S::load(block.at.cast::<f32>().add(block.lane)) }
    }
}
