//! Tensors whose rows do not lie one after the other in their file: how they are put together. Reads no file.

use std::ops::Range;

use crate::format::Format;

/// Weights of a block of MXFP4, and bytes of their nibbles.
pub const BLOCK: usize = 32;
pub const NIBBLES: usize = BLOCK / 2;

/// Which rows of what lies in a file are a tensor's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathered {
    /// The row that is its first.
    pub first: usize,
    /// Rows from there on that follow each other, and after how many its next ones begin.
    pub run: usize,
    pub step: usize,
    pub lie: Lie,
}

/// How rows lie in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lie {
    Rows,
    /// As columns: the first numbers of all rows come first.
    Columns,
    /// As MXFP4 whose exponents lie elsewhere, in file number `file`; of the two weights of a byte the one in the lower
    /// nibble is followed by the other.
    Blocks {
        file: usize,
        exponents: Range<usize>,
    },
}

impl Gathered {
    /// The bytes of a tensor of `rows` of `columns` numbers, as a GGUF file has them, of the `bytes` in which it lies and
    /// those of its exponents.
    pub fn gather(
        &self,
        format: Format,
        (rows, columns): (usize, usize),
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

/// A block of MXFP4 with its exponent before it, and in a byte a weight and the one sixteen after it.
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
            let bytes = gathered.gather(Format::F16, (2, 3), &halves, &[]);
            let (numbers, _) = bytes.as_chunks();
            numbers.iter().map(|number| u16::from_le_bytes(*number)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(0, Lie::Rows), [0, 1, 2, 6, 7, 8]);
        assert_eq!(numbers(1, Lie::Rows), [3, 4, 5, 9, 10, 11]);
        // Of three columns of four.
        assert_eq!(numbers(0, Lie::Columns), [0, 4, 8, 2, 6, 10]);
        assert_eq!(numbers(1, Lie::Columns), [1, 5, 9, 3, 7, 11]);
    }

    #[test]
    fn blocks_are_the_same_numbers_in_both_forms() {
        // Two rows of two blocks, of which the second row is the tensor's; each nibble says which weight it is.
        let nibbles: Vec<u8> =
            (0..4 * NIBBLES).map(|at| ((2 * at % 16) | (((2 * at + 1) % 16) << 4)) as u8).collect();
        let exponents = [120u8, 121, 130, 140];
        let lie = Lie::Blocks { file: 0, exponents: 0..4 };
        let gathered = Gathered { first: 1, run: 1, step: 2, lie };
        let found = gathered.gather(Format::Mxfp4, (1, 64), &nibbles, &exponents);
        const TWICE: [f32; 16] = [0., 1., 2., 3., 4., 6., 8., 12., -0., -1., -2., -3., -4., -6., -8., -12.];
        let expected: Vec<f32> = (0..64)
            .map(|weight| TWICE[weight % 16] * f32::powi(2.0, i32::from(exponents[2 + weight / 32]) - 128))
            .collect();
        assert_eq!(Format::Mxfp4.dequantise(&found), expected);
    }
}
