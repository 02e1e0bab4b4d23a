//! Products of blocks whose quants are indices into a codebook. A byte shuffle looks the values up;
//! the rest is as for plain quants of five or eight bits.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions rely on the contract of the caller alone, see docs/unsafe.md"
)]

use std::marker::PhantomData;

use super::activations::Tile;
use super::blocks::scale_add;
use super::panels::Format;
use super::product::{Blocks, PanelBlock};
use super::simd::Products;

/// A format with a codebook of 16 values.
pub trait Codebook {
    const FORMAT: Format;
    /// Smallest value.
    const MIN: i32 = range(Self::FORMAT).0;
    /// Distances to the smallest value fit in five bits, of which four products fit in the
    /// narrowest sum.
    const FITS_FIVE_BITS: bool = range(Self::FORMAT).1 - Self::MIN < 32;
    /// Each value less the smallest (if `FITS_FIVE_BITS`), otherwise plus 128.
    const VALUES: [u8; 16] = offset(Self::FORMAT, if Self::FITS_FIVE_BITS { -Self::MIN } else { 128 });
}

const fn values(format: Format) -> [i8; 16] {
    let Some(values) = format.codebook() else { panic!("a format without a codebook") };
    values
}

/// Returns the smallest and the largest value.
const fn range(format: Format) -> (i32, i32) {
    let (mut min, mut max) = (i32::MAX, i32::MIN);
    let mut index = 0;
    while index < 16 {
        let value = values(format)[index] as i32;
        min = if value < min { value } else { min };
        max = if value > max { value } else { max };
        index += 1;
    }
    (min, max)
}

const fn offset(format: Format, by: i32) -> [u8; 16] {
    let mut offset = [0; 16];
    let mut index = 0;
    while index < 16 {
        offset[index] = (values(format)[index] as i32 + by) as u8;
        index += 1;
    }
    offset
}

macro_rules! codebooks {
    ($($format:ident)+) => {$(
        pub struct $format;

        impl Codebook for $format {
            const FORMAT: Format = Format::$format;
        }
    )+};
}

codebooks!(Iq4Nl Mxfp4 Nvfp4 Iq4Xs Iq3Xxs Iq3S Iq2Xxs Iq2Xs Iq1S Iq1M Q3K);

/// Looks up the offset values of inputs `4j..4j + 4` of a group.
#[inline(always)]
unsafe fn values_of<S: Products, C: Codebook>(group: *const u8, j: usize) -> S::B {
    unsafe {
        let index = if C::FORMAT.bits() == 4 {
            S::shr_mask(S::load_bytes(group.add(64 * (j % 4))), 4 * (j / 4) as u32, 15)
        } else {
            let (low, high) = (S::load_bytes(group.add(64 * (j % 2))), S::load_bytes(group.add(128)));
            let low = S::shr_mask(low, 2 * (j / 2) as u32, 3);
            let high =
                if j < 3 { S::shl_mask(high, 2 - j as u32, 4) } else { S::shr_mask(high, j as u32 - 2, 4) };
            S::or(low, high)
        };
        S::lookup(&C::VALUES, index)
    }
}

/// Inputs of a step. With four bits, the two in one vector follow each other.
const fn input<C: Codebook>(step: usize) -> usize {
    if C::FORMAT.bits() == 4 { step / 2 + 4 * (step % 2) } else { step }
}

/// Computes the products over a group, exactly.
#[inline(always)]
unsafe fn dot<S: Products, C: Codebook, const M: usize>(
    group: *const u8,
    x: Tile,
    block: usize,
) -> [S::I; M] {
    unsafe {
        if C::FITS_FIVE_BITS {
            dot_five_bits::<S, C, M>(group, x, block)
        } else {
            dot_eight_bits::<S, C, M>(group, x, block)
        }
    }
}

#[inline(always)]
unsafe fn dot_five_bits<S: Products, C: Codebook, const M: usize>(
    group: *const u8,
    x: Tile,
    block: usize,
) -> [S::I; M] {
    unsafe {
        let mut dots = [S::splat_int(0); M];
        for row in 0..M {
            dots[row] = S::splat_int((*x.negative.add(block * M + row)).wrapping_mul(-C::MIN));
        }
        for half in 0..2 {
            let mut partial = [S::begin(dots[0]); M];
            for row in 1..M {
                partial[row] = S::begin(dots[row]);
            }
            for step in 4 * half..4 * half + 4 {
                let (j, values) = (input::<C>(step), values_of::<S, C>(group, input::<C>(step)));
                for row in 0..M {
                    partial[row] = S::dot(partial[row], values, x.four::<M>(block, row, j));
                }
            }
            for row in 0..M {
                dots[row] = S::finish(dots[row], partial[row]);
            }
        }
        dots
    }
}

#[inline(always)]
unsafe fn dot_eight_bits<S: Products, C: Codebook, const M: usize>(
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
            let (j, weights) = (input::<C>(step), S::prepare8(values_of::<S, C>(group, input::<C>(step))));
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
    unsafe fn add<S: Products, const M: usize>(
        block: PanelBlock,
        x: Tile,
        index: usize,
        sums: &mut [S::F; M],
    ) {
        unsafe {
            let dots = dot::<S, C, M>(block.group::<S, Self, M>(0), x, index);
            let scale = if C::FORMAT.halves() == 1 {
                block.halves::<S>(0)
            } else {
                // The byte is the file's exponent plus one. It is two more than that of the scale,
                // which may be subnormal.
                S::mul(S::as_float(S::shl_int(S::load_u8(block.bytes(0)), 23)), S::splat(0.25))
            };
            scale_add::<S, M>(dots, x, index, scale, sums);
        }
    }
}

