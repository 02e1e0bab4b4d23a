//! Settings of an embedding model.

use std::path::Path;

use crate::error::{Error, Result};
use crate::limits::at_most;

/// Embedding models that Foretoken runs, for messages.
pub(super) const SUPPORTED: &str = "BERT, XLM-RoBERTa, NomicBERT and ModernBERT";

/// Limits of untrusted settings, with room above all known models.
const WIDTH: usize = 1 << 14;
const INTERMEDIATE: usize = 1 << 16;
const LAYERS: usize = 256;
const HEADS: usize = 256;
const VOCABULARY: usize = 1 << 20;
const TOKENS: usize = 1 << 16;

/// Most tokens of a text that a model with rotary positions reads. Attention over more takes
/// gigabytes.
pub(super) const LONGEST: usize = 2048;

/// Settings of the network, and how its states become an embedding.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingConfig {
    pub encoder: Encoder,
    pub vocabulary: usize,
    /// Numbers of a state and of an embedding.
    pub width: usize,
    pub intermediate: usize,
    pub layers: usize,
    pub heads: usize,
    pub epsilon: f64,
    pub activation: HiddenActivation,
    /// Rows of the table of positions; the longest text in tokens for rotary positions.
    pub positions: usize,
    /// Rows of the table of token types; 0 without one.
    pub types: usize,
    pub pooling: Pooling,
    pub prefixes: Prefixes,
    /// Most tokens of a text, with those that the tokenizer adds.
    pub longest: usize,
}

/// Kind of network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Encoder {
    Bert,
    /// BERT whose positions begin after the number of its padding token.
    XlmRoberta {
        padding: u32,
    },
    /// BERT with rotary positions and gated feed-forward networks.
    NomicBert {
        theta: f64,
    },
    /// Layers with a window between layers without; a theta for either.
    ModernBert {
        /// Every how many layers there is no window.
        full_every: usize,
        window: usize,
        full_theta: f64,
        window_theta: f64,
    },
}

/// Activation of the feed-forward networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenActivation {
    Gelu,
    GeluTanh,
    Relu,
    /// SiLU of the gate.
    SwiGlu,
}

/// Way from the states of all tokens to an embedding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// The mean over all tokens.
    Mean,
    /// The state of the first token.
    First,
}

/// Texts that stand before what is embedded, as the model was trained.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefixes {
    /// Before a question that passages answer.
    pub query: String,
    /// Before a passage.
    pub passage: String,
}

impl Prefixes {
    pub(super) fn new(query: &str, passage: &str) -> Self {
        Self { query: query.to_owned(), passage: passage.to_owned() }
    }

    /// Prefixes of well-known models by a name or path, from their model cards.
    pub(super) fn known(name: &str) -> Self {
        let name = name.to_lowercase();
        if name.contains("e5-") {
            return Self::new("query: ", "passage: ");
        }
        if name.contains("nomic-embed-text") {
            return Self::new("search_query: ", "search_document: ");
        }
        if name.contains("bge-") && name.contains("-en") {
            return Self::new("Represent this sentence for searching relevant passages: ", "");
        }
        Self::default()
    }
}

impl EmbeddingConfig {
    /// Checks sizes that decide how much is computed and allocated.
    ///
    /// # Errors
    /// `Error::BadModel` for a size of 0 or above its limit, and for sizes that do not divide.
    pub(super) fn checked(self, path: &Path) -> Result<Self> {
        let sizes = [
            ("numbers of a state", self.width, WIDTH),
            ("numbers of a feed-forward network", self.intermediate, INTERMEDIATE),
            ("layers", self.layers, LAYERS),
            ("attention heads", self.heads, HEADS),
            ("tokens of the vocabulary", self.vocabulary, VOCABULARY),
            ("positions", self.positions, TOKENS),
        ];
        for (what, found, limit) in sizes {
            at_most(path, what, found, limit)?;
            if found == 0 {
                return Err(bad(path, format!("a number above 0 of {what}"), "0".to_owned()));
            }
        }
        if !self.width.is_multiple_of(2 * self.heads) {
            let found = format!("{} for {} heads", self.width, self.heads);
            return Err(bad(path, "an even number of numbers per attention head".to_owned(), found));
        }
        // Of a text at least one token and the two around it.
        if self.longest < 3 {
            return Err(bad(path, "texts of at least 3 tokens".to_owned(), self.longest.to_string()));
        }
        if let Encoder::ModernBert { full_every: 0, .. } = self.encoder {
            return Err(bad(path, "a layer without a window".to_owned(), "every 0 layers".to_owned()));
        }
        Ok(self)
    }
}

/// Error for a model that is not as `expected`.
pub(super) fn bad(path: &Path, expected: String, found: String) -> Error {
    let hint = "Choose another file of this model.";
    Error::BadModel { path: path.to_owned(), expected, found, hint }
}

/// Error for a model of another kind.
pub(super) fn other_kind(path: &Path, found: &str) -> Error {
    Error::NoEmbeddings { path: path.to_owned(), found: found.to_owned(), supported: SUPPORTED }
}
