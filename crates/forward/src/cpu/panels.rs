//! A matrix packed for the kernels: panels of sixteen output rows, so that one load reads the same
//! four inputs of all of them. Packing reorders bits and does not round.
//!
//! A panel is a sequence of blocks. A block holds the file's blocks of its sixteen rows: first
//! their scales, then the quants of every 32 inputs in bit planes. A plane's vector holds four
//! inputs of each row (byte `4 * row + input % 4`). The inputs `4j..4j + 4`, with `j` from 0 to 7,
//! are in
//!
//! * vector `j` of eight bits,
//! * the lower (`j < 4`) or upper half of the bytes of vector `j % 4` of four bits,
//! * bits `2 * (j / 2)` and the next of vector `j % 2` of two bits,
//! * bit `j` of the only vector of one bit.

use std::ops::Range;

use foretoken_model::format::Block;
pub use foretoken_model::format::Format;
use half::{bf16, f16};
use memmap2::MmapMut;
use rayon::prelude::*;

use super::simd::LANES;

/// Sizes of a format's panels, in bytes.
pub trait PanelLayout {
    /// Bytes of scales at the start of a panel's block.
    fn head(self) -> usize;

    /// Bytes of 32 inputs of a panel, or of one input in formats without quants.
    fn group(self) -> usize;

    /// Bytes of a panel's block.
    fn panel_block(self) -> usize;
}

impl PanelLayout for Format {
    #[inline(always)]
    fn head(self) -> usize {
        LANES * self.scales()
    }

    #[inline(always)]
    fn group(self) -> usize {
        if self.quantised() { 64 * self.bits() } else { LANES * self.bits() / 8 }
    }

    #[inline(always)]
    fn panel_block(self) -> usize {
        LANES * self.packed()
    }
}

/// A packed matrix `[rows, inputs]`.
#[derive(Debug)]
pub struct Panels {
    format: Format,
    rows: usize,
    inputs: usize,
    panel_bytes: usize,
    /// Multiplies the sums of every product; 1 in most files.
    factor: f32,
    data: MmapMut,
}

/// Reason why a matrix cannot be packed.
#[derive(Debug, PartialEq, Eq)]
pub enum PackError {
    /// The bytes are not a whole number of blocks for each row.
    Size { expected: usize, found: usize },
    /// A scale or a number is infinite or not a number.
    NotFinite { row: usize },
    /// The system could not allocate so many bytes.
    Memory { bytes: usize },
}

/// Bytes of a file that a thread reads and packs at a time; they stay in its cache.
const SLICE: usize = 256 << 10;

/// Packs the bytes of some rows, see [`Panels::pack_slices`].
pub type PackRows<'a> = dyn FnMut(&[u8]) -> Result<(), PackError> + 'a;

