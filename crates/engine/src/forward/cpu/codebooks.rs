//! How blocks whose quants are indices into a codebook are multiplied: a shuffle looks the values up, sixteen and more
//! at once, and the rest is done as with weights of eight bits.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions: the caller's promise is all they need, see docs/unsafe.md"
)]

use std::marker::PhantomData;

use super::activations::Tile;
use super::blocks::scale_add;
use super::panels::Format;
use super::product::{Block, Blocks};
use super::simd::Products;

/// A format with a codebook.
pub trait Codebook {
    const FORMAT: Format;
    /// Each value plus 128.
    const VALUES: [u8; 16] = above_zero(Self::FORMAT);
}

const fn above_zero(format: Format) -> [u8; 16] {
    let Some(values) = format.codebook() else { panic!("a format without a codebook") };
    let mut above = [0; 16];
    let mut index = 0;
    while index < 16 {
        above[index] = (values[index] as u8) ^ 0x80;
        index += 1;
    }
    above
}

macro_rules! codebooks {
    ($($format:ident)+) => {$(
        pub struct $format;

        impl Codebook for $format {
            const FORMAT: Format = Format::$format;
        }
    )+};
}

codebooks!(Iq4Nl Mxfp4 Iq4Xs Iq3Xxs Iq3S Iq2Xxs Iq2Xs Iq1S Iq1M Q3K);

/// The weights of inputs `4j..4j + 4` of a group.
#[inline(always)]
unsafe fn weights<S: Products, C: Codebook>(group: *const u8, j: usize) -> S::W8 {
    unsafe {
        let index = if C::FORMAT.bits() == 4 {
            S::shr_mask(S::load_bytes(group.add(64 * (j % 4))), 4 * (j / 4) as u32, 15)
        } else {
            let (low, high) = (S::load_bytes(group.add(64 * (j % 2))), S::load_bytes(group.add(128)));
            let low = S::shr_mask(low, 2 * (j / 2) as u32, 3);
            S::or(
                low,
                if j < 3 { S::shl_mask(high, 2 - j as u32, 4) } else { S::shr_mask(high, j as u32 - 2, 4) },
            )
        };
        S::eight(S::choose(&C::VALUES, index))
    }
}

/// Products over a group, exactly.
#[inline(always)]
unsafe fn dot<S: Products, C: Codebook, const M: usize>(
    group: *const u8,
    x: Tile,
    block: usize,
) -> [S::I; M] {
    unsafe {
        let mut dots = [S::splat_int(0); M];
        for row in 0..M {
            dots[row] = S::begin8(*x.negative.add(block * M + row));
        }
        for step in 0..8 {
            // Of four bits the two that are in the same vector follow each other.
            let j = if C::FORMAT.bits() == 4 { step / 2 + 4 * (step % 2) } else { step };
            let weights = weights::<S, C>(group, j);
            for row in 0..M {
                dots[row] = S::dot8(dots[row], weights, x.four::<M>(block, row, j));
            }
        }
        dots
    }
}

/// Blocks of 32: IQ4_NL, and MXFP4, whose scales are powers of two.
pub struct Whole<C>(PhantomData<C>);

impl<C: Codebook> Blocks for Whole<C> {
    const FORMAT: Format = C::FORMAT;
    type X = Tile;

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(block: Block, x: Tile, index: usize, sums: &mut [S::F; M]) {
        unsafe {
            let dots = dot::<S, C, M>(block.group::<S, Self, M>(0), x, index);
            let scale = if C::FORMAT.halves() == 1 {
                block.halves::<S>(0)
            } else {
                // The exponent plus one: two more than that of the scale, which may be too small for its own.
                S::mul(S::as_float(S::shl_int(S::load_u8(block.bytes(0)), 23)), S::splat(0.25))
            };
            scale_add::<S, M>(dots, x, index, scale, sums);
        }
    }
}

/// Blocks of 8 groups of 32, each with a scale of its own: scale = half * factor * part.
pub struct Grouped<C>(PhantomData<C>);

impl<C: Codebook> Blocks for Grouped<C> {
    const FORMAT: Format = C::FORMAT;
    type X = Tile;

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(block: Block, x: Tile, index: usize, sums: &mut [S::F; M]) {
        unsafe {
            let scale = S::mul(block.halves::<S>(0), S::splat(C::FORMAT.factor()));
            for group in 0..8 {
                let part = S::to_float(S::load_i8(block.bytes(2 + group).cast()));
                let (at, index) = (block.group::<S, Self, M>(group), 8 * index + group);
                let dots = dot::<S, C, M>(at, x, index);
                scale_add::<S, M>(dots, x, index, S::mul(scale, part), sums);
            }
        }
    }
}

/// The same with a part for each half of a group, which a sum of both is made with as whole numbers.
pub struct Halved<C>(PhantomData<C>);

impl<C: Codebook> Blocks for Halved<C> {
    const FORMAT: Format = C::FORMAT;
    type X = Tile;

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(block: Block, x: Tile, index: usize, sums: &mut [S::F; M]) {
        unsafe {
            let scale = S::mul(block.halves::<S>(0), S::splat(C::FORMAT.factor()));
            for group in 0..8 {
                let (at, index) = (block.group::<S, Self, M>(group), 8 * index + group);
                let mut dots = [S::splat_int(0); M];
                for half in 0..2 {
                    let part = S::load_i8(block.bytes(2 + 2 * group + half).cast());
                    let mut quarters = [weights::<S, C>(at, 4 * half); 4];
                    for j in 1..4 {
                        quarters[j] = weights::<S, C>(at, 4 * half + j);
                    }
                    for row in 0..M {
                        // Minus the sums of the halves, 16 bits each.
                        let negative = *x.halves.add(index * M + row) << (16 * (1 - half)) >> 16;
                        let mut dot = S::begin8(negative);
                        for j in 0..4 {
                            dot = S::dot8(dot, quarters[j], x.four::<M>(index, row, 4 * half + j));
                        }
                        dots[row] = S::add_int(dots[row], S::mul_int(dot, part));
                    }
                }
                scale_add::<S, M>(dots, x, index, scale, sums);
            }
        }
    }
}
