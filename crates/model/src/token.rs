//! Token ids. The tokenizer, which maps text to them, is in `model`.

/// Index of a token in a tokenizer's vocabulary.
pub type TokenId = u32;
