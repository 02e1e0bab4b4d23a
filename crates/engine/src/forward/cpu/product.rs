//! The product of a panel with a tile of rows, the one place where the weights are read: once for all
//! rows of the tile.
//!
//! Row invariance rests on this: whatever else is in the tile, a row's sixteen results come from the
//! same operations in the same order. Sums of byte products within a block are exact integers; what is
//! rounded is one f32 sum that runs over the blocks in their order.

use std::marker::PhantomData;

use super::activations::{BLOCK, Tile};
use super::panels::Format;
use super::simd::{LANES, Products, Simd, Vector};

/// What a kernel is asked: `out[row] = panel * x[row]`, sixteen numbers for each row of the tile.
#[derive(Debug, Clone, Copy)]
pub struct Product {
    pub panel: *const u8,
    /// Of the panel: blocks of 32 or 256 inputs, or inputs.
    pub blocks: usize,
    /// What will be read after the panel, to be asked for in time. Any address will do.
    pub next: *const u8,
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

/// A form of rows that kernels take.
pub trait Form: Copy {
    fn of(rows: &Rows) -> Self;
}

impl Form for Tile {
    #[inline(always)]
    fn of(rows: &Rows) -> Self {
        match *rows {
            Rows::Quantised(tile) => tile,
            Rows::Plain { .. } => unreachable!("quantised weights, plain activations"),
        }
    }
}

/// The first number, and how far it is from one row to the next.
impl Form for (*const f32, usize) {
    #[inline(always)]
    fn of(rows: &Rows) -> Self {
        match *rows {
            Rows::Plain { x, stride, .. } => (x, stride),
            Rows::Quantised(_) => unreachable!("plain weights, quantised activations"),
        }
    }
}

/// A kernel for one format and one number of rows.
pub type Kernel = unsafe fn(&Product);

/// How far ahead of its use memory is asked for, in bytes, when it is multiplied with so many rows: whole
/// parts of `part` bytes. Measured: docs/benchmarks.md.
const fn ahead(rows: usize, part: usize) -> usize {
    let bytes: usize = if rows < 4 { 4096 } else { 8192 };
    bytes.next_multiple_of(part)
}

/// A block of a panel, of which the rows from `lane` on are multiplied.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    at: *const u8,
    lane: usize,
    /// The end of the panel, and what will be read then.
    end: *const u8,
    next: *const u8,
}

impl Block {
    /// The scales (0) or the minimums (1), in half precision.
    #[inline(always)]
    unsafe fn halves<S: Products>(self, index: usize) -> S::F {
        unsafe { S::load_f16(self.at.cast::<u16>().add(index * LANES + self.lane)) }
    }

    /// A byte of each row, after `offset` times as many.
    #[inline(always)]
    unsafe fn bytes(self, offset: usize) -> *const u8 {
        unsafe { self.at.add(offset * LANES + self.lane) }
    }

    /// The quants of group `index`. Asks for the memory that will be wanted next, group by group: all of
    /// a large block at once would be more than a processor takes note of.
    #[inline(always)]
    unsafe fn group<S: Products, B: Blocks, const M: usize>(self, index: usize) -> *const u8 {
        let groups = B::FORMAT.inputs() / BLOCK;
        // SAFETY: the group is within the block.
        unsafe {
            self.ask_ahead::<S, B, M>(index, groups);
            self.at.add(B::FORMAT.head() + index * B::FORMAT.group() + 4 * self.lane)
        }
    }

    /// Asks for part `index` of `parts` of a later block; who multiplies some lanes asks for their share.
    #[inline(always)]
    unsafe fn ask_ahead<S: Products, B: Blocks, const M: usize>(self, index: usize, parts: usize) {
        let size = B::FORMAT.panel_block() / parts;
        let from = self.at.wrapping_add(ahead(M, size) + index * size);
        let beyond = (from as usize).wrapping_sub(self.end as usize);
        let from = if from < self.end { from } else { self.next.wrapping_add(beyond) };
        // SAFETY: as promised to the kernels.
        unsafe { ask_for::<S>(from.wrapping_add(size / LANES * self.lane), size / LANES * S::WIDTH) };
    }
}

/// How the blocks of one format are multiplied.
pub trait Blocks {
    const FORMAT: Format;
    type X: Form;
    /// Adds the products of block number `index`.
    unsafe fn add<S: Products, const M: usize>(block: Block, x: Self::X, index: usize, sums: &mut [S::F; M]);
}

