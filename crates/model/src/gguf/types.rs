//! Tensor types of GGUF files by number: supported types, and the names of the others.

use crate::format::Format;

/// Types that are not supported.
const OTHERS: &[(u32, &str)] = &[
    (4, "Q4_2"),
    (5, "Q4_3"),
    (9, "Q8_1"),
    (15, "Q8_K"),
    (24, "I8"),
    (25, "I16"),
    (I32, "I32"),
    (I64, "I64"),
    (28, "F64"),
    (31, "Q4_0_4_4"),
    (32, "Q4_0_4_8"),
    (33, "Q4_0_8_8"),
    (36, "IQ4_NL_4_4"),
    (37, "IQ4_NL_4_8"),
    (38, "IQ4_NL_8_8"),
    // PrismML's own.
    (142, "PQ2_0"),
    (143, "PTQ1_0"),
];

/// Integer types of token lists.
const I32: u32 = 26;
const I64: u32 = 27;

/// Returns the bytes of an integer of this type; `None` for types that token lists do not have.
pub(super) fn whole(number: u32) -> Option<usize> {
    match number {
        I32 => Some(size_of::<i32>()),
        I64 => Some(size_of::<i64>()),
        _ => None,
    }
}

/// Returns the format with GGML's number.
///
/// # Errors
/// The name of an unsupported type, or its number.
pub(super) fn format(number: u32) -> Result<Format, String> {
    if let Some(format) = Format::ALL.into_iter().find(|format| format.number() == number) {
        return Ok(format);
    }
    let other = OTHERS.iter().find(|(known, _)| *known == number);
    Err(other.map_or_else(|| format!("unknown type {number}"), |(_, name)| (*name).into()))
}

/// Names of the supported types, for messages.
pub(super) fn readable() -> String {
    Format::ALL.map(Format::name).join(", ")
}
