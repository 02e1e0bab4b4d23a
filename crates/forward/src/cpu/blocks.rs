//! Products of blocks whose quants are the weights' integers. Their order and prefetching are in
//! `product.rs`.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions rely on the contract of the caller alone, see docs/unsafe.md"
)]

use super::activations::{BLOCK, Tile};
use super::panels::Format;
use super::product::{Blocks, PanelBlock};
use super::simd::Products;

impl Tile {
    /// Address of four inputs of a row, from `4 * j` of the block on.
    #[inline(always)]
    pub unsafe fn four<const M: usize>(&self, block: usize, row: usize, j: usize) -> *const i8 {
        unsafe { self.quants.add((block * M + row) * BLOCK + 4 * j) }
    }
}

/// Computes `start + weights * x` over a group of 4 or 5 bits, exactly.
#[inline(always)]
unsafe fn dot_group<S: Products, const BITS: usize, const M: usize>(
    group: *const u8,
    x: Tile,
    block: usize,
    start: [S::I; M],
) -> [S::I; M] {
    unsafe {
        // Four products of five bits, or eight of four, fit in the narrowest sum.
        if BITS == 4 {
            dot_pairs::<S, BITS, M, 0, 4>(group, x, block, start)
        } else {
            let sums = dot_pairs::<S, BITS, M, 0, 2>(group, x, block, start);
            dot_pairs::<S, BITS, M, 2, 4>(group, x, block, sums)
        }
    }
}

/// Computes [`dot_group`] over the pairs of vectors from `FROM` to `TO`.
#[inline(always)]
unsafe fn dot_pairs<S: Products, const BITS: usize, const M: usize, const FROM: usize, const TO: usize>(
    group: *const u8,
    x: Tile,
    block: usize,
    mut sums: [S::I; M],
) -> [S::I; M] {
    unsafe {
        let mut partial = [S::begin(sums[0]); M];
        for row in 1..M {
            partial[row] = S::begin(sums[row]);
        }
        // Not a loop, which the compiler might keep: weights and sums would leave the registers.
        if FROM == 0 {
            dot_pair::<S, BITS, M, 0>(group, x, block, &mut partial);
            dot_pair::<S, BITS, M, 1>(group, x, block, &mut partial);
        }
        if TO == 4 {
            dot_pair::<S, BITS, M, 2>(group, x, block, &mut partial);
            dot_pair::<S, BITS, M, 3>(group, x, block, &mut partial);
        }
        for row in 0..M {
            sums[row] = S::finish(sums[row], partial[row]);
        }
        sums
    }
}

/// Adds the products of vectors `J` and `J + 4` of a group.
#[inline(always)]
unsafe fn dot_pair<S: Products, const BITS: usize, const M: usize, const J: usize>(
    group: *const u8,
    x: Tile,
    block: usize,
    partial: &mut [S::Partial; M],
) {
    unsafe {
        let (first, second) = pair::<S, BITS>(group, J);
        for row in 0..M {
            partial[row] = S::dot(partial[row], first, x.four::<M>(block, row, J));
            partial[row] = S::dot(partial[row], second, x.four::<M>(block, row, J + 4));
        }
    }
}

/// Unpacks vectors `j` and `j + 4` of a group of 4 or 5 bits.
#[inline(always)]
unsafe fn pair<S: Products, const BITS: usize>(group: *const u8, j: usize) -> (S::B, S::B) {
    unsafe {
        let low = S::load_bytes(group.add(64 * j));
        let (first, second) = (S::shr_mask(low, 0, 15), S::shr_mask(low, 4, 15));
        if BITS == 4 {
            return (first, second);
        }
        let (high, j) = (S::load_bytes(group.add(256)), j as u32);
        (S::or(first, S::shl_mask(high, 4 - j, 16)), S::or(second, S::shr_mask(high, j, 16)))
    }
}

