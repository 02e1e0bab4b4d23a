//! Product of a panel with a tile of rows, where weights are read once for all rows of the tile.
//!
//! Row invariance rests on this file: a row's sixteen results come from the same operations in the
//! same order, whatever else is in the tile. Products of bytes within a block are summed exactly as
//! integers. Blocks are summed in f32 over each run ([`blocks_per_run`]) in order, and then the
//! runs' sums in order. The GPU engine keeps this order; runs can be computed in parallel.

use super::activations::{BLOCK, Tile};
use super::panels::{Format, PanelLayout};
use super::simd::{LANES, Products, Simd, Vector};

/// Arguments of a kernel: `out[row] = panel * x[row]`, sixteen numbers for each row of the tile.
#[derive(Debug, Clone, Copy)]
pub struct Product {
    pub panel: *const u8,
    /// Blocks of the panel: of 32 to 256 inputs, or single inputs.
    pub blocks: usize,
    /// Address that will be read after the panel, for prefetching. Any address is allowed.
    pub next: *const u8,
    pub x: Rows,
    pub out: *mut f32,
    /// Distance from one row of `out` to the next.
    pub stride: usize,
    /// Multiplies the sums before they are stored or added.
    pub factor: f32,
    /// Adds to `out` instead of overwriting it.
    pub add: bool,
}

/// Input rows, in the form that the weights take.
#[derive(Debug, Clone, Copy)]
pub enum Rows {
    Quantised(Tile),
    Plain { rows: usize, x: *const f32, stride: usize },
}

/// Form of input rows that a kernel takes.
pub trait RowForm: Copy {
    fn of(rows: &Rows) -> Self;
}

impl RowForm for Tile {
    #[inline(always)]
    fn of(rows: &Rows) -> Self {
        match *rows {
            Rows::Quantised(tile) => tile,
            Rows::Plain { .. } => unreachable!("quantised weights, plain activations"),
        }
    }
}

/// Pointer to the first number, and the distance between rows.
impl RowForm for (*const f32, usize) {
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

/// Prefetch distance in bytes for products with so many rows: whole parts of `part` bytes.
/// Measured, see docs/benchmarks/2026-11.md.
const fn prefetch_distance(rows: usize, part: usize) -> usize {
    let bytes: usize = if rows < 4 { 4096 } else { 8192 };
    bytes.next_multiple_of(part)
}

/// A block of a panel, of which the rows from `lane` on are multiplied.
#[derive(Debug, Clone, Copy)]
pub struct PanelBlock {
    pub at: *const u8,
    pub lane: usize,
    /// End of the panel, where prefetching continues at `next`.
    end: *const u8,
    next: *const u8,
}

impl PanelBlock {
    /// Loads scales (0) or minimums (1), in half precision.
    #[inline(always)]
    pub unsafe fn halves<S: Products>(self, index: usize) -> S::F {
        // SAFETY: guaranteed by the caller, `index` is of this block.
        unsafe { S::load_f16(self.at.cast::<u16>().add(index * LANES + self.lane)) }
    }

    /// Address of one byte of each row, in byte vector `offset`.
    #[inline(always)]
    pub unsafe fn bytes(self, offset: usize) -> *const u8 {
        // SAFETY: guaranteed by the caller, `offset` is within this block.
        unsafe { self.at.add(offset * LANES + self.lane) }
    }

    /// Address of the quants of group `index`. Prefetches group by group, since a whole large block
    /// would exceed the processor's outstanding loads.
    #[inline(always)]
    pub unsafe fn group<S: Products, B: Blocks, const M: usize>(self, index: usize) -> *const u8 {
        let groups = B::FORMAT.inputs() / BLOCK;
        // SAFETY: the group is within the block.
        unsafe {
            self.prefetch_ahead::<S, B, M>(index, groups);
            self.at.add(B::FORMAT.head() + index * B::FORMAT.group() + 4 * self.lane)
        }
    }

