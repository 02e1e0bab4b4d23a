//! A matrix packed for the kernels: panels of sixteen output rows, so that one load brings the same
//! four inputs of all of them. The packing moves bits about and rounds nothing.
//!
//! A panel is a run of blocks, a block the file's blocks of its sixteen rows: first their scales, then
//! for every 32 inputs the quants, in planes of bits. A plane's vector holds four inputs of each row
//! (byte `4 * row + input % 4`); the inputs `4j..4j + 4` are, with `j` from 0 to 7, in
//!
//! * vector `j` of eight bits,
//! * the lower (`j < 4`) or upper half of the bytes of vector `j % 4` of four bits,
//! * bits `2 * (j / 2)` and the next of vector `j % 2` of two bits,
//! * bit `j` of the only vector of one bit.

use half::{bf16, f16};
use memmap2::MmapMut;
use rayon::prelude::*;

use super::simd::LANES;

/// How weights are stored: like the types of GGUF of the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    Q8_0,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q4K,
    Q5K,
    Q6K,
    F16,
    Bf16,
    F32,
}

impl Format {
    pub const ALL: [Self; 11] = [
        Self::Q8_0,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q4K,
        Self::Q5K,
        Self::Q6K,
        Self::F16,
        Self::Bf16,
        Self::F32,
    ];

    /// Inputs that share a block.
    pub const fn inputs(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 | Self::F32 => 1,
            Self::Q4K | Self::Q5K | Self::Q6K => 256,
            _ => 32,
        }
    }

    /// Whether the kernels take activations in eight bits.
    pub const fn quantised(self) -> bool {
        self.inputs() > 1
    }

    /// Bits of a quant, or of a number.
    pub const fn bits(self) -> usize {
        match self {
            Self::Q4_0 | Self::Q4_1 | Self::Q4K => 4,
            Self::Q5_0 | Self::Q5_1 | Self::Q5K => 5,
            Self::Q6K => 6,
            Self::Q8_0 => 8,
            Self::F16 | Self::Bf16 => 16,
            Self::F32 => 32,
        }
    }

    /// Bytes of scales before the quants of a block of one row.
    const fn scales(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 | Self::F32 => 0,
            Self::Q8_0 | Self::Q4_0 | Self::Q5_0 => 2,
            Self::Q4_1 | Self::Q5_1 => 4,
            Self::Q4K | Self::Q5K => 16,
            Self::Q6K => 18,
        }
    }

    /// Bytes of scales at the beginning of a panel's block.
    pub const fn head(self) -> usize {
        LANES * self.scales()
    }

    /// Bytes of 32 inputs of a panel, or of one where every input is a block.
    pub const fn group(self) -> usize {
        if self.quantised() { 64 * self.bits() } else { LANES * self.bits() / 8 }
    }

    /// Bytes of a row's block in the file.
    pub const fn row_block(self) -> usize {
        self.scales() + self.inputs() * self.bits() / 8
    }

    /// Bytes of a panel's block.
    pub const fn panel_block(self) -> usize {
        LANES * self.row_block()
    }
}

/// A packed matrix `[rows, inputs]`.
#[derive(Debug)]
pub struct Panels {
    format: Format,
    rows: usize,
    inputs: usize,
    panel_bytes: usize,
    data: MmapMut,
}

/// Why a matrix cannot be packed.
#[derive(Debug, PartialEq, Eq)]
pub enum Unfit {
    /// There is not exactly a whole number of blocks for each row.
    Size { expected: usize, found: usize },
    /// A scale or a number is infinite or not a number.
    NotFinite { row: usize },
    /// The system has no memory to give.
    Memory { bytes: usize },
}

/// Memory in pages of this size, where the system has such, is found with fewer table look-ups.
const HUGE_PAGE: usize = 1 << 21;