/// Unpacks the four vectors of the first or second half of a group of 6 bits.
#[inline(always)]
unsafe fn half_group<S: Products, const HALF: usize>(group: *const u8) -> [S::B; 4] {
    unsafe {
        let high = [S::load_bytes(group.add(256)), S::load_bytes(group.add(256 + 64))];
        let mut weights = [high[0]; 4];
        for j in 0..4 {
            let low = S::shr_mask(S::load_bytes(group.add(64 * j)), 4 * HALF as u32, 15);
            let high = match 2 * HALF + j / 2 {
                0 => S::shl_mask(high[j % 2], 4, 48),
                1 => S::shl_mask(high[j % 2], 2, 48),
                2 => S::shr_mask(high[j % 2], 0, 48),
                _ => S::shr_mask(high[j % 2], 2, 48),
            };
            weights[j] = S::or(low, high);
        }
        weights
    }
}

/// Adds `dots * scale of the row * factor of the weights`.
#[inline(always)]
pub unsafe fn scale_add<S: Products, const M: usize>(
    dots: [S::I; M],
    x: Tile,
    block: usize,
    factor: S::F,
    sums: &mut [S::F; M],
) {
    for row in 0..M {
        unsafe {
            let product = S::mul(S::to_float(dots[row]), S::splat(*x.scales.add(block * M + row)));
            sums[row] = S::mul_add(product, factor, sums[row]);
        }
    }
}

/// Adds `offset of the weights * sum of the row`.
#[inline(always)]
unsafe fn offset_add<S: Products, const M: usize>(x: Tile, block: usize, offset: S::F, sums: &mut [S::F; M]) {
    for row in 0..M {
        unsafe { sums[row] = S::mul_add(offset, S::splat(*x.sums.add(block * M + row)), sums[row]) };
    }
}

pub struct Q8;

impl Blocks for Q8 {
    const FORMAT: Format = Format::Q8_0;
    type X = Tile;

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(
        block: PanelBlock,
        x: Tile,
        index: usize,
        sums: &mut [S::F; M],
    ) {
        unsafe {
            let mut dots = [S::splat_int(0); M];
            for row in 0..M {
                dots[row] = S::begin8(*x.negative.add(index * M + row));
            }
            let group = block.group::<S, Self, M>(0);
            for j in 0..8 {
                let weights = S::prepare8(S::load_bytes(group.add(64 * j)));
                for row in 0..M {
                    dots[row] = S::dot8(dots[row], weights, x.four::<M>(index, row, j));
                }
            }
            scale_add::<S, M>(dots, x, index, block.halves::<S>(0), sums);
        }
    }
}

/// Q4_0 and Q5_0: weight = scale * (quant - 2^(BITS - 1)).
pub struct Centred<const BITS: usize>;

impl<const BITS: usize> Blocks for Centred<BITS> {
    const FORMAT: Format = if BITS == 4 { Format::Q4_0 } else { Format::Q5_0 };
    type X = Tile;

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(
        block: PanelBlock,
        x: Tile,
        index: usize,
        sums: &mut [S::F; M],
    ) {
        unsafe {
            let mut dots = [S::splat_int(0); M];
            for row in 0..M {
                let negative = S::splat_int(*x.negative.add(index * M + row));
                dots[row] = S::shl_int(negative, BITS as u32 - 1);
            }
            let dots = dot_group::<S, BITS, M>(block.group::<S, Self, M>(0), x, index, dots);
            scale_add::<S, M>(dots, x, index, block.halves::<S>(0), sums);
        }
    }
}

/// Q1_0 and Q2_0: weight = scale * (quant - 1), where the one bit of Q1_0 counts twice.
pub struct Few<const BITS: usize>;

