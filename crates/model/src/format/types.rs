//! Storage formats by name and number, with their block sizes in a file and packed for the kernels.

use candle_core::quantized::GgmlDType;

/// Storage format of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
    Iq1S,
    Iq1M,
    Iq2Xxs,
    Iq2Xs,
    Iq2S,
    Iq3Xxs,
    Iq3S,
    Iq4Nl,
    Iq4Xs,
    Tq1_0,
    Tq2_0,
    Mxfp4,
    Nvfp4,
    Q1_0,
    Q2_0,
}

use Format::{
    Bf16, F16, F32, Iq1M, Iq1S, Iq2S, Iq2Xs, Iq2Xxs, Iq3S, Iq3Xxs, Iq4Nl, Iq4Xs, Mxfp4, Nvfp4, Q1_0, Q2_0,
    Q2K, Q3K, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0, Tq1_0, Tq2_0,
};

impl Format {
    pub const ALL: [Self; 28] = [
        F32, F16, Bf16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2K, Q3K, Q4K, Q5K, Q6K, Iq1S, Iq1M, Iq2Xxs, Iq2Xs,
        Iq2S, Iq3Xxs, Iq3S, Iq4Nl, Iq4Xs, Tq1_0, Tq2_0, Mxfp4, Nvfp4, Q1_0, Q2_0,
    ];

    /// Name of the format and its type number in GGUF files.
    const fn known_as(self) -> (&'static str, u32) {
        match self {
            F32 => ("F32", 0),
            F16 => ("F16", 1),
            Bf16 => ("BF16", 30),
            Q4_0 => ("Q4_0", 2),
            Q4_1 => ("Q4_1", 3),
            Q5_0 => ("Q5_0", 6),
            Q5_1 => ("Q5_1", 7),
            Q8_0 => ("Q8_0", 8),
            Q2K => ("Q2_K", 10),
            Q3K => ("Q3_K", 11),
            Q4K => ("Q4_K", 12),
            Q5K => ("Q5_K", 13),
            Q6K => ("Q6_K", 14),
            Iq1S => ("IQ1_S", 19),
            Iq1M => ("IQ1_M", 29),
            Iq2Xxs => ("IQ2_XXS", 16),
            Iq2Xs => ("IQ2_XS", 17),
            Iq2S => ("IQ2_S", 22),
            Iq3Xxs => ("IQ3_XXS", 18),
            Iq3S => ("IQ3_S", 21),
            Iq4Nl => ("IQ4_NL", 20),
            Iq4Xs => ("IQ4_XS", 23),
            Tq1_0 => ("TQ1_0", 34),
            Tq2_0 => ("TQ2_0", 35),
            Mxfp4 => ("MXFP4", 39),
            Nvfp4 => ("NVFP4", 40),
            Q1_0 => ("Q1_0", 41),
            Q2_0 => ("Q2_0", 42),
        }
    }