/// Blocks of two groups of 32 whose halves have scales of their own, unsigned numbers with four
/// bits of exponent and three of mantissa: NVFP4.
pub struct Sixteens<C>(PhantomData<C>);

impl<C: Codebook> Blocks for Sixteens<C> {
    const FORMAT: Format = C::FORMAT;
    type X = Tile;

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(
        block: PanelBlock,
        x: Tile,
        index: usize,
        sums: &mut [S::F; M],
    ) {
        // Moves the exponent of a number whose bits lie where those of a 32-bit one do, and halves
        // it, since the codebook has twice the values. The number may be subnormal.
        const UNIT: f32 = f32::from_bits((127 + 119) << 23);
        unsafe {
            for group in 0..2 {
                let (at, index) = (block.group::<S, Self, M>(group), 2 * index + group);
                for half in 0..2 {
                    let scale = S::shl_int(S::load_u8(block.bytes(2 * group + half)), 20);
                    let dots = dot_half::<S, C, M>(at, x, index, half);
                    scale_add::<S, M>(dots, x, index, S::mul(S::as_float(scale), S::splat(UNIT)), sums);
                }
            }
        }
    }
}

/// Computes the products over half a group, exactly. Only for codebooks that fit five bits.
#[inline(always)]
unsafe fn dot_half<S: Products, C: Codebook, const M: usize>(
    group: *const u8,
    x: Tile,
    block: usize,
    half: usize,
) -> [S::I; M] {
    const { assert!(C::FITS_FIVE_BITS) };
    unsafe {
        let mut dots = [S::splat_int(0); M];
        for row in 0..M {
            // Minus the sum of this half, 16 bits of both.
            let negative = *x.halves.add(block * M + row) << (16 * (1 - half)) >> 16;
            dots[row] = S::splat_int(negative.wrapping_mul(-C::MIN));
        }
        let mut partial = [S::begin(dots[0]); M];
        for row in 1..M {
            partial[row] = S::begin(dots[row]);
        }
        for j in 4 * half..4 * half + 4 {
            let values = values_of::<S, C>(group, j);
            for row in 0..M {
                partial[row] = S::dot(partial[row], values, x.four::<M>(block, row, j));
            }
        }
        for row in 0..M {
            dots[row] = S::finish(dots[row], partial[row]);
        }
        dots
    }
}

/// Blocks of 8 groups of 32, each with a scale of its own: scale = half * factor * part.
pub struct Grouped<C>(PhantomData<C>);

impl<C: Codebook> Blocks for Grouped<C> {
    const FORMAT: Format = C::FORMAT;
    type X = Tile;

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(
        block: PanelBlock,
        x: Tile,
        index: usize,
        sums: &mut [S::F; M],
    ) {
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

/// Blocks as [`Grouped`] with a scale for each half of a group; both halves are summed as integers.
pub struct Halved<C>(PhantomData<C>);

impl<C: Codebook> Blocks for Halved<C> {
    const FORMAT: Format = C::FORMAT;
    type X = Tile;

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(
        block: PanelBlock,
        x: Tile,
        index: usize,
        sums: &mut [S::F; M],
    ) {
        unsafe {
            let scale = S::mul(block.halves::<S>(0), S::splat(C::FORMAT.factor()));
            for group in 0..8 {
                let (at, index) = (block.group::<S, Self, M>(group), 8 * index + group);
                let part = |half| S::load_i8(block.bytes(2 + 2 * group + half).cast());
                let parts = [part(0), part(1)];
                let mut dots = [S::splat_int(0); M];
                for half in 0..2 {
                    let mut values = [values_of::<S, C>(at, 4 * half); 4];
                    for j in 1..4 {
                        values[j] = values_of::<S, C>(at, 4 * half + j);
                    }
                    if C::FITS_FIVE_BITS {
                        for row in 0..M {
                            dots[row] =
                                S::dot6(dots[row], values, x.four::<M>(index, row, 4 * half), parts[half]);
                        }
                    } else {
                        add_half_eight_bits::<S, M>(&mut dots, values, x, index, half, parts[half]);
                    }
                }
                if C::FITS_FIVE_BITS {
                    // Minus the smallest value, times the parts, times minus the sums of their
                    // inputs.
                    let min = S::splat_int(-C::MIN);
                    let (lower, upper) = (S::mul_int(parts[0], min), S::mul_int(parts[1], min));
                    let offsets = S::or_int(S::and_int(lower, 0xffff), S::shl_int(upper, 16));
                    for row in 0..M {
                        let sums = S::splat_int(*x.halves.add(index * M + row));
                        dots[row] = S::add_int(dots[row], S::dot_halves(offsets, sums));
                    }
                }
                scale_add::<S, M>(dots, x, index, scale, sums);
            }
        }
    }
}

/// Adds the products of half a group, times its part.
#[inline(always)]
unsafe fn add_half_eight_bits<S: Products, const M: usize>(
    dots: &mut [S::I; M],
    values: [S::B; 4],
    x: Tile,
    index: usize,
    half: usize,
    part: S::I,
) {
    unsafe {
        let mut weights = [S::prepare8(values[0]); 4];
        for j in 1..4 {
            weights[j] = S::prepare8(values[j]);
        }
        for row in 0..M {
            // Minus the sum of this half, 16 bits of both.
            let negative = *x.halves.add(index * M + row) << (16 * (1 - half)) >> 16;
            let mut dot = S::begin8(negative);
            for j in 0..4 {
                dot = S::dot8(dot, weights[j], x.four::<M>(index, row, 4 * half + j));
            }
            dots[row] = S::add_int(dots[row], S::mul_int(dot, part));
        }
    }
}