impl<const BITS: usize> Blocks for Few<BITS> {
    const FORMAT: Format = if BITS == 1 { Format::Q1_0 } else { Format::Q2_0 };
    type X = Tile;

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(
        block: PanelBlock,
        x: Tile,
        index: usize,
        sums: &mut [S::F; M],
    ) {
        unsafe {
            let (scale, groups) = (block.halves::<S>(0), Self::FORMAT.inputs() / BLOCK);
            for group in 0..groups {
                let (at, index) = (block.group::<S, Self, M>(group), groups * index + group);
                let mut dots = [S::splat_int(0); M];
                for row in 0..M {
                    dots[row] = S::splat_int(*x.negative.add(index * M + row));
                }
                let mut partial = [S::begin(dots[0]); M];
                for row in 1..M {
                    partial[row] = S::begin(dots[row]);
                }
                for j in 0..8 {
                    let weights = few::<S, BITS>(at, j);
                    for row in 0..M {
                        partial[row] = S::dot(partial[row], weights, x.four::<M>(index, row, j));
                    }
                }
                for row in 0..M {
                    dots[row] = S::finish(dots[row], partial[row]);
                }
                scale_add::<S, M>(dots, x, index, scale, sums);
            }
        }
    }
}

/// Unpacks vector `j` of a group of one bit, which becomes 0 or 2, or of two bits.
#[inline(always)]
unsafe fn few<S: Products, const BITS: usize>(group: *const u8, j: usize) -> S::B {
    unsafe {
        if BITS == 2 {
            return S::shr_mask(S::load_bytes(group.add(64 * (j % 2))), 2 * (j / 2) as u32, 3);
        }
        let all = S::load_bytes(group);
        if j == 0 { S::shl_mask(all, 1, 2) } else { S::shr_mask(all, j as u32 - 1, 2) }
    }
}

/// Q4_1 and Q5_1: weight = scale * quant + minimum.
pub struct Affine<const BITS: usize>;

impl<const BITS: usize> Blocks for Affine<BITS> {
    const FORMAT: Format = if BITS == 4 { Format::Q4_1 } else { Format::Q5_1 };
    type X = Tile;

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(
        block: PanelBlock,
        x: Tile,
        index: usize,
        sums: &mut [S::F; M],
    ) {
        unsafe {
            let dots = dot_group::<S, BITS, M>(block.group::<S, Self, M>(0), x, index, [S::splat_int(0); M]);
            scale_add::<S, M>(dots, x, index, block.halves::<S>(0), sums);
            offset_add::<S, M>(x, index, block.halves::<S>(1), sums);
        }
    }
}

/// Q4_K and Q5_K: 8 groups of 32, weight = scale * part * quant - minimum * part's minimum.
pub struct Superblock<const BITS: usize>;

impl<const BITS: usize> Blocks for Superblock<BITS> {
    const FORMAT: Format = if BITS == 4 { Format::Q4K } else { Format::Q5K };
    type X = Tile;

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(
        block: PanelBlock,
        x: Tile,
        index: usize,
        sums: &mut [S::F; M],
    ) {
        unsafe {
            let scale = block.halves::<S>(0);
            let minimum = S::sub(S::splat(0.0), block.halves::<S>(1));
            for group in 0..8 {
                let (part, part_minimum) = parts::<S>(block, group);
                let (at, index) = (block.group::<S, Self, M>(group), 8 * index + group);
                let dots = dot_group::<S, BITS, M>(at, x, index, [S::splat_int(0); M]);
                scale_add::<S, M>(dots, x, index, S::mul(scale, part), sums);
                offset_add::<S, M>(x, index, S::mul(minimum, part_minimum), sums);
            }
        }
    }
}

