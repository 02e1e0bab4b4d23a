//! The product of a panel with a tile of rows, the one place where the weights are read: once for all
//! rows of the tile.
//!
//! Row invariance rests on this: whatever else is in the tile, a row's sixteen results come from the
//! same operations in the same order. Sums of byte products within a block are exact integers; what is
//! rounded is an f32 sum over the blocks of each [`run`] in their order, and these sums are added in theirs.
//! The engine for GPUs has the same order, in which runs can be shared out.

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
    pub at: *const u8,
    pub lane: usize,
    /// The end of the panel, and what will be read then.
    end: *const u8,
    next: *const u8,
}

impl Block {
    /// The scales (0) or the minimums (1), in half precision.
    #[inline(always)]
    pub unsafe fn halves<S: Products>(self, index: usize) -> S::F {
        // SAFETY: guaranteed by the caller, `index` is of this block.
        unsafe { S::load_f16(self.at.cast::<u16>().add(index * LANES + self.lane)) }
    }

    /// A byte of each row, after `offset` times as many.
    #[inline(always)]
    pub unsafe fn bytes(self, offset: usize) -> *const u8 {
        // SAFETY: guaranteed by the caller, `offset` is within this block.
        unsafe { self.at.add(offset * LANES + self.lane) }
    }

    /// The quants of group `index`. Asks for the memory that will be wanted next, group by group: all of
    /// a large block at once would be more than a processor takes note of.
    #[inline(always)]
    pub unsafe fn group<S: Products, B: Blocks, const M: usize>(self, index: usize) -> *const u8 {
        let groups = B::FORMAT.inputs() / BLOCK;
        // SAFETY: the group is within the block.
        unsafe {
            self.ask_ahead::<S, B, M>(index, groups);
            self.at.add(B::FORMAT.head() + index * B::FORMAT.group() + 4 * self.lane)
        }
    }

    /// Asks for part `index` of `parts` of a later block; who multiplies some lanes asks for their share.
    #[inline(always)]
    pub unsafe fn ask_ahead<S: Products, B: Blocks, const M: usize>(self, index: usize, parts: usize) {
        let size = B::FORMAT.panel_block() / parts;
        let from = self.at.wrapping_add(ahead(M, size) + index * size);
        let beyond = (from as usize).wrapping_sub(self.end as usize);
        let from = if from < self.end { from } else { self.next.wrapping_add(beyond) };
        // SAFETY: guaranteed by the caller to the kernels.
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
    let width = match S::Part::WIDTH {
        LANES => LANES,
        // The compiler, were it to see that there are two parts, would do both at once to save loads, and
        // run out of registers.
        part => std::hint::black_box(part),
    };
    let panel_end = product.panel.wrapping_add(product.blocks * size);
    let mut sums = [[0f32; LANES]; M];
    // SAFETY: guaranteed by the caller, here and below.
    let mut all = [unsafe { S::Part::splat(0.0) }; M];
    for first in (0..product.blocks).step_by(run(B::FORMAT)) {
        let end = product.blocks.min(first + run(B::FORMAT));
        for lane in (0..LANES).step_by(width) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let mut part = [S::Part::splat(0.0); M];
                for index in first..end {
                    let at = product.panel.add(index * size);
                    let block = Block { at, lane, end: panel_end, next: product.next };
                    B::add::<S::Part, M>(block, x, index, &mut part);
                }
                if S::Part::WIDTH == LANES {
                    // All lanes at once: their sums stay in registers.
                    for row in 0..M {
                        all[row] = S::Part::add(all[row], part[row]);
                    }
                    continue;
                }
                for row in 0..M {
                    let sum = sums[row].as_mut_ptr().add(lane);
                    S::Part::store(sum, S::Part::add(S::Part::load(sum), part[row]));
                }
            }
        }
    }
    if S::Part::WIDTH == LANES {
        for (sum, all) in sums.iter_mut().zip(all) {
            // SAFETY: guaranteed by the caller.
            unsafe { S::Part::store(sum.as_mut_ptr(), all) };
        }
    }
    for (row, sum) in sums.iter().enumerate() {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (out, sum) = (product.out.add(row * product.stride), S::load(sum.as_ptr()));
            S::store(out, if product.add { S::add(S::load(out), sum) } else { sum });
        }
    }
}

/// Blocks whose products have a sum of their own: 256 inputs, or 32 where every input is rounded. Few enough that
/// they are still at hand when another part of the lanes follows.
pub const fn run(format: Format) -> usize {
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
        // SAFETY: guaranteed by the caller.
        unsafe { ask_for::<S::Part>(chunk.as_ptr().wrapping_add(ahead(1, chunk.len())), chunk.len()) };
        for (sum, bytes) in sums.iter_mut().zip(chunk.as_chunks().0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*bytes));
        }
    }
    sums.into_iter().fold(0, u64::wrapping_add)
}