/// # Safety
/// [`Vector`]'s; the pointers must be good for what the fields say, the tile must have `M` rows.
#[inline(always)]
pub unsafe fn multiply<S: Simd, B: Blocks, const M: usize>(product: &Product) {
    let x = B::X::of(&product.x);
    let size = B::FORMAT.panel_block();
    let (width, run) = if S::Part::WIDTH == LANES {
        (LANES, product.blocks)
    } else {
        // The compiler, were it to see that there are two parts, would do both at once to save loads, and
        // run out of registers.
        (std::hint::black_box(S::Part::WIDTH), run(B::FORMAT))
    };
    let panel_end = product.panel.wrapping_add(product.blocks * size);
    let mut sums = [[0f32; LANES]; M];
    let mut first = 0;
    while first < product.blocks {
        let end = product.blocks.min(first + run);
        for lane in (0..LANES).step_by(width) {
            // SAFETY: as promised.
            unsafe {
                let mut part = [S::Part::splat(0.0); M];
                for row in 0..M {
                    part[row] = S::Part::load(sums[row].as_ptr().add(lane));
                }
                for index in first..end {
                    let at = product.panel.add(index * size);
                    let block = Block { at, lane, end: panel_end, next: product.next };
                    B::add::<S::Part, M>(block, x, index, &mut part);
                }
                for row in 0..M {
                    S::Part::store(sums[row].as_mut_ptr().add(lane), part[row]);
                }
            }
        }
        first = end;
    }
    for (row, sum) in sums.iter().enumerate() {
        // SAFETY: as promised.
        unsafe {
            let (out, sum) = (product.out.add(row * product.stride), S::load(sum.as_ptr()));
            S::store(out, if product.add { S::add(S::load(out), sum) } else { sum });
        }
    }
}

/// Blocks that are multiplied with one part of the lanes before the next part follows: enough that its
/// sums are seldom loaded, few enough that the blocks are still at hand.
const fn run(format: Format) -> usize {
    if format.quantised() { 256 / format.inputs() } else { 32 }
}

#[inline(always)]
unsafe fn ask_for<S: Products>(at: *const u8, size: usize) {
    let mut line = 0;
    while line < size {
        // SAFETY: a prefetch may be of any address.
        unsafe { S::prefetch(at.wrapping_add(line)) };
        line += 64;
    }
}

/// Reads memory and makes as good as nothing of it: what a product would take if multiplying cost
/// nothing.
///
/// # Safety
/// [`Vector`]'s.
#[inline(always)]
pub unsafe fn read<S: Simd>(memory: &[u8]) -> u64 {
    /// Enough sums that an addition waits for memory and not for another.
    const SUMS: usize = 32;
    let mut sums = [0u64; SUMS];
    for chunk in memory.as_chunks::<{ 8 * SUMS }>().0 {
        // SAFETY: as promised.
        unsafe { ask_for::<S::Part>(chunk.as_ptr().wrapping_add(ahead(1, chunk.len())), chunk.len()) };
        for (sum, bytes) in sums.iter_mut().zip(chunk.as_chunks().0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*bytes));
        }
    }
    sums.into_iter().fold(0, u64::wrapping_add)
}

impl Tile {
    /// Four inputs of a row, from `4 * j` of the block on.
    #[inline(always)]
    unsafe fn four<const M: usize>(&self, block: usize, row: usize, j: usize) -> *const i8 {
        unsafe { self.quants.add((block * M + row) * BLOCK + 4 * j) }
    }
}

/// `start + weights * x` over a group of 4 or 5 bits, exactly.
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

/// The same of the pairs of vectors from `FROM` to `TO`.
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
        for j in FROM..TO {
            let (first, second) = pair::<S, BITS>(group, j);
            for row in 0..M {
                partial[row] = S::dot(partial[row], first, x.four::<M>(block, row, j));
                partial[row] = S::dot(partial[row], second, x.four::<M>(block, row, j + 4));
            }
        }
        for row in 0..M {
            sums[row] = S::finish(sums[row], partial[row]);
        }
        sums
    }
}

/// Vectors `j` and `j + 4` of a group of 4 or 5 bits.
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

