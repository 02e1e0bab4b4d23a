//! The product of a panel with a tile of rows, the one place where the weights are read: once for all
//! rows of the tile.
//!
//! Row invariance rests on this: whatever else is in the tile, a row's sixteen results come from the
//! same operations in the same order. Sums of byte products within a block are exact integers; what is
//! rounded is one f32 sum that runs over the blocks in their order.

use super::activations::{BLOCK, Tile};
use super::panels::Format;
use super::simd::{LANES, Simd};

/// What a kernel is asked: `out[row] = panel * x[row]`, sixteen numbers for each row of the tile.
#[derive(Debug, Clone, Copy)]
pub struct Product {
    pub panel: *const u8,
    /// Of the panel: blocks of 32 or 256 inputs, or inputs.
    pub blocks: usize,
    pub x: Rows,
    pub out: *mut f32,
    /// From one row of `out` to the next.
    pub stride: usize,
    /// Add to what is there.
    pub add: bool,
}

/// The rows to multiply with, in the form the weights want.
#[derive(Debug, Clone, Copy)]
pub enum Rows {
    Quantised(Tile),
    Plain { rows: usize, x: *const f32, stride: usize },
}

/// A kernel for one format and one number of rows.
pub type Kernel = unsafe fn(&Product);

/// How far ahead of its use a panel's memory is asked for, in bytes. Measured: docs/benchmarks.md.
const AHEAD: usize = 4096;

/// How the blocks of one format are multiplied.
pub trait Blocks {
    const FORMAT: Format;
    /// Adds the products of the block at `block`, whose first 32 inputs are number `index` of the rows.
    unsafe fn add<S: Simd, const M: usize>(block: *const u8, x: &Tile, index: usize, sums: &mut [S::F; M]);
}

/// # Safety
/// [`Simd`]'s; the pointers must be good for what the fields say, the tile must have `M` rows.
#[inline(always)]
pub unsafe fn multiply<S: Simd, B: Blocks, const M: usize>(product: &Product) {
    // SAFETY: as promised.
    unsafe {
        let Rows::Quantised(x) = &product.x else { unreachable!("quantised weights, plain activations") };
        let size = B::FORMAT.panel_block();
        let mut sums = [S::splat(0.0); M];
        for index in 0..product.blocks {
            let block = product.panel.add(index * size);
            ask_ahead::<S>(block, size);
            B::add::<S, M>(block, x, index * (B::FORMAT.inputs() / BLOCK), &mut sums);
        }
        give::<S, M>(product, sums);
    }
}

#[inline(always)]
unsafe fn ask_ahead<S: Simd>(block: *const u8, size: usize) {
    let mut line = 0;
    while line < size {
        // SAFETY: a prefetch may be of any address.
        unsafe { S::prefetch(block.wrapping_add(AHEAD + line)) };
        line += 64;
    }
}

#[inline(always)]
unsafe fn give<S: Simd, const M: usize>(product: &Product, sums: [S::F; M]) {
    for (row, sum) in sums.into_iter().enumerate() {
        // SAFETY: as promised to the callers.
        unsafe {
            let out = product.out.add(row * product.stride);
            S::store(out, if product.add { S::add(S::load(out), sum) } else { sum });
        }
    }
}