impl Panels {
    /// From the bytes of a file, row after row. Rows that fill up the last panel are zero.
    ///
    /// # Errors
    /// See [`Unfit`].
    pub fn pack(format: Format, rows: usize, inputs: usize, bytes: &[u8]) -> Result<Self, Unfit> {
        let row_bytes = inputs / format.inputs() * format.row_block();
        if !inputs.is_multiple_of(format.inputs()) || bytes.len() != rows * row_bytes || bytes.is_empty() {
            return Err(Unfit::Size { expected: rows * row_bytes, found: bytes.len() });
        }
        let panel_bytes = inputs / format.inputs() * format.panel_block();
        let mut data = allocate(rows.div_ceil(LANES) * panel_bytes)?;
        let panels = data.par_chunks_mut(panel_bytes).zip(bytes.par_chunks(LANES * row_bytes));
        panels.enumerate().try_for_each(|(panel, (out, rows))| {
            let rows: Vec<&[u8]> = rows.chunks(row_bytes).collect();
            let unfit = rows.iter().position(|row| !finite(format, row));
            pack_panel(format, &rows, out);
            unfit.map_or(Ok(()), |lane| Err(Unfit::NotFinite { row: panel * LANES + lane }))
        })?;
        Ok(Self { format, rows, inputs, panel_bytes, data })
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// Output rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Panels of [`LANES`] rows.
    pub fn panels(&self) -> usize {
        self.rows.div_ceil(LANES)
    }

    pub fn bytes(&self) -> usize {
        self.data.len()
    }

    pub fn panel(&self, index: usize) -> &[u8] {
        &self.data[index * self.panel_bytes..][..self.panel_bytes]
    }

    /// `count` panels from number `first` on.
    pub fn run(&self, first: usize, count: usize) -> &[u8] {
        &self.data[first * self.panel_bytes..][..count * self.panel_bytes]
    }

    /// The weights of one row, `[inputs]`.
    pub fn unpack_row(&self, row: usize, out: &mut [f32]) {
        let (panel, lane) = (self.panel(row / LANES), row % LANES);
        let blocks = panel.chunks_exact(self.format.panel_block());
        for (block, out) in blocks.zip(out.chunks_mut(self.format.inputs())) {
            unpack_block(self.format, block, lane, out);
        }
    }
}

fn allocate(bytes: usize) -> Result<MmapMut, Unfit> {
    let data = MmapMut::map_anon(bytes).map_err(|_| Unfit::Memory { bytes })?;
    #[cfg(target_os = "linux")]
    if bytes >= HUGE_PAGE {
        // A wish: where it is not granted, everything is just a little slower.
        let _ = data.advise(memmap2::Advice::HugePage);
    }
    Ok(data)
}

/// Whether all numbers of a row, or the scales of all its blocks, are finite.
fn finite(format: Format, row: &[u8]) -> bool {
    let half = |bytes: &[u8]| u16::from_le_bytes([bytes[0], bytes[1]]) & 0x7c00 != 0x7c00;
    match format {
        Format::F32 => row.as_chunks().0.iter().all(|&bytes| f32::from_le_bytes(bytes).is_finite()),
        Format::F16 => row.chunks_exact(2).all(half),
        Format::Bf16 => row.as_chunks().0.iter().all(|&bytes| u16::from_le_bytes(bytes) & 0x7f80 != 0x7f80),
        Format::Q8_0 | Format::Q4_0 | Format::Q5_0 => row.chunks_exact(format.row_block()).all(half),
        Format::Q6K => row.chunks_exact(format.row_block()).all(|block| half(&block[208..])),
        Format::Q4_1 | Format::Q5_1 | Format::Q4K | Format::Q5K => {
            row.chunks_exact(format.row_block()).all(|block| half(block) && half(&block[2..]))
        }
    }
}

/// A block of one row as it is in the file, taken apart.
struct RowBlock {
    /// Two bytes each: the scale, and the minimum where there is one.
    halves: [[u8; 2]; 2],
    /// Scales of parts of the block.
    parts: [u8; 16],
    quants: [u8; 256],
}

fn pack_panel(format: Format, rows: &[&[u8]], out: &mut [u8]) {
    if !format.quantised() {
        let size = format.panel_block() / LANES;
        for (input, out) in out.chunks_exact_mut(LANES * size).enumerate() {
            for (lane, row) in rows.iter().enumerate() {
                out[lane * size..][..size].copy_from_slice(&row[input * size..][..size]);
            }
        }
        return;
    }
    let mut taken = RowBlock { halves: [[0; 2]; 2], parts: [0; 16], quants: [0; 256] };
    for (index, out) in out.chunks_exact_mut(format.panel_block()).enumerate() {
        let (head, groups) = out.split_at_mut(format.head());
        for (lane, row) in rows.iter().enumerate() {
            take_apart(format, &row[index * format.row_block()..][..format.row_block()], &mut taken);
            pack_scales(format, &taken, lane, head);
            let groups = groups.chunks_exact_mut(format.group());
            for (quants, group) in taken.quants.as_chunks().0.iter().zip(groups) {
                pack_group(format, quants, lane, group);
            }
        }
    }
}

fn take_apart(format: Format, block: &[u8], out: &mut RowBlock) {
    let half = |at: usize| [block[at], block[at + 1]];
    let scales = format.scales();
    let quants = &mut out.quants;
    match format {
        Format::Q8_0 => {
            out.halves[0] = half(0);
            // Kept as weight + 128, which is never negative.
            quants.iter_mut().zip(&block[scales..]).for_each(|(quant, byte)| *quant = byte ^ 0x80);
        }
        Format::Q4_0 | Format::Q4_1 | Format::Q5_0 | Format::Q5_1 => {
            out.halves = [half(0), if scales == 4 { half(2) } else { [0; 2] }];
            let (high, low) = block[scales..].split_at(if format.bits() == 5 { 4 } else { 0 });
            let high = high.iter().rev().fold(0u32, |high, &byte| high << 8 | u32::from(byte));
            for (i, byte) in low.iter().enumerate() {
                quants[i] = byte & 15 | ((high >> i & 1) as u8 * 16);
                quants[i + 16] = (byte >> 4) | ((high >> (i + 16) & 1) as u8 * 16);
            }
        }
        Format::Q4K | Format::Q5K => {
            out.halves = [half(0), half(2)];
            out.parts[..12].copy_from_slice(&block[4..16]);
            let (high, low) = block[scales..].split_at(if format.bits() == 5 { 32 } else { 0 });
            for (chunk, (low, quants)) in low.chunks_exact(32).zip(quants.chunks_exact_mut(64)).enumerate() {
                for i in 0..32 {
                    let high = high.get(i).map_or(0, |high| high >> (2 * chunk));
                    quants[i] = low[i] & 15 | ((high & 1) * 16);
                    quants[i + 32] = (low[i] >> 4) | ((high >> 1 & 1) * 16);
                }
            }
        }
        Format::Q6K => {
            out.halves[0] = half(208);
            out.parts.copy_from_slice(&block[192..208]);
            for (part, quants) in quants.chunks_exact_mut(128).enumerate() {
                let (low, high) = (&block[64 * part..][..64], &block[128 + 32 * part..][..32]);
                for i in 0..32 {
                    quants[i] = low[i] & 15 | (high[i] & 3) << 4;
                    quants[i + 32] = low[i + 32] & 15 | (high[i] >> 2 & 3) << 4;
                    quants[i + 64] = low[i] >> 4 | (high[i] >> 4 & 3) << 4;
                    quants[i + 96] = low[i + 32] >> 4 | (high[i] >> 6) << 4;
                }
            }
        }
        Format::F16 | Format::Bf16 | Format::F32 => unreachable!("such weights have no scales"),
    }
}

/// The halves of all rows, then the first parts of all rows, the second, and so on.
fn pack_scales(format: Format, block: &RowBlock, lane: usize, head: &mut [u8]) {
    let halves = if matches!(format.scales(), 4 | 16) { 2 } else { 1 };
    for (index, half) in block.halves[..halves].iter().enumerate() {
        head[index * 2 * LANES + 2 * lane..][..2].copy_from_slice(half);
    }
    for (parts, part) in head[halves * 2 * LANES..].chunks_exact_mut(LANES).zip(block.parts) {
        parts[lane] = part;
    }
}

fn pack_group(format: Format, quants: &[u8; 32], lane: usize, group: &mut [u8]) {
    let fours = quants.as_chunks::<4>().0;
    for input in 0..4 {
        let byte = 4 * lane + input;
        if format.bits() == 8 {
            (0..8).for_each(|j| group[64 * j + byte] = fours[j][input]);
            continue;
        }
        for j in 0..4 {
            group[64 * j + byte] = fours[j][input] & 15 | fours[j + 4][input] << 4;
        }
        let high = |j: usize| fours[j][input] >> 4;
        if format.bits() == 5 {
            group[256 + byte] = (0..8).fold(0, |bits, j| bits | high(j) << j);
        }
        if format.bits() == 6 {
            for vector in 0..2 {
                let bits = (0..4).fold(0, |bits, field| bits | high(vector + 2 * field) << (2 * field));
                group[256 + 64 * vector + byte] = bits;
            }
        }
    }
}

/// The quant of one input of a group.
fn quant(format: Format, group: &[u8], lane: usize, input: usize) -> u8 {
    let (j, byte) = (input / 4, 4 * lane + input % 4);
    if format.bits() == 8 {
        return group[64 * j + byte];
    }
    let low = group[64 * (j % 4) + byte] >> (4 * (j / 4)) & 15;
    match format.bits() {
        5 => low | (group[256 + byte] >> j & 1) << 4,
        6 => low | (group[256 + 64 * (j % 2) + byte] >> (2 * (j / 2)) & 3) << 4,
        _ => low,
    }
}

/// The factor and the offset of the 16 inputs from `16 * part` on: weight = factor * quant + offset.
fn affine(format: Format, head: &[u8], lane: usize, part: usize) -> (f32, f32) {
    let half = |index: usize| {
        let at = index * 2 * LANES + 2 * lane;
        f16::from_le_bytes([head[at], head[at + 1]]).to_f32()
    };
    let parts = |index: usize| head[4 * LANES + index * LANES + lane];
    match format {
        Format::Q8_0 => (half(0), -128.0 * half(0)),
        Format::Q4_0 => (half(0), -8.0 * half(0)),
        Format::Q5_0 => (half(0), -16.0 * half(0)),
        Format::Q4_1 | Format::Q5_1 => (half(0), half(1)),
        Format::Q4K | Format::Q5K => {
            let group = part / 2;
            let (scale, minimum) = if group < 4 {
                (parts(group) & 63, parts(group + 4) & 63)
            } else {
                let (high, low) = (parts(group + 4), (parts(group - 4), parts(group)));
                (high & 15 | low.0 >> 6 << 4, high >> 4 | low.1 >> 6 << 4)
            };
            (half(0) * f32::from(scale), -half(1) * f32::from(minimum))
        }
        Format::Q6K => {
            let factor = half(0) * f32::from(head[2 * LANES + part * LANES + lane] as i8);
            (factor, -32.0 * factor)
        }
        Format::F16 | Format::Bf16 | Format::F32 => unreachable!("such weights have no scales"),
    }
}

fn unpack_block(format: Format, block: &[u8], lane: usize, out: &mut [f32]) {
    match format {
        Format::F32 => out[0] = f32::from_le_bytes(block.as_chunks().0[lane]),
        Format::F16 => out[0] = f16::from_le_bytes(block.as_chunks().0[lane]).to_f32(),
        Format::Bf16 => out[0] = bf16::from_le_bytes(block.as_chunks().0[lane]).to_f32(),
        _ => {
            let (head, groups) = block.split_at(format.head());
            for (part, out) in out.chunks_mut(16).enumerate() {
                let group = &groups[part / 2 * format.group()..][..format.group()];
                let (factor, offset) = affine(format, head, lane, part);
                for (i, out) in out.iter_mut().enumerate() {
                    let quant = quant(format, group, lane, part % 2 * 16 + i);
                    *out = factor.mul_add(f32::from(quant), offset);
                }
            }
        }
    }
}