impl Panels {
    /// Packs the bytes of a file, row after row. The last panel is padded with rows of zeros.
    ///
    /// # Errors
    /// See [`PackError`].
    pub fn pack(format: Format, rows: usize, inputs: usize, bytes: &[u8]) -> Result<Self, PackError> {
        let row_bytes = row_bytes(format, inputs);
        if bytes.len() != rows * row_bytes {
            return Err(PackError::Size { expected: rows * row_bytes, found: bytes.len() });
        }
        let read = |rows: Range<usize>, pack: &mut PackRows<'_>| {
            pack(&bytes[rows.start * row_bytes..rows.end * row_bytes])
        };
        Self::pack_slices(format, rows, inputs, read)
    }

    /// Packs a matrix in slices of some rows. `read` reads the given rows and passes their bytes to
    /// the other argument. All threads take slices in order: while some read, others pack.
    ///
    /// # Errors
    /// See [`PackError`], and errors of `read`.
    pub fn pack_slices<E: From<PackError> + Send>(
        format: Format,
        rows: usize,
        inputs: usize,
        read: impl Fn(Range<usize>, &mut PackRows<'_>) -> Result<(), E> + Sync,
    ) -> Result<Self, E> {
        let row_bytes = row_bytes(format, inputs);
        if !inputs.is_multiple_of(format.inputs()) || rows * row_bytes == 0 {
            return Err(PackError::Size { expected: rows * row_bytes, found: 0 }.into());
        }
        let panel_bytes = inputs / format.inputs() * format.panel_block();
        let panels = rows.div_ceil(LANES);
        let mut data = allocate(panels * panel_bytes)?;
        let share = panels.div_ceil(rayon::current_num_threads());
        let slice = (SLICE / (LANES * row_bytes)).min(share).max(1);
        let slices = data.chunks_mut(slice * panel_bytes).enumerate().par_bridge();
        slices.try_for_each(|(index, out)| {
            let first = index * slice * LANES;
            let rows = first..rows.min(first + slice * LANES);
            let expected = rows.len() * row_bytes;
            read(rows, &mut |bytes| {
                if bytes.len() != expected {
                    return Err(PackError::Size { expected, found: bytes.len() });
                }
                let panels = out.chunks_mut(panel_bytes).zip(bytes.chunks(LANES * row_bytes));
                panels.enumerate().try_for_each(|(panel, (out, rows))| {
                    let rows: Vec<&[u8]> = rows.chunks(row_bytes).collect();
                    let invalid = pack_panel(format, &rows, out);
                    invalid.map_or(Ok(()), |lane| {
                        Err(PackError::NotFinite { row: first + panel * LANES + lane })
                    })
                })
            })
        })?;
        Ok(Self { format, rows, inputs, panel_bytes, factor: 1.0, data })
    }

    /// Multiplies all weights by `factor`.
    pub fn scaled(self, factor: f32) -> Self {
        Self { factor: self.factor * factor, ..self }
    }

    /// Returns the number by which products with [`Self::panel`] are multiplied.
    pub fn factor(&self) -> f32 {
        self.factor
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// Number of output rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Number of panels of [`LANES`] rows.
    pub fn panels(&self) -> usize {
        self.rows.div_ceil(LANES)
    }

    pub fn bytes(&self) -> usize {
        self.data.len()
    }

    pub fn panel(&self, index: usize) -> &[u8] {
        &self.data[index * self.panel_bytes..][..self.panel_bytes]
    }

    /// Unpacks the weights of one row, `[inputs]`.
    pub fn unpack_row(&self, row: usize, out: &mut [f32]) {
        let (panel, lane, format) = (self.panel(row / LANES), row % LANES, self.format);
        let blocks = panel.chunks_exact(format.panel_block()).zip(out.chunks_mut(format.inputs()));
        if !format.quantised() {
            return blocks.for_each(|(block, out)| out[0] = number(format, block, lane));
        }
        let mut block_of_row = Block::default();
        for (block, out) in blocks {
            unpack_block(format, block, lane, &mut block_of_row);
            block_of_row.weights(format, out);
            if self.factor != 1.0 {
                out.iter_mut().for_each(|weight| *weight *= self.factor);
            }
        }
    }
}

/// Bytes of a row in a file.
fn row_bytes(format: Format, inputs: usize) -> usize {
    inputs / format.inputs() * format.stored()
}

fn allocate(bytes: usize) -> Result<MmapMut, PackError> {
    let data = MmapMut::map_anon(bytes).map_err(|_| PackError::Memory { bytes })?;
    #[cfg(target_os = "linux")]
    advise_huge_pages(&data);
    Ok(data)
}

/// Asks for huge pages, which need fewer page table look-ups. A refusal only costs speed.
#[cfg(target_os = "linux")]
fn advise_huge_pages(data: &MmapMut) {
    const HUGE_PAGE: usize = 1 << 21;
    if data.len() >= HUGE_PAGE {
        let _ = data.advise(memmap2::Advice::HugePage);
    }
}

/// Reads the number of row `lane` in a vector of sixteen rows.
fn number(format: Format, numbers: &[u8], lane: usize) -> f32 {
    match format {
        Format::F32 => f32::from_le_bytes(numbers.as_chunks().0[lane]),
        Format::F16 => f16::from_le_bytes(numbers.as_chunks().0[lane]).to_f32(),
        _ => bf16::from_le_bytes(numbers.as_chunks().0[lane]).to_f32(),
    }
}

/// Packs a panel. Returns the first row with a number or a scale that is not finite.
fn pack_panel(format: Format, rows: &[&[u8]], out: &mut [u8]) -> Option<usize> {
    /// Compiles a copy for each of the common formats, which need not be asked for in every block.
    macro_rules! pack_blocks {
        ($($common:ident)+) => {
            match (format, format.bits()) {
                $((Format::$common, _) => {
                    pack_blocks::<{ Format::$common.bits() }>(Format::$common, rows, out)
                })+
                (_, 1) => pack_blocks::<1>(format, rows, out),
                (_, 2) => pack_blocks::<2>(format, rows, out),
                (_, 3) => pack_blocks::<3>(format, rows, out),
                _ => pack_blocks::<4>(format, rows, out),
            }
        };
    }
    match format {
        Format::F32 => pack_numbers::<4>(format, rows, out),
        Format::F16 | Format::Bf16 => pack_numbers::<2>(format, rows, out),
        _ => pack_blocks!(Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q4K Q5K Q6K Iq4Nl Mxfp4),
    }
}

/// Packs a panel of numbers of `SIZE` bytes.
fn pack_numbers<const SIZE: usize>(format: Format, rows: &[&[u8]], out: &mut [u8]) -> Option<usize> {
    /// Inputs that are read of a row before those of the next.
    const INPUTS: usize = 32;
    let out = out.as_chunks_mut::<SIZE>().0.as_chunks_mut::<LANES>().0;
    for (index, out) in out.chunks_mut(INPUTS).enumerate() {
        for (lane, row) in rows.iter().enumerate() {
            let numbers = &row.as_chunks::<SIZE>().0[index * INPUTS..];
            out.iter_mut().zip(numbers).for_each(|(out, number)| out[lane % LANES] = *number);
        }
    }
    rows.iter().position(|row| !finite(format, row))
}

/// Returns whether all numbers of a row are finite. Has no early return, so that it is vectorised.
fn finite(format: Format, row: &[u8]) -> bool {
    let halves = |exponent: u16| {
        let infinite = |half: &[u8; 2]| u16::from_le_bytes(*half) & exponent == exponent;
        row.as_chunks().0.iter().fold(false, |any, half| any | infinite(half))
    };
    !match format {
        Format::F32 => {
            const EXPONENT: u32 = 0x7f80_0000;
            let infinite = |number: &[u8; 4]| u32::from_le_bytes(*number) & EXPONENT == EXPONENT;
            row.as_chunks().0.iter().fold(false, |any, number| any | infinite(number))
        }
        Format::F16 => halves(0x7c00),
        _ => halves(0x7f80),
    }
}

/// Packs a panel of blocks with quants of `BITS` bits.
#[inline(always)]
fn pack_blocks<const BITS: usize>(format: Format, rows: &[&[u8]], out: &mut [u8]) -> Option<usize> {
    let mut block_of_row = Block::default();
    let mut invalid = None;
    for (index, out) in out.chunks_exact_mut(format.panel_block()).enumerate() {
        let (head, groups) = out.split_at_mut(format.head());
        for (lane, row) in rows.iter().enumerate() {
            block_of_row.take_apart(format, &row[index * format.stored()..][..format.stored()]);
            if !block_of_row.finite(format) {
                invalid = Some(invalid.unwrap_or(lane).min(lane));
            }
            pack_scales(format, &block_of_row, lane, head);
            let groups = groups.chunks_exact_mut(64 * BITS);
            for (quants, group) in block_of_row.quants.as_chunks().0.iter().zip(groups) {
                pack_group::<BITS>(quants, lane, group);
            }
        }
    }
    invalid
}

/// Packs the scales of a row: the halves of all rows come first, then the first parts of all rows,
/// the second, and so on.
#[inline(always)]
fn pack_scales(format: Format, block: &Block, lane: usize, head: &mut [u8]) {
    let (halves, parts) = head.split_at_mut(2 * LANES * format.halves());
    for (halves, half) in halves.chunks_exact_mut(2 * LANES).zip(block.halves) {
        halves[2 * lane..][..2].copy_from_slice(&half);
    }
    for (parts, part) in parts.chunks_exact_mut(LANES).zip(block.parts) {
        parts[lane] = part;
    }
}

/// Packs 32 quants of a row, four at a time: a word holds four bytes of a vector.
#[inline(always)]
fn pack_group<const BITS: usize>(quants: &[u8; 32], lane: usize, group: &mut [u8]) {
    let quants = quants.as_chunks::<4>().0;
    let words: [u32; 8] = std::array::from_fn(|j| u32::from_le_bytes(quants[j]));
    // Lengths that the compiler knows, so that it checks no index.
    let (group, lane) = (&mut group[..64 * BITS], lane % LANES);
    let mut store = |at: usize, word: u32| group[at + 4 * lane..][..4].copy_from_slice(&word.to_le_bytes());
    let (four, two, one) = const { planes(BITS) };
    if BITS == 8 {
        (0..8).for_each(|j| store(64 * j, words[j]));
    }
    if let Some((at, _)) = four {
        for j in 0..4 {
            store(at + 64 * j, words[j] & 0x0f0f_0f0f | (words[j + 4] & 0x0f0f_0f0f) << 4);
        }
    }
    if let Some((at, from)) = two {
        for vector in 0..2 {
            let two = |field: usize| (words[vector + 2 * field] >> from & 0x0303_0303) << (2 * field);
            store(at + 64 * vector, two(0) | two(1) | two(2) | two(3));
        }
    }
    if let Some((at, from)) = one {
        store(at, (0..8).fold(0, |bits, j| bits | (words[j] >> from & 0x0101_0101) << j));
    }
}

/// A bit plane of a group: its offset, and the lowest bit of the quants that it holds.
type Plane = Option<(usize, usize)>;

/// Planes of four bits, two bits and one bit that make up quants of `bits` bits. Quants of eight
/// bits have none.
const fn planes(bits: usize) -> (Plane, Plane, Plane) {
    match bits {
        1 => (None, None, Some((0, 0))),
        2 => (None, Some((0, 0)), None),
        3 => (None, Some((0, 0)), Some((128, 2))),
        4 => (Some((0, 0)), None, None),
        5 => (Some((0, 0)), None, Some((256, 4))),
        6 => (Some((0, 0)), Some((256, 4)), None),
        _ => (None, None, None),
    }
}

/// Reads the quant of one input of a group.
fn quant(format: Format, group: &[u8], lane: usize, input: usize) -> u8 {
    let (j, byte) = (input / 4, 4 * lane + input % 4);
    if format.bits() == 8 {
        return group[64 * j + byte];
    }
    let (four, two, one) = planes(format.bits());
    let four = four.map_or(0, |(at, _)| group[at + 64 * (j % 4) + byte] >> (4 * (j / 4)) & 15);
    let two = two.map_or(0, |(at, from)| (group[at + 64 * (j % 2) + byte] >> (2 * (j / 2)) & 3) << from);
    let one = one.map_or(0, |(at, from)| (group[at + byte] >> j & 1) << from);
    four | two | one
}

/// Unpacks one row of a panel's block.
fn unpack_block(format: Format, block: &[u8], lane: usize, out: &mut Block) {
    let (head, groups) = block.split_at(format.head());
    let (halves, parts) = head.split_at(2 * LANES * format.halves());
    for (half, halves) in out.halves.iter_mut().zip(halves.chunks_exact(2 * LANES)) {
        half.copy_from_slice(&halves[2 * lane..][..2]);
    }
    for (part, parts) in out.parts.iter_mut().zip(parts.chunks_exact(LANES)) {
        *part = parts[lane];
    }
    for (quants, group) in out.quants.chunks_exact_mut(32).zip(groups.chunks_exact(format.group())) {
        for (input, out) in quants.iter_mut().enumerate() {
            *out = quant(format, group, lane, input);
        }
    }
}