/// Unpacks the six-bit scale and minimum of a group from twelve vectors of bytes. The first four
/// hold scales and the next four minimums, each with two high bits of a later one. The last four
/// hold the lower halves of the later scales and minimums.
#[inline(always)]
unsafe fn parts<S: Products>(block: PanelBlock, group: usize) -> (S::F, S::F) {
    unsafe {
        let bytes = |index| S::load_u8(block.bytes(4 + index));
        if group < 4 {
            let (scale, minimum) = (bytes(group), bytes(group + 4));
            (S::to_float(S::and_int(scale, 63)), S::to_float(S::and_int(minimum, 63)))
        } else {
            let (scale, minimum, low) = (bytes(group - 4), bytes(group), bytes(group + 4));
            let scale = S::or_int(S::and_int(low, 15), S::and_int(S::shr_int(scale, 2), 48));
            let minimum = S::or_int(S::shr_int(low, 4), S::and_int(S::shr_int(minimum, 2), 48));
            (S::to_float(scale), S::to_float(minimum))
        }
    }
}

/// Q6_K: 16 parts of 16, weight = scale * part * (quant - 32).
pub struct Q6K;

impl Blocks for Q6K {
    const FORMAT: Format = Format::Q6K;
    type X = Tile;

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(
        block: PanelBlock,
        x: Tile,
        index: usize,
        sums: &mut [S::F; M],
    ) {
        unsafe {
            let scale = block.halves::<S>(0);
            for group in 0..8 {
                let part = |half| S::load_i8(block.bytes(2 + 2 * group + half).cast());
                let parts = [part(0), part(1)];
                let (at, index) = (block.group::<S, Self, M>(group), 8 * index + group);
                // Parts times 32, times minus the sums of their inputs.
                let lower = S::and_int(S::shl_int(parts[0], 5), 0xffff);
                let offsets = S::or_int(lower, S::shl_int(parts[1], 5 + 16));
                let mut dots = [S::splat_int(0); M];
                let weights = half_group::<S, 0>(at);
                for row in 0..M {
                    dots[row] = S::dot6(dots[row], weights, x.four::<M>(index, row, 0), parts[0]);
                }
                let weights = half_group::<S, 1>(at);
                for row in 0..M {
                    dots[row] = S::dot6(dots[row], weights, x.four::<M>(index, row, 4), parts[1]);
                }
                for row in 0..M {
                    let sums = S::splat_int(*x.halves.add(index * M + row));
                    dots[row] = S::add_int(dots[row], S::dot_halves(offsets, sums));
                }
                scale_add::<S, M>(dots, x, index, scale, sums);
            }
        }
    }
}

/// Q2_K: 16 parts of 16, weight = scale * part * quant - minimum * part's minimum.
pub struct Q2K;

impl Blocks for Q2K {
    const FORMAT: Format = Format::Q2K;
    type X = Tile;

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(
        block: PanelBlock,
        x: Tile,
        index: usize,
        sums: &mut [S::F; M],
    ) {
        unsafe {
            let (scale, minimum) = (block.halves::<S>(0), block.halves::<S>(1));
            for group in 0..8 {
                let part = |half| S::load_u8(block.bytes(4 + 2 * group + half));
                let parts = [part(0), part(1)];
                let (at, index) = (block.group::<S, Self, M>(group), 8 * index + group);
                let lower = S::shr_int(parts[0], 4);
                let minimums = S::or_int(lower, S::shl_int(S::shr_int(parts[1], 4), 16));
                let mut dots = [S::splat_int(0); M];
                for half in 0..2 {
                    let mut weights = [S::load_bytes(at); 4];
                    for j in 0..4 {
                        let bytes = S::load_bytes(at.add(64 * (j % 2)));
                        weights[j] = S::shr_mask(bytes, (4 * half + j / 2 * 2) as u32, 3);
                    }
                    let part = S::and_int(parts[half], 15);
                    for row in 0..M {
                        dots[row] = S::dot6(dots[row], weights, x.four::<M>(index, row, 4 * half), part);
                    }
                }
                scale_add::<S, M>(dots, x, index, scale, sums);
                // Minus the sums of the halves, times their minimums.
                for row in 0..M {
                    let sums = S::splat_int(*x.halves.add(index * M + row));
                    dots[row] = S::dot_halves(minimums, sums);
                }
                scale_add::<S, M>(dots, x, index, minimum, sums);
            }
        }
    }
}
