//! Text to tokens and back, for every kind of tokenizer Foretoken reads. Adds nothing on its own:
//! whether a prompt starts with a BOS is the caller's decision.

mod bpe;
mod from_folder;
mod from_gguf;
mod library;
mod normalizer;
mod pattern;
mod pre_tokenizer;
mod sentence_piece;
mod special;
mod table;
#[cfg(test)]
mod tests;
mod whole;
mod words;

use std::cell::Cell;
use std::ops::Range;
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::token::TokenId;

pub(super) use from_folder::{from_folder, kind as folder_kind, special_tokens as folder_special_tokens};
pub(super) use from_gguf::{
    from_gguf, kind as gguf_kind, special_tokens as gguf_special_tokens, vocabulary_size,
};
use library::Library;
use sentence_piece::SentencePiece;
pub use special::{SpecialToken, SpecialTokens};
use table::Table;
use whole::{Whole, is_read};

/// What to do with the text of a special token inside a text to encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// It is plain text like any other: for what a person wrote.
    Ignore,
    /// It is that token: for a rendered chat template.
    Parse,
}

/// A model's tokenizer.
pub struct Tokenizer {
    /// For messages.
    path: PathBuf,
    encoder: Encoder,
    table: Table,
    special: SpecialTokens,
    ends: Vec<TokenId>,
    /// The encoder puts a space before a text, so decoding takes it off again.
    strips_leading_space: bool,
}

enum Encoder {
    Library(Box<Library>),
    SentencePiece(Box<SentencePiece>),
}

impl Tokenizer {
    fn new(
        path: PathBuf,
        encoder: Encoder,
        table: Table,
        special: SpecialTokens,
        strips_leading_space: bool,
    ) -> Self {
        let ends = special.ends.iter().map(|token| token.id).collect();
        Self { path, encoder, table, special, ends, strips_leading_space }
    }

    /// The tokens of `text`; nothing is added.
    ///
    /// # Errors
    /// `Error::Tokenizer` when the text has a character the vocabulary cannot express.
    pub fn encode(&self, text: &str, special: Special) -> Result<Vec<TokenId>> {
        match &self.encoder {
            Encoder::SentencePiece(pieces) => pieces.encode(text, special),
            Encoder::Library(library) => library.encode(text, special == Special::Parse),
        }
        .map_err(|reason| Error::Tokenizer { path: self.path.clone(), reason })
    }

    /// The tokens of `text`, special and added tokens read as such except where they reach into `plain`, ranges in
    /// order: there they are text like any other. What is between the tokens read is encoded as one.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn encode_around(&self, text: &str, plain: &[Range<usize>]) -> Result<Vec<TokenId>> {
        if plain.is_empty() {
            return self.encode(text, Special::Parse);
        }
        let hides = Cell::new(false);
        let _ = self.whole().stretches(text, |range, mark| {
            hides.set(hides.get() || !is_read(plain, &range, mark));
            true
        });
        if !hides.get() {
            return self.encode(text, Special::Parse);
        }
        match &self.encoder {
            Encoder::SentencePiece(pieces) => pieces.encode_around(text, plain),
            Encoder::Library(library) => library.encode_around(text, plain),
        }
        .map_err(|reason| Error::Tokenizer { path: self.path.clone(), reason })
    }

    /// Where `text` spells special or added tokens, or a part of one at either end, so that it could pass for one
    /// beside other text: ranges in order. `controls`: of control tokens alone. Added tokens that are words, white
    /// space or HTML are left out: they are no more than that.
    pub fn spelled(&self, text: &str, controls: bool) -> Vec<Range<usize>> {
        self.whole().spelled(text, controls)
    }

    fn whole(&self) -> &Whole {
        match &self.encoder {
            Encoder::SentencePiece(pieces) => pieces.whole(),
            Encoder::Library(library) => library.whole(),
        }
    }

    /// The text of `tokens` from its beginning. Bytes that are no UTF-8 become U+FFFD; control tokens
    /// have no text.
    pub fn decode(&self, tokens: &[TokenId]) -> String {
        let mut bytes = Vec::new();
        let mut drops_space = self.strips_leading_space;
        for &token in tokens {
            bytes.extend_from_slice(self.next_bytes(token, &mut drops_space));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The exact bytes a token stands for; none for control tokens and unknown ids.
    pub fn decode_bytes(&self, token: TokenId) -> &[u8] {
        self.table.bytes(token)
    }

    /// A token for a person to read: special tokens by name, bytes that are no text as `<0xE2>`.
    pub fn piece(&self, token: TokenId) -> String {
        self.table.piece(token)
    }

    /// Special tokens carry no text.
    pub fn is_control(&self, token: TokenId) -> bool {
        self.table.is_control(token)
    }

    /// Control tokens, text matched whole, and placeholders: what a newer release adds.
    pub fn is_special(&self, token: TokenId) -> bool {
        self.table.is_special(token)
    }

    /// The token that the vocabulary lists under exactly this text (for byte-level and SentencePiece
    /// vocabularies that is their spelling, `Ġthe` or `▁the`).
    pub fn id_of(&self, text: &str) -> Option<TokenId> {
        match &self.encoder {
            Encoder::SentencePiece(pieces) => pieces.id_of(text),
            Encoder::Library(library) => library.id_of(text),
        }
    }

    /// The token that starts a text, where the model has one.
    pub fn bos(&self) -> Option<TokenId> {
        self.special.bos.as_ref().map(|token| token.id)
    }

    /// Whether a raw prompt starts with [`Self::bos`].
    pub fn adds_bos(&self) -> bool {
        self.special.adds_bos
    }

    /// Every token that ends a reply.
    pub fn ends(&self) -> &[TokenId] {
        &self.ends
    }

    /// The named tokens with their texts.
    pub fn special(&self) -> &SpecialTokens {
        &self.special
    }

    /// Tokens in the vocabulary; ids are below this.
    pub fn vocabulary(&self) -> usize {
        self.table.len()
    }

    /// Whether decoding a text drops the space that encoding put before it.
    pub(super) fn strips_leading_space(&self) -> bool {
        self.strips_leading_space
    }

    /// The bytes a token adds to a text. `drops_space`: nothing has been added yet and the text's
    /// leading space is not its own.
    pub(super) fn next_bytes(&self, token: TokenId, drops_space: &mut bool) -> &[u8] {
        let bytes = self.decode_bytes(token);
        let drops = !bytes.is_empty() && std::mem::take(drops_space);
        if drops { bytes.strip_prefix(b" ").unwrap_or(bytes) } else { bytes }
    }
}