impl Tile {
    /// Four inputs of a row, from `4 * j` of the block on.
    #[inline(always)]
    unsafe fn four<const M: usize>(&self, block: usize, row: usize, j: usize) -> i32 {
        unsafe { self.quants.add((block * M + row) * BLOCK + 4 * j).cast::<i32>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn scale<const M: usize>(&self, block: usize, row: usize) -> f32 {
        unsafe { *self.scales.add(block * M + row) }
    }

    #[inline(always)]
    unsafe fn sum<const M: usize>(&self, block: usize, row: usize) -> f32 {
        unsafe { *self.sums.add(block * M + row) }
    }

    /// `-offset` times the sum of the block's inputs, with which weights that are stored with `offset`
    /// = 2^`shift` added to them come out right.
    #[inline(always)]
    unsafe fn correction<S: Simd, const M: usize>(
        sums: *const i32,
        block: usize,
        row: usize,
        shift: u32,
    ) -> S::I {
        unsafe { S::shl_int(S::splat_int(*sums.add(block * M + row)), shift) }
    }
}

/// 32 inputs of `BITS` bits, as vectors `j` and `j + 4` of bytes for `j` below 4.
#[inline(always)]
unsafe fn pair<S: Simd, const BITS: usize>(group: *const u8, j: usize) -> (S::B, S::B) {
    unsafe {
        let low = S::load_bytes(group.add(64 * j));
        let (first, second) = (S::shr_mask(low, 0, 15), S::shr_mask(low, 4, 15));
        match BITS {
            5 => {
                let high = S::load_bytes(group.add(256));
                let j = j as u32;
                (
                    S::or(first, S::shl_mask(high, 4 - j, 16)),
                    S::or(second, S::shr_mask(high, j, 16)),
                )
            }
            6 => {
                let high = S::load_bytes(group.add(256 + 64 * (j % 2)));
                let lower = if j < 2 { 4 } else { 2 };
                let upper = S::shr_mask(high, if j < 2 { 0 } else { 2 }, 48);
                (S::or(first, S::shl_mask(high, lower, 48)), S::or(second, upper))
            }
            _ => (first, second),
        }
    }
}

/// `start + weights * x` over a group of 4 or 5 bits, exactly.
#[inline(always)]
unsafe fn dot_group<S: Simd, const BITS: usize, const M: usize>(
    group: *const u8,
    x: &Tile,
    block: usize,
    start: [S::I; M],
) -> [S::I; M] {
    unsafe {
        let mut sums = start;
        // Four products of five bits, or eight of four, fit in the narrowest sum.
        let steps = if BITS == 4 { 4 } else { 2 };
        for from in (0..4).step_by(steps) {
            let mut partial = [S::begin(sums[0]); M];
            for row in 1..M {
                partial[row] = S::begin(sums[row]);
            }
            for j in from..from + steps {
                let (first, second) = pair::<S, BITS>(group, j);
                for row in 0..M {
                    partial[row] = S::dot(partial[row], first, x.four::<M>(block, row, j));
                    partial[row] = S::dot(partial[row], second, x.four::<M>(block, row, j + 4));
                }
            }
            for row in 0..M {
                sums[row] = S::finish(sums[row], partial[row]);
            }
        }
        sums
    }
}

/// Adds `dots * scale of the row * factor of the weights`.
#[inline(always)]
unsafe fn scale_add<S: Simd, const M: usize>(
    dots: [S::I; M],
    x: &Tile,
    block: usize,
    factor: S::F,
    sums: &mut [S::F; M],
) {
    for row in 0..M {
        unsafe {
            let product = S::mul(S::to_float(dots[row]), S::splat(x.scale::<M>(block, row)));
            sums[row] = S::mul_add(product, factor, sums[row]);
        }
    }
}

/// Adds `offset of the weights * sum of the row`.
#[inline(always)]
unsafe fn offset_add<S: Simd, const M: usize>(
    x: &Tile,
    block: usize,
    offset: S::F,
    sums: &mut [S::F; M],
) {
    for row in 0..M {
        unsafe { sums[row] = S::mul_add(offset, S::splat(x.sum::<M>(block, row)), sums[row]) };
    }
}

pub struct EightBits;

impl Blocks for EightBits {
    const FORMAT: Format = Format::Q8_0;

    #[inline(always)]
    unsafe fn add<S: Simd, const M: usize>(block: *const u8, x: &Tile, index: usize, sums: &mut [S::F; M]) {
        unsafe {
            let mut dots = [S::splat_int(0); M];
            for row in 0..M {
                dots[row] = S::begin8(*x.negative.add(index * M + row));
            }
            for j in 0..8 {
                let weights = S::eight(S::load_bytes(block.add(2 * LANES + 64 * j)));
                for row in 0..M {
                    dots[row] = S::dot8(dots[row], weights, x.four::<M>(index, row, j));
                }
            }
            scale_add::<S, M>(dots, x, index, S::load_f16(block.cast()), sums);
        }
    }
}

/// Q4_0 and Q5_0: weight = scale * (quant - 2^(BITS - 1)).
pub struct Centred<const BITS: usize>;

impl<const BITS: usize> Blocks for Centred<BITS> {
    const FORMAT: Format = if BITS == 4 { Format::Q4_0 } else { Format::Q5_0 };

    #[inline(always)]
    unsafe fn add<S: Simd, const M: usize>(block: *const u8, x: &Tile, index: usize, sums: &mut [S::F; M]) {
        unsafe {
            let mut dots = [S::splat_int(0); M];
            for row in 0..M {
                dots[row] = Tile::correction::<S, M>(x.negative, index, row, BITS as u32 - 1);
            }
            let dots = dot_group::<S, BITS, M>(block.add(2 * LANES), x, index, dots);
            scale_add::<S, M>(dots, x, index, S::load_f16(block.cast()), sums);
        }
    }
}

/// Q4_1 and Q5_1: weight = scale * quant + minimum.
pub struct Affine<const BITS: usize>;

impl<const BITS: usize> Blocks for Affine<BITS> {
    const FORMAT: Format = if BITS == 4 { Format::Q4_1 } else { Format::Q5_1 };

    #[inline(always)]
    unsafe fn add<S: Simd, const M: usize>(block: *const u8, x: &Tile, index: usize, sums: &mut [S::F; M]) {
        unsafe {
            let dots = dot_group::<S, BITS, M>(block.add(4 * LANES), x, index, [S::splat_int(0); M]);
            scale_add::<S, M>(dots, x, index, S::load_f16(block.cast()), sums);
            offset_add::<S, M>(x, index, S::load_f16(block.add(2 * LANES).cast()), sums);
        }
    }
}

/// Q4_K and Q5_K: 8 groups of 32, weight = scale * part * quant - minimum * part's minimum.
pub struct Parted<const BITS: usize>;

impl<const BITS: usize> Blocks for Parted<BITS> {
    const FORMAT: Format = if BITS == 4 { Format::Q4K } else { Format::Q5K };

    #[inline(always)]
    unsafe fn add<S: Simd, const M: usize>(block: *const u8, x: &Tile, index: usize, sums: &mut [S::F; M]) {
        unsafe {
            let scale = S::load_f16(block.cast());
            let minimum = S::sub(S::splat(0.0), S::load_f16(block.add(2 * LANES).cast()));
            let groups = block.add(Self::FORMAT.head());
            for group in 0..8 {
                let (part, part_minimum) = parts::<S>(block.add(4 * LANES), group);
                let at = groups.add(group * Self::FORMAT.group());
                let dots = dot_group::<S, BITS, M>(at, x, index + group, [S::splat_int(0); M]);
                scale_add::<S, M>(dots, x, index + group, S::mul(scale, part), sums);
                offset_add::<S, M>(x, index + group, S::mul(minimum, part_minimum), sums);
            }
        }
    }
}

/// The six-bit scale and minimum of a group, from twelve vectors of bytes: the first four hold scales,
/// the next four minimums, each with two high bits of a later one; the last four the lower halves of
/// the later scales and minimums.
#[inline(always)]
unsafe fn parts<S: Simd>(parts: *const u8, group: usize) -> (S::F, S::F) {
    unsafe {
        if group < 4 {
            let scale = S::load_u8(parts.add(group * LANES));
            let minimum = S::load_u8(parts.add((group + 4) * LANES));
            (S::to_float(S::and_int(scale, 63)), S::to_float(S::and_int(minimum, 63)))
        } else {
            let low = S::load_u8(parts.add((group + 4) * LANES));
            let scale = S::load_u8(parts.add((group - 4) * LANES));
            let minimum = S::load_u8(parts.add(group * LANES));
            let scale = S::or_int(S::and_int(low, 15), S::and_int(S::shr_int(scale, 2), 48));
            let minimum = S::or_int(S::shr_int(low, 4), S::and_int(S::shr_int(minimum, 2), 48));
            (S::to_float(scale), S::to_float(minimum))
        }
    }
}

/// Q6_K: 16 parts of 16, weight = scale * part * (quant - 32).
pub struct SixBits;

impl Blocks for SixBits {
    const FORMAT: Format = Format::Q6K;

    #[inline(always)]
    unsafe fn add<S: Simd, const M: usize>(block: *const u8, x: &Tile, index: usize, sums: &mut [S::F; M]) {
        unsafe {
            let scale = S::load_f16(block.cast());
            for group in 0..8 {
                let parts = block.add(2 * LANES + 2 * group * LANES).cast::<i8>();
                let (lower_part, upper_part) = (S::load_i8(parts), S::load_i8(parts.add(LANES)));
                let at = block.add(Self::FORMAT.head() + group * Self::FORMAT.group());
                let mut lower = [S::splat_int(0); M];
                let mut upper = [S::splat_int(0); M];
                for row in 0..M {
                    lower[row] = Tile::correction::<S, M>(x.lower, index + group, row, 5);
                    upper[row] = Tile::correction::<S, M>(x.upper, index + group, row, 5);
                }
                for from in [0, 2] {
                    let (a, c) = pair::<S, 6>(at, from);
                    let (b, d) = pair::<S, 6>(at, from + 1);
                    for row in 0..M {
                        let four = |j| x.four::<M>(index + group, row, j);
                        let sum = S::dot(S::begin(lower[row]), a, four(from));
                        lower[row] = S::finish(lower[row], S::dot(sum, b, four(from + 1)));
                        let sum = S::dot(S::begin(upper[row]), c, four(from + 4));
                        upper[row] = S::finish(upper[row], S::dot(sum, d, four(from + 5)));
                    }
                }
                for row in 0..M {
                    lower[row] =
                        S::add_int(S::mul_int(lower[row], lower_part), S::mul_int(upper[row], upper_part));
                }
                scale_add::<S, M>(lower, x, index + group, scale, sums);
            }
        }
    }
}

/// How numbers that are no quants are read.
pub trait Numbers {
    const FORMAT: Format;
    unsafe fn load<S: Simd>(from: *const u8) -> S::F;
}

pub struct Half;
pub struct Brain;
pub struct Single;

impl Numbers for Half {
    const FORMAT: Format = Format::F16;
    #[inline(always)]
    unsafe fn load<S: Simd>(from: *const u8) -> S::F {
        unsafe { S::load_f16(from.cast()) }
    }
}

impl Numbers for Brain {
    const FORMAT: Format = Format::Bf16;
    #[inline(always)]
    unsafe fn load<S: Simd>(from: *const u8) -> S::F {
        unsafe { S::load_bf16(from.cast()) }
    }
}

impl Numbers for Single {
    const FORMAT: Format = Format::F32;
    #[inline(always)]
    unsafe fn load<S: Simd>(from: *const u8) -> S::F {
        unsafe { S::load(from.cast()) }
    }
}

/// # Safety
/// That of [`multiply`].
#[inline(always)]
pub unsafe fn multiply_plain<S: Simd, N: Numbers, const M: usize>(product: &Product) {
    // SAFETY: as promised.
    unsafe {
        let Rows::Plain { x, stride, .. } = product.x else {
            unreachable!("plain weights, quantised activations")
        };
        let size = N::FORMAT.panel_block();
        let mut sums = [S::splat(0.0); M];
        for input in 0..product.blocks {
            let at = product.panel.add(input * size);
            S::prefetch(at.wrapping_add(AHEAD));
            let weights = N::load::<S>(at);
            for row in 0..M {
                sums[row] = S::mul_add(weights, S::splat(*x.add(row * stride + input)), sums[row]);
            }
        }
        give::<S, M>(product, sums);
    }
}
