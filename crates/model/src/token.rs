//! Token ids. The tokenizer, which maps text to them, is in `model`.

/// Index of a token in a tokenizer's vocabulary. Ids from [`MEDIA_IDS`] up name embeddings of
/// pictures instead.
pub type TokenId = u32;

/// First id of the embeddings of pictures; every vocabulary is smaller.
pub const MEDIA_IDS: TokenId = 1 << 31;

/// Returns true if `token` names an embedding of a picture and no token of a vocabulary.
pub fn is_media(token: TokenId) -> bool {
    token >= MEDIA_IDS
}
