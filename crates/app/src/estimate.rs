//! Estimates of token counts.

/// Bytes per token without a tokenizer: about the average of English.
const BYTES_PER_TOKEN: usize = 4;

/// Returns the estimated tokens of a text of `bytes` bytes.
pub(crate) fn estimated(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_PER_TOKEN)
}
