//! Rows of activations in 8 bits, the input of kernels for quantised weights. 32 inputs share a
//! scale. Each row is quantised by itself, so its bits do not depend on the rest of the pass.

use super::buffer::Buffer;
use super::simd::{LANES, Simd};

/// Inputs that share one scale.
pub const BLOCK: usize = 32;

/// Quantised rows in tiles. A tile is at most `tile` consecutive rows; it holds block after block,
/// and within a block row after row.
#[derive(Debug, Default)]
pub struct Activations {
    tile: usize,
    rows: usize,
    blocks: usize,
    quants: Buffer<i8>,    // [tiles, blocks, rows of the tile, BLOCK]
    scales: Buffer<f32>,   // [tiles, blocks, rows of the tile], as are the others
    sums: Buffer<f32>,     // scale * sum of the quants
    negative: Buffer<i32>, // minus the sum of the quants
    halves: Buffer<i32>,   // minus the sums of the first and of the second half, 16 bits each
}

/// Position of a row: it is in the tile of `rows` rows from row `first` on.
#[derive(Debug, Clone, Copy)]
pub struct TileRow {
    pub first: usize,
    pub rows: usize,
    pub row: usize,
}

/// A tile for one kernel call, at most [`Simd::TILE`] rows.
#[derive(Debug, Clone, Copy)]
pub struct Tile {
    pub rows: usize,
    pub quants: *const i8,
    pub scales: *const f32,
    pub sums: *const f32,
    pub negative: *const i32,
    pub halves: *const i32,
}

impl Activations {
    /// Allocates `rows` of `inputs`, a multiple of [`BLOCK`], in tiles of `tile`.
    pub fn resize(&mut self, rows: usize, inputs: usize, tile: usize) {
        (self.tile, self.rows, self.blocks) = (tile, rows, inputs / BLOCK);
        let blocks = rows * self.blocks;
        self.quants.reserve(blocks * BLOCK);
        self.scales.reserve(blocks);
        self.sums.reserve(blocks);
        self.negative.reserve(blocks);
        self.halves.reserve(blocks);
    }

    /// Position of `row` where all rows are in tiles as large as possible.
    pub fn tile_row(&self, row: usize) -> TileRow {
        let first = row - row % self.tile;
        TileRow { first, rows: self.tile.min(self.rows - first), row }
    }

    /// Returns the tile of `rows` from row `first` on.
    pub fn tile(&self, first: usize, rows: usize) -> Tile {
        let at = first * self.blocks;
        Tile {
            rows,
            quants: self.quants.at(at * BLOCK),
            scales: self.scales.at(at),
            sums: self.sums.at(at),
            negative: self.negative.at(at),
            halves: self.halves.at(at),
        }
    }

    /// Index of block `block` of a row.
    fn index(&self, TileRow { first, rows, row }: TileRow, block: usize) -> usize {
        first * self.blocks + block * rows + row - first
    }

    /// Quantises `count` blocks of the row at `tile_row`, from `block` on, read from `from`.
    ///
    /// # Safety
    /// [`Simd`]'s; the row and the blocks must be within what [`Self::resize`] allocated, and
    /// nothing else may access them meanwhile.
    #[inline(always)]
    pub unsafe fn quantise<S: Simd>(&self, tile_row: TileRow, block: usize, count: usize, from: *const f32) {
        for offset in 0..count {
            // SAFETY: see above.
            unsafe {
                self.quantise_block::<S>(self.index(tile_row, block + offset), from.add(offset * BLOCK))
            }
        }
    }

    /// Stores `round(x * 127 / largest)` for each number and the scale `largest / 127`.
    #[inline(always)]
    unsafe fn quantise_block<S: Simd>(&self, index: usize, from: *const f32) {
        // 127 / largest is infinite below this.
        const SMALLEST: f32 = 1e-36;
        // SAFETY: guaranteed by the caller of `quantise`.
        unsafe {
            let (first, second) = (S::load(from), S::load(from.add(LANES)));
            let largest = S::largest(S::max(S::abs(first), S::abs(second)));
            let zero = largest < SMALLEST;
            let scale = if zero { 0.0 } else { largest / 127.0 };
            let inverse = S::splat(if zero { 0.0 } else { 127.0 / largest });
            let first = S::to_int(S::mul(first, inverse));
            let second = S::to_int(S::mul(second, inverse));
            let (lower, upper) = (S::sum_int(first), S::sum_int(second));
            S::store_i8(self.quants.at(index * BLOCK), first);
            S::store_i8(self.quants.at(index * BLOCK + LANES), second);
            self.scales.at(index).write(scale);
            // Wrapping, since NaN is converted to an arbitrary integer.
            let sum = lower.wrapping_add(upper);
            self.sums.at(index).write(scale * sum as f32);
            self.negative.at(index).write(sum.wrapping_neg());
            self.halves.at(index).write(lower.wrapping_neg() & 0xffff | upper.wrapping_neg() << 16);
        }
    }
}
