//! Chooses the format of each matrix in a quantised model, by the rules of llama.cpp's quantiser.

use foretoken_model::format::Format;

/// Storage of a model's weights, as named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// Q4_K, with Q6_K for the matrices whose errors cost most.
    Q4KM,
    /// All matrices in one format.
    All(Format),
}

/// Role of a matrix, by which a mixture chooses its format.
#[derive(Debug, Clone, Copy)]
pub enum MatrixRole {
    /// The output matrix, or a tied embedding.
    Output,
    /// The value projection or the down projection of a layer, whose errors cost most.
    Sensitive {
        layer: usize,
        layers: usize,
    },
    Other,
}

impl Weights {
    pub const ALL: [Self; 29] = [
        Self::Q4KM,
        Self::All(Format::Q8_0),
        Self::All(Format::F16),
        Self::All(Format::Bf16),
        Self::All(Format::F32),
        Self::All(Format::Q4_0),
        Self::All(Format::Q4_1),
        Self::All(Format::Q5_0),
        Self::All(Format::Q5_1),
        Self::All(Format::Q2K),
        Self::All(Format::Q3K),
        Self::All(Format::Q4K),
        Self::All(Format::Q5K),
        Self::All(Format::Q6K),
        Self::All(Format::Iq1S),
        Self::All(Format::Iq1M),
        Self::All(Format::Iq2Xxs),
        Self::All(Format::Iq2Xs),
        Self::All(Format::Iq2S),
        Self::All(Format::Iq3Xxs),
        Self::All(Format::Iq3S),
        Self::All(Format::Iq4Nl),
        Self::All(Format::Iq4Xs),
        Self::All(Format::Tq1_0),
        Self::All(Format::Tq2_0),
        Self::All(Format::Mxfp4),
        Self::All(Format::Nvfp4),
        Self::All(Format::Q1_0),
        Self::All(Format::Q2_0),
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Q4KM => "Q4_K_M",
            Self::All(format) => format.name(),
        }
    }

    /// The value of GGUF's `general.file_type`.
    pub fn file_type(self) -> u32 {
        match self {
            Self::Q4KM => 15,
            Self::All(format) => file_type(format),
        }
    }

    /// The format of a matrix with rows of `columns` numbers.
    ///
    /// Q4_K_M is Q4_K with Q6_K for the output and, in some layers, for the sensitive matrices.
    /// Both have blocks of 256 numbers; rows that are no multiple of 256 use the next better format
    /// with blocks of 32.
    pub fn format(self, part: MatrixRole, columns: usize) -> Format {
        let format = match (self, part) {
            (Self::All(format), _) => format,
            (Self::Q4KM, MatrixRole::Output) => Format::Q6K,
            (Self::Q4KM, MatrixRole::Sensitive { layer, layers }) if has_more_bits(layer, layers) => {
                Format::Q6K
            }
            (Self::Q4KM, _) => Format::Q4K,
        };
        match format {
            _ if columns.is_multiple_of(format.inputs()) => format,
            Format::Q2K | Format::Q3K => Format::Q4_0,
            Format::Q4K => Format::Q5_0,
            Format::Q5K | Format::Q6K => Format::Q8_0,
            _ => Format::Iq4Nl,
        }
    }
}

/// The first and the last eighth of the layers, and every third one between.
fn has_more_bits(layer: usize, layers: usize) -> bool {
    let (first, last) = (layers / 8, layers * 7 / 8);
    layer < first || layer >= last || (layer - first) % 3 == 2
}

/// The file type with all matrices in `format`; for K formats, that of their small mixtures.
fn file_type(format: Format) -> u32 {
    match format {
        Format::F32 => 0,
        Format::F16 => 1,
        Format::Bf16 => 32,
        Format::Q4_0 => 2,
        Format::Q4_1 => 3,
        Format::Q5_0 => 8,
        Format::Q5_1 => 9,
        Format::Q8_0 => 7,
        Format::Q2K => 10,
        Format::Q3K => 11,
        Format::Q4K => 14,
        Format::Q5K => 16,
        Format::Q6K => 18,
        Format::Iq1S => 24,
        Format::Iq1M => 31,
        Format::Iq2Xxs => 19,
        Format::Iq2Xs => 20,
        Format::Iq2S => 28,
        Format::Iq3Xxs => 23,
        Format::Iq3S => 26,
        Format::Iq4Nl => 25,
        Format::Iq4Xs => 30,
        Format::Tq1_0 => 36,
        Format::Tq2_0 => 37,
        Format::Mxfp4 => 38,
        Format::Nvfp4 => 39,
        Format::Q1_0 => 40,
        Format::Q2_0 => 41,
    }
}

/// Bytes of `numbers` numbers, which must fill whole blocks.
pub fn bytes(format: Format, numbers: usize) -> usize {
    numbers / format.inputs() * format.stored()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layers_with_more_bits(layers: usize) -> Vec<usize> {
        (0..layers).filter(|&layer| has_more_bits(layer, layers)).collect()
    }

    #[test]
    fn the_outer_eighths_and_every_third_layer_between_have_more_bits() {
        // As the published Q4_K_M files of TinyLlama-1.1B, Qwen2.5-0.5B and Llama-3.1-8B have it.
        assert_eq!(layers_with_more_bits(22), [0, 1, 4, 7, 10, 13, 16, 19, 20, 21]);
        assert_eq!(layers_with_more_bits(24), [0, 1, 2, 5, 8, 11, 14, 17, 20, 21, 22, 23]);
        assert_eq!(layers_with_more_bits(32), [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31]);
        assert_eq!(layers_with_more_bits(6), [2, 5]);
    }

    #[test]
    fn a_mixture_gives_the_sensitive_parts_more_bits_and_other_formats_none() {
        let sensitive = |layer| MatrixRole::Sensitive { layer, layers: 22 };
        let q4_k_m = |part| Weights::Q4KM.format(part, 2048);
        assert_eq!([q4_k_m(MatrixRole::Output), q4_k_m(sensitive(4))], [Format::Q6K; 2]);
        assert_eq!([q4_k_m(MatrixRole::Other), q4_k_m(sensitive(5))], [Format::Q4K; 2]);
        for part in [MatrixRole::Output, MatrixRole::Other, sensitive(0)] {
            assert_eq!(Weights::All(Format::Q8_0).format(part, 896), Format::Q8_0);
            assert_eq!(Weights::All(Format::F16).format(part, 896), Format::F16);
        }
    }

    #[test]
    fn rows_that_do_not_divide_into_blocks_of_256_take_blocks_of_32() {
        let q4_k_m = |part| Weights::Q4KM.format(part, 896);
        assert_eq!([q4_k_m(MatrixRole::Other), q4_k_m(MatrixRole::Output)], [Format::Q5_0, Format::Q8_0]);
        assert_eq!(q4_k_m(MatrixRole::Sensitive { layer: 0, layers: 24 }), Format::Q8_0);
        assert_eq!(q4_k_m(MatrixRole::Sensitive { layer: 3, layers: 24 }), Format::Q5_0);
        assert_eq!(Weights::All(Format::Iq2Xxs).format(MatrixRole::Other, 896), Format::Iq4Nl);
    }

    #[test]
    fn a_matrix_takes_the_bytes_of_its_blocks() {
        let formats = [Format::F32, Format::F16, Format::Q5_0, Format::Q8_0, Format::Q4K, Format::Q6K];
        assert_eq!(formats.map(|format| bytes(format, 256)), [1024, 512, 176, 272, 144, 210]);
    }
}