    /// Prefetches part `index` of `parts` of a later block; a kernel for some lanes prefetches
    /// their share.
    #[inline(always)]
    pub unsafe fn prefetch_ahead<S: Products, B: Blocks, const M: usize>(self, index: usize, parts: usize) {
        let size = B::FORMAT.panel_block() / parts;
        let from = self.at.wrapping_add(prefetch_distance(M, size) + index * size);
        let past_end = (from as usize).wrapping_sub(self.end as usize);
        let from = if from < self.end { from } else { self.next.wrapping_add(past_end) };
        // SAFETY: guaranteed by the caller to the kernels.
        unsafe { prefetch_range::<S>(from.wrapping_add(size / LANES * self.lane), size / LANES * S::WIDTH) };
    }
}

/// Kernel for the blocks of one format.
pub trait Blocks {
    const FORMAT: Format;
    type X: RowForm;
    /// Adds the products of block number `index`.
    unsafe fn add<S: Products, const M: usize>(
        block: PanelBlock,
        x: Self::X,
        index: usize,
        sums: &mut [S::F; M],
    );
}

/// Multiplies a panel with a tile of `M` rows.
///
/// # Safety
/// [`Vector`]'s; the pointers must be valid for the shapes of their fields, and the tile must have
/// `M` rows.
#[inline(always)]
pub unsafe fn multiply<S: Simd, B: Blocks, const M: usize>(product: &Product) {
    let x = B::X::of(&product.x);
    let size = B::FORMAT.panel_block();
    let width = match S::Part::WIDTH {
        LANES => LANES,
        // Hides from the compiler that there are two parts. It would compute both at once to save
        // loads, and spill registers.
        part => std::hint::black_box(part),
    };
    let panel_end = product.panel.wrapping_add(product.blocks * size);
    let mut sums = [[0f32; LANES]; M];
    // SAFETY: guaranteed by the caller, here and below.
    let mut all = [unsafe { S::Part::splat(0.0) }; M];
    for first in (0..product.blocks).step_by(blocks_per_run(B::FORMAT)) {
        let end = product.blocks.min(first + blocks_per_run(B::FORMAT));
        for lane in (0..LANES).step_by(width) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let mut part = [S::Part::splat(0.0); M];
                for index in first..end {
                    let at = product.panel.add(index * size);
                    let block = PanelBlock { at, lane, end: panel_end, next: product.next };
                    B::add::<S::Part, M>(block, x, index, &mut part);
                }
                if S::Part::WIDTH == LANES {
                    // With all lanes at once the sums stay in registers.
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
            let out = product.out.add(row * product.stride);
            let sum = S::mul(S::load(sum.as_ptr()), S::splat(product.factor));
            S::store(out, if product.add { S::add(S::load(out), sum) } else { sum });
        }
    }
}

/// Blocks with a sum of their own: 256 inputs, or 32 in formats where every input is rounded. Few
/// enough to stay in the cache for the other part of the lanes.
pub const fn blocks_per_run(format: Format) -> usize {
    if format.quantised() { 256 / format.inputs() } else { 32 }
}

#[inline(always)]
unsafe fn prefetch_range<S: Products>(at: *const u8, size: usize) {
    let mut line = 0;
    while line < size {
        // SAFETY: a prefetch may be of any address.
        unsafe { S::prefetch(at.wrapping_add(line)) };
        line += 64;
    }
}

/// Reads memory at the speed of a product whose arithmetic is free.
///
/// # Safety
/// [`Vector`]'s.
#[inline(always)]
pub unsafe fn read<S: Simd>(memory: &[u8]) -> u64 {
    /// Enough independent sums to wait for memory instead of additions.
    const SUMS: usize = 32;
    let mut sums = [0u64; SUMS];
    for chunk in memory.as_chunks::<{ 8 * SUMS }>().0 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            prefetch_range::<S::Part>(
                chunk.as_ptr().wrapping_add(prefetch_distance(1, chunk.len())),
                chunk.len(),
            )
        };
        for (sum, bytes) in sums.iter_mut().zip(chunk.as_chunks().0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*bytes));
        }
    }
    sums.into_iter().fold(0, u64::wrapping_add)
}
