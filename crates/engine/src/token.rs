//! What texts are made of. Knows no tokenizer, which is what turns words into tokens.

/// Index of a token in a tokenizer's vocabulary.
pub type TokenId = u32;