    /// Display name, for example "Q4_K".
    pub const fn name(self) -> &'static str {
        self.known_as().0
    }

    /// Type number in GGUF files.
    pub const fn number(self) -> u32 {
        self.known_as().1
    }

    /// Candle's type for this format; `None` where candle has none.
    pub const fn candle(self) -> Option<GgmlDType> {
        Some(match self {
            F32 => GgmlDType::F32,
            F16 => GgmlDType::F16,
            Bf16 => GgmlDType::BF16,
            Q4_0 => GgmlDType::Q4_0,
            Q4_1 => GgmlDType::Q4_1,
            Q5_0 => GgmlDType::Q5_0,
            Q5_1 => GgmlDType::Q5_1,
            Q8_0 => GgmlDType::Q8_0,
            Q2K => GgmlDType::Q2K,
            Q3K => GgmlDType::Q3K,
            Q4K => GgmlDType::Q4K,
            Q5K => GgmlDType::Q5K,
            Q6K => GgmlDType::Q6K,
            Iq1S | Iq1M | Iq2Xxs | Iq2Xs | Iq2S | Iq3Xxs | Iq3S | Iq4Nl | Iq4Xs | Tq1_0 | Tq2_0 | Mxfp4
            | Nvfp4 | Q1_0 | Q2_0 => return None,
        })
    }

    /// Weights per block: consecutive inputs of a row.
    #[inline]
    pub const fn inputs(self) -> usize {
        match self {
            F32 | F16 | Bf16 => 1,
            Q4_0 | Q4_1 | Q5_0 | Q5_1 | Q8_0 | Iq4Nl | Mxfp4 => 32,
            Nvfp4 | Q2_0 => 64,
            Q1_0 => 128,
            _ => 256,
        }
    }

    /// Returns true for blocks of quants with shared scales. The kernels then take activations in 8
    /// bits.
    #[inline]
    pub const fn quantised(self) -> bool {
        self.inputs() > 1
    }

    /// Bits of a packed quant, or of an unquantised weight. Grid formats are packed weight by
    /// weight.
    #[inline]
    pub const fn bits(self) -> usize {
        match self {
            Q1_0 => 1,
            Q2_0 | Q2K | Tq1_0 | Tq2_0 => 2,
            Q3K | Iq1S | Iq1M | Iq2Xxs | Iq2Xs | Iq2S => 3,
            Q4_0 | Q4_1 | Q4K | Iq3Xxs | Iq3S | Iq4Nl | Iq4Xs | Mxfp4 | Nvfp4 => 4,
            Q5_0 | Q5_1 | Q5K => 5,
            Q6K => 6,
            Q8_0 => 8,
            F16 | Bf16 => 16,
            F32 => 32,
        }
    }

    /// Half-precision numbers per block: none, the scale, or the scale and the minimum.
    #[inline]
    pub const fn halves(self) -> usize {
        match self {
            F32 | F16 | Bf16 | Mxfp4 | Nvfp4 => 0,
            Q4_1 | Q5_1 | Q4K | Q5K | Q2K | Tq1_0 | Tq2_0 => 2,
            _ => 1,
        }
    }

    /// Byte offsets of these numbers in a stored block; empty for IQ1_M, whose scale bits are
    /// scattered.
    #[inline]
    pub const fn halves_at(self) -> &'static [usize] {
        match self {
            F32 | F16 | Bf16 | Mxfp4 | Nvfp4 | Iq1M => &[],
            Q4_1 | Q5_1 | Q4K | Q5K => &[0, 2],
            Q2K => &[80, 82],
            Q3K => &[108],
            Q6K => &[208],
            Tq1_0 => &[52],
            Tq2_0 => &[64],
            _ => &[0],
        }
    }

    /// Bytes of the scales of a packed block's parts.
    #[inline]
    pub const fn parts(self) -> usize {
        match self {
            Mxfp4 => 1,
            Nvfp4 => 4,
            Iq1S | Iq2Xxs | Iq3Xxs | Iq3S | Iq4Xs => 8,
            Q4K | Q5K => 12,
            Q2K | Q3K | Q6K | Iq1M | Iq2Xs | Iq2S | Tq1_0 | Tq2_0 => 16,
            _ => 0,
        }
    }

    /// Bytes of all scales of a packed block.
    #[inline]
    pub const fn scales(self) -> usize {
        2 * self.halves() + self.parts()
    }

    /// Bytes of a packed block.
    #[inline]
    pub const fn packed(self) -> usize {
        self.scales() + self.inputs() * self.bits() / 8
    }

    /// Bytes of a block in a file.
    #[inline]
    pub const fn stored(self) -> usize {
        match self {
            Iq1S => 50,
            Tq1_0 => 54,
            Iq1M => 56,
            Iq2Xxs | Tq2_0 => 66,
            Iq2Xs => 74,
            Iq2S => 82,
            Iq3Xxs => 98,
            Q3K | Iq3S => 110,
            Iq4Xs => 136,
            _ => self.packed(),
        }
    }

    /// Bytes of a tensor of this shape, outermost dimension first. `None` if it overflows or a row
    /// is not a whole number of blocks.
    pub fn size(self, shape: &[usize]) -> Option<usize> {
        let elements = shape.iter().try_fold(1usize, |product, &n| product.checked_mul(n))?;
        let row = shape.last().copied().unwrap_or(1);
        let whole = row.is_multiple_of(self.inputs());
        whole.then(|| (elements / self.inputs()).checked_mul(self.stored())).flatten()
    }
}