/// The four vectors of the first or the second half of a group of 6 bits.
#[inline(always)]
unsafe fn half<S: Products, const HALF: usize>(group: *const u8) -> [S::B; 4] {
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
unsafe fn scale_add<S: Products, const M: usize>(
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

pub struct EightBits;

impl Blocks for EightBits {
    const FORMAT: Format = Format::Q8_0;
    type X = Tile;

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(block: Block, x: Tile, index: usize, sums: &mut [S::F; M]) {
        unsafe {
            let mut dots = [S::splat_int(0); M];
            for row in 0..M {
                dots[row] = S::begin8(*x.negative.add(index * M + row));
            }
            let group = block.group::<S, Self, M>(0);
            for j in 0..8 {
                let weights = S::eight(S::load_bytes(group.add(64 * j)));
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
    unsafe fn add<S: Products, const M: usize>(block: Block, x: Tile, index: usize, sums: &mut [S::F; M]) {
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

/// Q4_1 and Q5_1: weight = scale * quant + minimum.
pub struct Affine<const BITS: usize>;

impl<const BITS: usize> Blocks for Affine<BITS> {
    const FORMAT: Format = if BITS == 4 { Format::Q4_1 } else { Format::Q5_1 };
    type X = Tile;

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(block: Block, x: Tile, index: usize, sums: &mut [S::F; M]) {
        unsafe {
            let dots = dot_group::<S, BITS, M>(block.group::<S, Self, M>(0), x, index, [S::splat_int(0); M]);
            scale_add::<S, M>(dots, x, index, block.halves::<S>(0), sums);
            offset_add::<S, M>(x, index, block.halves::<S>(1), sums);
        }
    }
}

/// Q4_K and Q5_K: 8 groups of 32, weight = scale * part * quant - minimum * part's minimum.
pub struct Parted<const BITS: usize>;

impl<const BITS: usize> Blocks for Parted<BITS> {
    const FORMAT: Format = if BITS == 4 { Format::Q4K } else { Format::Q5K };
    type X = Tile;

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(block: Block, x: Tile, index: usize, sums: &mut [S::F; M]) {
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

/// The six-bit scale and minimum of a group, from twelve vectors of bytes: the first four hold scales,
/// the next four minimums, each with two high bits of a later one; the last four the lower halves of
/// the later scales and minimums.
#[inline(always)]
unsafe fn parts<S: Products>(block: Block, group: usize) -> (S::F, S::F) {
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
pub struct SixBits;

impl Blocks for SixBits {
    const FORMAT: Format = Format::Q6K;
    type X = Tile;

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(block: Block, x: Tile, index: usize, sums: &mut [S::F; M]) {
        unsafe {
            let scale = block.halves::<S>(0);
            for group in 0..8 {
                let part = |half| S::load_i8(block.bytes(2 + 2 * group + half).cast());
                let parts = [part(0), part(1)];
                let (at, index) = (block.group::<S, Self, M>(group), 8 * index + group);
                // The parts times 32, times minus the sums of what they belong to.
                let lower = S::and_int(S::shl_int(parts[0], 5), 0xffff);
                let offsets = S::or_int(lower, S::shl_int(parts[1], 5 + 16));
                let mut dots = [S::splat_int(0); M];
                let weights = half::<S, 0>(at);
                for row in 0..M {
                    dots[row] = S::dot6(dots[row], weights, x.four::<M>(index, row, 0), parts[0]);
                }
                let weights = half::<S, 1>(at);
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

/// Numbers that are no quants: every input is a block.
pub struct Plain<N>(PhantomData<N>);

/// How such are read.
pub trait Numbers {
    const FORMAT: Format;
    unsafe fn load<S: Products>(block: Block) -> S::F;
}

impl<N: Numbers> Blocks for Plain<N> {
    const FORMAT: Format = N::FORMAT;
    type X = (*const f32, usize);

    #[inline(always)]
    unsafe fn add<S: Products, const M: usize>(block: Block, x: Self::X, index: usize, sums: &mut [S::F; M]) {
        unsafe {
            block.ask_ahead::<S, Self, M>(0, 1);
            let ((x, stride), weights) = (x, N::load::<S>(block));
            for row in 0..M {
                sums[row] = S::mul_add(weights, S::splat(*x.add(row * stride + index)), sums[row]);
            }
        }
    }
}

pub struct Half;
pub struct Brain;
pub struct Single;

impl Numbers for Half {
    const FORMAT: Format = Format::F16;
    #[inline(always)]
    unsafe fn load<S: Products>(block: Block) -> S::F {
        unsafe { block.halves::<S>(0) }
    }
}

impl Numbers for Brain {
    const FORMAT: Format = Format::Bf16;
    #[inline(always)]
    unsafe fn load<S: Products>(block: Block) -> S::F {
        unsafe { S::load_bf16(block.at.cast::<u16>().add(block.lane)) }
    }
}

impl Numbers for Single {
    const FORMAT: Format = Format::F32;
    #[inline(always)]
    unsafe fn load<S: Products>(block: Block) -> S::F {
        unsafe { S::load(block.at.cast::<f32>().add(block.lane)) }
    }
}
