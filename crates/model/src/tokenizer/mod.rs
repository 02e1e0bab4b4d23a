//! Tokenizers of all supported kinds: text to tokens and back. Adds no tokens by itself; the caller
//! decides whether a prompt starts with BOS.

mod bpe;
mod cancel;
mod from_folder;
mod from_gguf;
mod library;
pub(crate) mod normalizer;
mod pattern;
mod pre_tokenizer;
mod sentence_piece;
mod special;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod whole;
mod words;

use std::cell::Cell;
use std::ops::Range;
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::token::TokenId;

pub use cancel::unless_stopped;
pub(super) use from_folder::{from_folder, kind as folder_kind, special_tokens as folder_special_tokens};
pub(super) use from_gguf::{
    from_gguf, kind as gguf_kind, special_tokens as gguf_special_tokens, vocabulary_size,
};
use library::Library;
use sentence_piece::SentencePiece;
pub use special::{SpecialToken, SpecialTokens};
use table::Table;
use whole::{Whole, is_read};

/// Treatment of special tokens' texts inside a text to encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// Plain text like any other, for user input.
    Ignore,
    /// The special token, for a rendered chat template.
    Parse,
}

/// A model's tokenizer.
pub struct Tokenizer {
    /// Path of the model, for error messages.
    path: PathBuf,
    encoder: Encoder,
    table: Table,
    special: SpecialTokens,
    ends: Vec<TokenId>,
    /// Bytes of the longest text that one token stands for.
    longest: usize,
    /// True if encoding prepends a space, which decoding removes.
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
        let bytes = |token| table.bytes(token).len().max(table.piece(token).len());
        let longest = (0..table.len() as TokenId).map(bytes).max().unwrap_or(1).max(1);
        Self { path, encoder, table, special, ends, longest, strips_leading_space }
    }

    /// Fewest tokens that a text of `bytes` bytes can have, without encoding it.
    pub fn at_least(&self, bytes: usize) -> usize {
        bytes.div_ceil(self.longest)
    }

    /// Encodes `text`, without adding tokens.
    ///
    /// # Errors
    /// `Error::Tokenizer` if the vocabulary cannot express a character; `Error::Cancelled` within
    /// [`unless_stopped`].
    pub fn encode(&self, text: &str, special: Special) -> Result<Vec<TokenId>> {
        match &self.encoder {
            Encoder::SentencePiece(pieces) => pieces.encode(text, special),
            Encoder::Library(library) => library.encode(text, special == Special::Parse),
        }
        .map_err(|reason| self.error(reason))
    }

    /// Encodes plain `text` as within a longer text, where no space is prepended; `None` if the
    /// vocabulary cannot express it, or if the library prepends one anyway.
    pub fn encode_within(&self, text: &str) -> Option<Vec<TokenId>> {
        match &self.encoder {
            Encoder::SentencePiece(pieces) => pieces.encode_within(text).ok(),
            Encoder::Library(_) if self.strips_leading_space => None,
            Encoder::Library(library) => library.encode(text, false).ok(),
        }
    }

    fn error(&self, reason: String) -> Error {
        if cancel::is_cancelled() {
            return Error::Cancelled;
        }
        Error::Tokenizer { path: self.path.clone(), reason }
    }

    /// Encodes `text` with special and added tokens, except where they overlap `plain`, ascending
    /// ranges of plain text. Text between recognised tokens is encoded as one piece.
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
        let forged = || match &self.encoder {
            Encoder::SentencePiece(_) => false,
            Encoder::Library(library) => library.normalises_to_tokens(text),
        };
        if !hides.get() && !forged() {
            return self.encode(text, Special::Parse);
        }
        match &self.encoder {
            Encoder::SentencePiece(pieces) => pieces.encode_around(text, plain),
            Encoder::Library(library) => library.encode_around(text, plain),
        }
        .map_err(|reason| self.error(reason))
    }

    /// Returns the ranges of `text` that spell special or added tokens, or a part of one at either
    /// end that could complete with adjacent text; ascending. With `controls`, considers control
    /// tokens only. Skips added tokens that are words, white space or HTML.
    pub fn spelled(&self, text: &str, controls: bool) -> Vec<Range<usize>> {
        self.whole().spelled(text, controls)
    }

    fn whole(&self) -> &Whole {
        match &self.encoder {
            Encoder::SentencePiece(pieces) => pieces.whole(),
            Encoder::Library(library) => library.whole(),
        }
    }

    /// Decodes `tokens` from the beginning of a text. Bytes that are not UTF-8 become U+FFFD;
    /// control tokens have no text.
    pub fn decode(&self, tokens: &[TokenId]) -> String {
        let mut bytes = Vec::new();
        let mut drops_space = self.strips_leading_space;
        for &token in tokens {
            bytes.extend_from_slice(self.next_bytes(token, &mut drops_space));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the bytes of a token; none for control tokens and unknown ids.
    pub fn decode_bytes(&self, token: TokenId) -> &[u8] {
        self.table.bytes(token)
    }

    /// Returns a token for display: special tokens by name, bytes that are not text as `<0xE2>`.
    pub fn piece(&self, token: TokenId) -> String {
        self.table.piece(token)
    }

    /// Returns whether this is a control token, which has no text.
    pub fn is_control(&self, token: TokenId) -> bool {
        self.table.is_control(token)
    }

    /// Returns whether this is a control token, an added token or an unused one.
    pub fn is_special(&self, token: TokenId) -> bool {
        self.table.is_special(token)
    }

    /// Returns the id of the token with this spelling in the vocabulary. Byte-level and
    /// SentencePiece vocabularies spell a space as in `Ġthe` and `▁the`.
    pub fn id_of(&self, text: &str) -> Option<TokenId> {
        match &self.encoder {
            Encoder::SentencePiece(pieces) => pieces.id_of(text),
            Encoder::Library(library) => library.id_of(text),
        }
    }

    /// Returns the id of the special token with this text: see [`Self::is_special`].
    pub fn special_id(&self, text: &str) -> Option<TokenId> {
        self.id_of(text).filter(|&token| self.is_special(token))
    }

    /// Returns the token that starts a text, if the model has one.
    pub fn bos(&self) -> Option<TokenId> {
        self.special.bos.as_ref().map(|token| token.id)
    }

    /// Returns whether a raw prompt starts with [`Self::bos`].
    pub fn adds_bos(&self) -> bool {
        self.special.adds_bos
    }

    /// Returns all tokens that end a reply.
    pub fn ends(&self) -> &[TokenId] {
        &self.ends
    }

    /// Makes a token end replies, such as the marker that a template writes after a reply.
    pub fn add_end(&mut self, token: TokenId) {
        if !self.ends.contains(&token) {
            self.ends.push(token);
        }
    }

    /// Returns tokens that together stand for `bytes`, such as the beginning of a character: as few
    /// as a greedy search finds. Bytes without a token are left out.
    pub fn byte_tokens(&self, mut bytes: &[u8]) -> Vec<TokenId> {
        let mut tokens = Vec::new();
        while !bytes.is_empty() {
            let of = |part: &[u8]| {
                let all = 0..self.vocabulary() as TokenId;
                all.into_iter().find(|&token| self.decode_bytes(token) == part && !self.is_special(token))
            };
            let found = (1..=bytes.len()).rev().find_map(|length| Some((length, of(&bytes[..length])?)));
            tokens.extend(found.map(|(_, token)| token));
            bytes = &bytes[found.map_or(1, |(length, _)| length)..];
        }
        tokens
    }

    /// Returns the special tokens with their texts.
    pub fn special(&self) -> &SpecialTokens {
        &self.special
    }

    /// Number of tokens; ids are below it.
    pub fn vocabulary(&self) -> usize {
        self.table.len()
    }

    /// Returns whether decoding removes the space that encoding prepends.
    pub(super) fn strips_leading_space(&self) -> bool {
        self.strips_leading_space
    }

    /// Returns the bytes that a token adds to a text. `drops_space` is true until the first bytes,
    /// whose leading space was prepended by encoding.
    pub(super) fn next_bytes(&self, token: TokenId, drops_space: &mut bool) -> &[u8] {
        let bytes = self.decode_bytes(token);
        let drops = !bytes.is_empty() && std::mem::take(drops_space);
        if drops { bytes.strip_prefix(b" ").unwrap_or(bytes) } else { bytes }
    }
}
