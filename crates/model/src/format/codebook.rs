//! Codebook formats: quants are indices into a list of values, or a number names an entry of a grid
//! of eight or four weights.
//!
//! The lists and grids are ggml's (LICENSE-ggml; `tests/goldens/formats.py` writes the grids).

use super::Format;
use super::block::{Block, spread_bits, word};

const NONLINEAR: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
/// Values of E2M1 (sign, two exponent bits, one mantissa bit), doubled.
const E2M1: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];
/// Levels of the grids, followed by their negatives.
const IQ3_XXS: [i8; 16] = [4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62];
const IQ3_S: [i8; 16] = [1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15];
const IQ2: [i8; 16] = [8, 25, 43, 0, -8, -25, -43, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// Eight times -1, 0 and 1, each plus 1/8, then each minus 1/8.
const IQ1: [i8; 16] = [-7, 1, 9, 0, -9, -1, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const Q3: [i8; 16] = [-4, -3, -2, -1, 0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0];

impl Format {
    /// Unscaled values of the quants; `None` where a quant is its own value.
    pub const fn codebook(self) -> Option<[i8; 16]> {
        Some(match self {
            Self::Iq4Nl | Self::Iq4Xs => NONLINEAR,
            Self::Mxfp4 | Self::Nvfp4 => E2M1,
            Self::Iq3Xxs => IQ3_XXS,
            Self::Iq3S => IQ3_S,
            Self::Iq2Xxs | Self::Iq2Xs | Self::Iq2S => IQ2,
            Self::Iq1S | Self::Iq1M => IQ1,
            Self::Q3K => Q3,
            _ => return None,
        })
    }

    /// Constant factor of every scale, a power of two.
    pub const fn factor(self) -> f32 {
        match self {
            Self::Iq1S | Self::Iq1M | Self::Iq2Xxs | Self::Iq2Xs | Self::Iq2S => 0.125,
            Self::Iq3Xxs => 0.25,
            _ => 1.0,
        }
    }
}

/// Grid entries of 16 bits: the level index of each weight, the first in the lowest bits.
const GRIDS: &[u8; 9216] = include_bytes!("grids.bin");

/// Start of a grid's entries, weights per entry, bits per weight.
struct Grid(usize, usize, usize);

const GRID_1: Grid = Grid(0, 8, 2);
const GRID_2_XXS: Grid = Grid(2048, 8, 2);
const GRID_2_XS: Grid = Grid(2304, 8, 2);
const GRID_2_S: Grid = Grid(2816, 8, 2);
const GRID_3_XXS: Grid = Grid(3840, 4, 3);
const GRID_3_S: Grid = Grid(4096, 4, 3);

impl Grid {
    /// Writes the indices of an entry's weights; bit i of `negative` is the sign of weight i.
    fn write(&self, entry: usize, negative: u8, quants: &mut [u8]) {
        let Self(start, count, bits) = *self;
        let levels = u64::from(u16::from_le_bytes(GRIDS.as_chunks().0[start + entry]));
        let levels = if bits == 2 { spread_twos(levels) } else { spread_threes(levels) };
        let all = levels | spread_bits(negative) << bits;
        quants[..count].copy_from_slice(&all.to_le_bytes()[..count]);
    }
}

/// Spreads eight numbers of 2 bits over eight bytes, the lowest first.
fn spread_twos(numbers: u64) -> u64 {
    let numbers = (numbers | numbers << 24) & 0x0000_00ff_0000_00ff;
    let numbers = (numbers | numbers << 12) & 0x000f_000f_000f_000f;
    (numbers | numbers << 6) & 0x0303_0303_0303_0303
}

/// Spreads four numbers of 3 bits over four bytes, the lowest first.
fn spread_threes(numbers: u64) -> u64 {
    let numbers = (numbers | numbers << 10) & 0x003f_003f;
    (numbers | numbers << 5) & 0x0707_0707
}

/// Seven sign bits and an eighth that makes the number of negative signs even.
fn even(signs: u32) -> u8 {
    let signs = signs as u8 & 127;
    signs | (signs.count_ones() as u8 & 1) << 7
}

/// Doubled scale of a scale stored as an integer plus one half.
fn odd(scale: u8) -> u8 {
    2 * scale + 1
}

/// Unpacks a block as stored in a file, in groups of 32 weights.
pub(super) fn take_apart(format: Format, bytes: &[u8], block: &mut Block) {
    if format == Format::Iq1M {
        block.halves[0] = scattered(&bytes[48..]);
    }
    for group in 0..8 {
        let quants = &mut block.quants[32 * group..][..32];
        match format {
            Format::Iq1S => block.parts[group] = iq1_s(bytes, group, quants),
            Format::Iq1M => block.parts[2 * group..][..2].copy_from_slice(&iq1_m(bytes, group, quants)),
            Format::Iq2Xxs => block.parts[group] = iq2_xxs(bytes, group, quants),
            Format::Iq2Xs => {
                iq2_xs(bytes, group, quants);
                block.parts[2 * group..][..2].copy_from_slice(&nibbles(bytes[66 + group]).map(odd));
            }
            Format::Iq2S => {
                iq2_s(bytes, group, quants);
                block.parts[2 * group..][..2].copy_from_slice(&nibbles(bytes[74 + group]).map(odd));
            }
            Format::Iq3Xxs => block.parts[group] = iq3_xxs(bytes, group, quants),
            Format::Iq3S => {
                iq3_s(bytes, group, quants);
                block.parts[group] = odd(nibbles(bytes[106 + group / 2])[group % 2]);
            }
            _ => unreachable!("a format without a grid"),
        }
    }
}

fn nibbles(byte: u8) -> [u8; 2] {
    [byte & 15, byte >> 4]
}

/// Half-precision number stored as the high 4 bits of four words.
fn scattered(words: &[u8]) -> [u8; 2] {
    [words[1] >> 4 | words[3] & 0xf0, words[5] >> 4 | words[7] & 0xf0]
}

fn iq1_s(bytes: &[u8], group: usize, quants: &mut [u8]) -> u8 {
    let high = usize::from(word(bytes, 34 + 2 * group));
    let negative = if high & 0x8000 == 0 { 0 } else { 0xff };
    for (l, quants) in quants.chunks_exact_mut(8).enumerate() {
        let entry = usize::from(bytes[2 + 4 * group + l]) | (high >> (3 * l) & 7) << 8;
        GRID_1.write(entry, negative, quants);
    }
    odd((high >> 12) as u8 & 7)
}

fn iq1_m(bytes: &[u8], group: usize, quants: &mut [u8]) -> [u8; 2] {
    let high = [0, 1].map(|half| nibbles(bytes[32 + 2 * group + half]));
    let high = high.as_flattened();
    for (l, quants) in quants.chunks_exact_mut(8).enumerate() {
        let entry = usize::from(bytes[4 * group + l]) | usize::from(high[l] & 7) << 8;
        GRID_1.write(entry, if high[l] & 8 == 0 { 0 } else { 0xff }, quants);
    }
    let scales = word(bytes, 48 + group / 2 * 2) >> (6 * (group % 2));
    [0, 3].map(|from| odd((scales >> from) as u8 & 7))
}

fn iq2_xxs(bytes: &[u8], group: usize, quants: &mut [u8]) -> u8 {
    let at = 2 + 8 * group;
    let (entries, signs) = (&bytes[at..at + 4], double_word(bytes, at + 4));
    for (l, quants) in quants.chunks_exact_mut(8).enumerate() {
        GRID_2_XXS.write(usize::from(entries[l]), even(signs >> (7 * l)), quants);
    }
    odd((signs >> 28) as u8)
}

fn iq2_xs(bytes: &[u8], group: usize, quants: &mut [u8]) {
    for (l, quants) in quants.chunks_exact_mut(8).enumerate() {
        let both = word(bytes, 2 + 2 * (4 * group + l));
        GRID_2_XS.write(usize::from(both & 511), even(u32::from(both >> 9)), quants);
    }
}

fn iq2_s(bytes: &[u8], group: usize, quants: &mut [u8]) {
    let high = usize::from(bytes[66 + group]);
    for (l, quants) in quants.chunks_exact_mut(8).enumerate() {
        let entry = usize::from(bytes[2 + 4 * group + l]) | (high >> (2 * l) & 3) << 8;
        GRID_2_S.write(entry, bytes[34 + 4 * group + l], quants);
    }
}

fn iq3_xxs(bytes: &[u8], group: usize, quants: &mut [u8]) -> u8 {
    let (entries, signs) = (&bytes[2 + 8 * group..][..8], double_word(bytes, 66 + 4 * group));
    for (l, quants) in quants.chunks_exact_mut(4).enumerate() {
        let negative = even(signs >> (7 * (l / 2))) >> (4 * (l % 2));
        GRID_3_XXS.write(usize::from(entries[l]), negative, quants);
    }
    odd((signs >> 28) as u8)
}

fn iq3_s(bytes: &[u8], group: usize, quants: &mut [u8]) {
    let high = usize::from(bytes[66 + group]);
    for (l, quants) in quants.chunks_exact_mut(4).enumerate() {
        let entry = usize::from(bytes[2 + 8 * group + l]) | (high >> l & 1) << 8;
        GRID_3_S.write(entry, bytes[74 + 4 * group + l / 2] >> (4 * (l % 2)), quants);
    }
}

fn double_word(bytes: &[u8], at: usize) -> u32 {
    u32::from(word(bytes, at)) | u32::from(word(bytes, at + 2)) << 16
}
