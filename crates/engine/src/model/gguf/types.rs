//! The types of tensors in GGUF files: their numbers, their names, and which of them can be read.

use candle_core::quantized::GgmlDType;

/// Number, name, and the type where it can be read.
const TYPES: &[(u32, &str, Option<GgmlDType>)] = &[
    (0, "F32", Some(GgmlDType::F32)),
    (1, "F16", Some(GgmlDType::F16)),
    (30, "BF16", Some(GgmlDType::BF16)),
    (2, "Q4_0", Some(GgmlDType::Q4_0)),
    (3, "Q4_1", Some(GgmlDType::Q4_1)),
    (6, "Q5_0", Some(GgmlDType::Q5_0)),
    (7, "Q5_1", Some(GgmlDType::Q5_1)),
    (8, "Q8_0", Some(GgmlDType::Q8_0)),
    (9, "Q8_1", Some(GgmlDType::Q8_1)),
    (10, "Q2_K", Some(GgmlDType::Q2K)),
    (11, "Q3_K", Some(GgmlDType::Q3K)),
    (12, "Q4_K", Some(GgmlDType::Q4K)),
    (13, "Q5_K", Some(GgmlDType::Q5K)),
    (14, "Q6_K", Some(GgmlDType::Q6K)),
    (15, "Q8_K", Some(GgmlDType::Q8K)),
    (4, "Q4_2", None),
    (5, "Q4_3", None),
    (16, "IQ2_XXS", None),
    (17, "IQ2_XS", None),
    (18, "IQ3_XXS", None),
    (19, "IQ1_S", None),
    (20, "IQ4_NL", None),
    (21, "IQ3_S", None),
    (22, "IQ2_S", None),
    (23, "IQ4_XS", None),
    (24, "I8", None),
    (25, "I16", None),
    (26, "I32", None),
    (27, "I64", None),
    (28, "F64", None),
    (29, "IQ1_M", None),
    (31, "Q4_0_4_4", None),
    (32, "Q4_0_4_8", None),
    (33, "Q4_0_8_8", None),
    (34, "TQ1_0", None),
    (35, "TQ2_0", None),
    (36, "IQ4_NL_4_4", None),
    (37, "IQ4_NL_4_8", None),
    (38, "IQ4_NL_8_8", None),
    (39, "MXFP4", None),
    (40, "NVFP4", None),
];

/// The type of whole numbers that tables of tokens have.
pub(super) const I64: u32 = 27;

/// The type of this number.
///
/// # Errors
/// Its name, or what stands for one, when it cannot be read.
pub(super) fn tensor_type(number: u32) -> Result<GgmlDType, String> {
    match TYPES.iter().find(|(known, ..)| *known == number) {
        Some((_, _, Some(dtype))) => Ok(*dtype),
        Some((_, name, None)) => Err((*name).into()),
        None => Err(format!("unknown type {number}")),
    }
}

/// The types that can be read, for messages.
pub(super) fn readable() -> String {
    let names: Vec<&str> =
        TYPES.iter().filter(|(.., dtype)| dtype.is_some()).map(|(_, name, _)| *name).collect();
    names.join(", ")
}
