//! Tensors whose rows are not contiguous in their file, and their assembly. Reads no file.

use std::ops::Range;

use crate::format::Format;

/// Weights per block of MXFP4.
pub const BLOCK: usize = 32;
/// Bytes of a block's 4-bit values.
pub const NIBBLES: usize = BLOCK / 2;

/// Selection of a tensor's rows from a range of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathered {
    /// Index of the first row.
    pub first: usize,
    /// Number of consecutive rows in each run, and the distance between the starts of runs.
    pub run: usize,
    pub step: usize,
    pub lie: Lie,
}

/// Storage order of the rows in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lie {
    Rows,
    /// Transposed: the first numbers of all rows come first.
    Columns,
    /// MXFP4 with the exponents elsewhere, in file number `file`. The lower 4 bits of a byte
    /// precede the upper ones.
    Blocks {
        file: usize,
        exponents: Range<usize>,
    },
}

impl Gathered {
    /// Assembles a tensor of `rows` by `columns` in GGUF's layout from the `bytes` that contain it
    /// and the bytes of its exponents.
    pub fn gather(
        &self,
        format: Format,
        rows: usize,
        columns: usize,
        bytes: &[u8],
        exponents: &[u8],
    ) -> Vec<u8> {
        let own = (0..rows).map(|row| self.first + row / self.run * self.step + row % self.run);
        match self.lie {
            Lie::Rows => {
                let width = columns / format.inputs() * format.stored();
                own.flat_map(|row| &bytes[row * width..][..width]).copied().collect()
            }
            Lie::Columns => {
                let (size, stride) = (format.stored(), rows * self.step);
                let number = |row, column| &bytes[(column * stride + row) * size..][..size];
                own.flat_map(|row| (0..columns).flat_map(move |column| number(row, column)))
                    .copied()
                    .collect()
            }
            Lie::Blocks { .. } => {
                let blocks = columns / BLOCK;
                let block = |at: usize| packed(exponents[at], &bytes[at * NIBBLES..][..NIBBLES]);
                own.flat_map(|row| (row * blocks..(row + 1) * blocks).flat_map(block)).collect()
            }
        }
    }
}

/// Packs a block of MXFP4 in GGUF's layout: the exponent first, and in each byte a weight and the
/// one 16 after it.
fn packed(exponent: u8, nibbles: &[u8]) -> [u8; 1 + NIBBLES] {
    let weight = |index: usize| nibbles[index / 2] >> (4 * (index % 2)) & 15;
    let byte = |at: usize| weight(at) | weight(at + NIBBLES) << 4;
    std::array::from_fn(|at| if at == 0 { exponent } else { byte(at - 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_turns_and_columns_are_put_in_order() {
        let halves: Vec<u8> = (0..12u16).flat_map(u16::to_le_bytes).collect();
        let numbers = |first, lie| {
            let gathered = Gathered { first, run: 1, step: 2, lie };
            let bytes = gathered.gather(Format::F16, 2, 3, &halves, &[]);
            let (numbers, _) = bytes.as_chunks();
            numbers.iter().map(|number| u16::from_le_bytes(*number)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(0, Lie::Rows), [0, 1, 2, 6, 7, 8]);
        assert_eq!(numbers(1, Lie::Rows), [3, 4, 5, 9, 10, 11]);
        // From three columns of four numbers.
        assert_eq!(numbers(0, Lie::Columns), [0, 4, 8, 2, 6, 10]);
        assert_eq!(numbers(1, Lie::Columns), [1, 5, 9, 3, 7, 11]);
    }

    #[test]
    fn blocks_are_the_same_numbers_in_both_forms() {
        // Two rows of two blocks; the second row is the tensor's. Each 4-bit value is its weight's
        // index.
        let nibbles: Vec<u8> =
            (0..4 * NIBBLES).map(|at| ((2 * at % 16) | (((2 * at + 1) % 16) << 4)) as u8).collect();
        let exponents = [120u8, 121, 130, 140];
        let lie = Lie::Blocks { file: 0, exponents: 0..4 };
        let gathered = Gathered { first: 1, run: 1, step: 2, lie };
        let found = gathered.gather(Format::Mxfp4, 1, 64, &nibbles, &exponents);
        const TWICE: [f32; 16] = [0., 1., 2., 3., 4., 6., 8., 12., -0., -1., -2., -3., -4., -6., -8., -12.];
        let expected: Vec<f32> = (0..64)
            .map(|weight| TWICE[weight % 16] * f32::powi(2.0, i32::from(exponents[2 + weight / 32]) - 128))
            .collect();
        assert_eq!(Format::Mxfp4.dequantise(&found), expected);
    }
}
