//! Which format each matrix of a quantised model takes, by the rules of llama.cpp's quantiser. Makes no
//! weights.

use foretoken_engine::format::Format;

/// How a model's weights are stored, as a person names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// Q4_K with Q6_K where it matters most.
    Q4KM,
    /// All matrices in one format.
    All(Format),
}

/// What a mixture tells matrices apart by.
#[derive(Debug, Clone, Copy)]
pub enum Part {
    /// The output matrix, or the embedding that stands for it.
    Output,
    /// The value projection or the last feed-forward matrix of a layer: an error in these costs most.
    Sensitive {
        layer: usize,
        layers: usize,
    },
    Other,
}

impl Weights {
    pub const ALL: [Self; 26] = [
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
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Q4KM => "Q4_K_M",
            Self::All(format) => format.name(),
        }
    }

    /// The number of GGUF's `general.file_type`.
    pub fn file_type(self) -> u32 {
        match self {
            Self::Q4KM => 15,
            Self::All(format) => file_type(format),
        }
    }

    /// The format of a matrix with rows of `columns` numbers.
    ///
    /// Q4_K_M is Q4_K with Q6_K for the output and, in some layers, for the sensitive parts; the latter
    /// two have blocks of 256, so that rows which do not divide into these take the next better format
    /// with blocks of 32.
    pub fn format(self, part: Part, columns: usize) -> Format {
        let format = match (self, part) {
            (Self::All(format), _) => format,
            (Self::Q4KM, Part::Output) => Format::Q6K,
            (Self::Q4KM, Part::Sensitive { layer, layers }) if has_more_bits(layer, layers) => Format::Q6K,
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

/// The first and the last eighth of the layers, and of those between every third.
fn has_more_bits(layer: usize, layers: usize) -> bool {
    let (first, last) = (layers / 8, layers * 7 / 8);
    layer < first || layer >= last || (layer - first) % 3 == 2
}

/// The number of a file whose matrices all have a format; of the K formats that of their small mixtures.
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
    }
}

/// Bytes that `numbers` take, which must be whole blocks.
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
        let sensitive = |layer| Part::Sensitive { layer, layers: 22 };
        let q4_k_m = |part| Weights::Q4KM.format(part, 2048);
        assert_eq!([q4_k_m(Part::Output), q4_k_m(sensitive(4))], [Format::Q6K; 2]);
        assert_eq!([q4_k_m(Part::Other), q4_k_m(sensitive(5))], [Format::Q4K; 2]);
        for part in [Part::Output, Part::Other, sensitive(0)] {
            assert_eq!(Weights::All(Format::Q8_0).format(part, 896), Format::Q8_0);
            assert_eq!(Weights::All(Format::F16).format(part, 896), Format::F16);
        }
    }

    #[test]
    fn rows_that_do_not_divide_into_blocks_of_256_take_blocks_of_32() {
        let q4_k_m = |part| Weights::Q4KM.format(part, 896);
        assert_eq!([q4_k_m(Part::Other), q4_k_m(Part::Output)], [Format::Q5_0, Format::Q8_0]);
        assert_eq!(q4_k_m(Part::Sensitive { layer: 0, layers: 24 }), Format::Q8_0);
        assert_eq!(q4_k_m(Part::Sensitive { layer: 3, layers: 24 }), Format::Q5_0);
        assert_eq!(Weights::All(Format::Iq2Xxs).format(Part::Other, 896), Format::Iq4Nl);
    }

    #[test]
    fn a_format_takes_the_bytes_its_blocks_take() {
        let formats = [Format::F32, Format::F16, Format::Q5_0, Format::Q8_0, Format::Q4K, Format::Q6K];
        assert_eq!(formats.map(|format| bytes(format, 256)), [1024, 512, 176, 272, 144, 210]);
    }
}
