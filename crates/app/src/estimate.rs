//! How many tokens a text has, where they are not counted.

use foretoken_engine::model::Tokenizer;
use foretoken_engine::token::TokenId;

/// Bytes of a token where no tokenizer counts: English has about as many.
const BYTES_PER_TOKEN: usize = 4;

/// Tokens that a text of so many bytes has, about.
pub(crate) fn estimated(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// Whether a text of so many bytes has more tokens than a context holds, whatever it says: no token of it is longer than
/// the longest of the vocabulary.
pub(crate) fn exceeds(bytes: usize, tokenizer: &Tokenizer, context: usize) -> bool {
    if bytes <= context {
        return false;
    }
    let tokens = 0..tokenizer.vocabulary() as TokenId;
    let longest = tokens.map(|token| tokenizer.decode_bytes(token).len()).max().unwrap_or(0);
    bytes > longest.saturating_mul(context)
}
