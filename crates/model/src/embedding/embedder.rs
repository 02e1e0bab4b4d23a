//! Interface to a loaded embedding model.

use crate::error::Result;

/// A loaded embedding model.
pub trait TextEmbedder: Send + Sync {
    /// Name of the model's file or folder.
    fn name(&self) -> &str;

    /// Numbers of an embedding.
    fn width(&self) -> usize;

    /// Most tokens of a text that the model reads, with those that its tokenizer adds.
    fn longest(&self) -> usize;

    /// Computes the embedding of a text; of its beginning if it is too long.
    ///
    /// # Errors
    /// `Error::Tokenizer` for a text that the tokenizer fails on; `Error::Compute` without memory;
    /// `Error::NotFinite`.
    fn embed(&self, text: &str, purpose: TextUse) -> Result<TextEmbedding>;
}

/// Use of a text, which decides the prefix that the model was trained with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextUse {
    /// A question that passages answer.
    Query,
    Passage,
    /// Any text, without a prefix.
    Any,
}

/// Embedding of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct TextEmbedding {
    /// A vector of length 1.
    pub vector: Vec<f32>,
    /// Tokens that the model read.
    pub tokens: usize,
    /// `true` if the text is longer than the model reads.
    pub is_cut: bool,
}
