//! Estimates of token counts.

use foretoken_model::Tokenizer;
use foretoken_model::token::TokenId;

/// Bytes per token without a tokenizer: about the average of English.
const BYTES_PER_TOKEN: usize = 4;

/// Returns the estimated tokens of a text of `bytes` bytes.
pub(crate) fn estimated(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// Returns whether a text of `bytes` bytes has more tokens than the context holds, whatever its
/// content: no token is longer than the longest of the vocabulary.
pub(crate) fn exceeds(bytes: usize, tokenizer: &Tokenizer, context: usize) -> bool {
    if bytes <= context {
        return false;
    }
    let tokens = 0..tokenizer.vocabulary() as TokenId;
    let longest = tokens.map(|token| tokenizer.decode_bytes(token).len()).max().unwrap_or(0);
    bytes > longest.saturating_mul(context)
}
