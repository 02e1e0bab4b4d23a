//! Encoding with the `tokenizers` library: byte-level BPE, and tokenizer.json files. Panics that an
//! untrusted document provokes become errors.

use std::collections::HashMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use tokenizers::{
    Decoder, Encoding, Model, ModelWrapper, NormalizedString, Normalizer, NormalizerWrapper, OffsetType,
    PostProcessor, PreTokenizedString, PreTokenizer, Token, TokenizerImpl, normalizer,
};

use super::cancel::{self, CANCELLED};
use super::table::Kind;
use super::whole::{Mark, Whole, is_read};
use super::words::Words;
use crate::token::TokenId;

/// The library's tokenizer, without post-processor and decoder.
pub(super) type Built = TokenizerImpl<Stoppable, NormalizerWrapper, Words, Unused, Unused>;

/// The library's vocabulary. Its encoding stops at the next word once it is cancelled.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Stoppable(ModelWrapper);

impl<M: Into<ModelWrapper>> From<M> for Stoppable {
    fn from(model: M) -> Self {
        Self(model.into())
    }
}

impl Model for Stoppable {
    type Trainer = <ModelWrapper as Model>::Trainer;

    fn tokenize(&self, word: &str) -> tokenizers::Result<Vec<Token>> {
        if cancel::is_cancelled() { Err(CANCELLED.into()) } else { self.0.tokenize(word) }
    }

    fn token_to_id(&self, token: &str) -> Option<TokenId> {
        self.0.token_to_id(token)
    }

    fn id_to_token(&self, id: TokenId) -> Option<String> {
        self.0.id_to_token(id)
    }

    fn get_vocab(&self) -> HashMap<String, TokenId> {
        self.0.get_vocab()
    }

    fn get_vocab_size(&self) -> usize {
        self.0.get_vocab_size()
    }

    fn save(&self, folder: &Path, prefix: Option<&str>) -> tokenizers::Result<Vec<PathBuf>> {
        self.0.save(folder, prefix)
    }

    fn get_trainer(&self) -> Self::Trainer {
        self.0.get_trainer()
    }
}

/// Encoder on the `tokenizers` library.
pub(super) struct Library {
    /// Locked, because whether special tokens are text is a setting of the library's tokenizer:
    /// setting it and encoding belong together.
    tokenizer: Mutex<Built>,
    whole: Whole,
}

impl Library {
    pub fn new(tokenizer: Built) -> Self {
        let marks = tokenizer.get_added_tokens_decoder().into_iter().map(|(id, token)| {
            let kind = if token.special { Kind::Control } else { Kind::Added };
            let mark = Mark::new(token.content, id, kind);
            Mark { takes_before: token.lstrip, takes_behind: token.rstrip, ..mark }
        });
        let whole = Whole::new(marks);
        Self { tokenizer: Mutex::new(tokenizer), whole }
    }

    /// Returns the tokens that are matched whole.
    pub fn whole(&self) -> &Whole {
        &self.whole
    }

    pub fn id_of(&self, text: &str) -> Option<TokenId> {
        self.tokenizer().token_to_id(text)
    }

    /// Encodes `text`; `special` selects whether control tokens are recognised.
    ///
    /// # Errors
    /// A reason if the vocabulary cannot express a character, or splitting takes too long.
    pub fn encode(&self, text: &str, special: bool) -> Result<Vec<TokenId>, String> {
        let mut tokenizer = self.tokenizer();
        if cancel::is_cancelled() {
            return Err(CANCELLED.to_owned());
        }
        tokenizer.set_encode_special_tokens(!special);
        unharmed(|| tokenizer.encode_fast(text, false))
    }

    /// Encodes `text` with special and added tokens, except where they overlap `plain`, ascending
    /// ranges. Repeats the library's steps after another first one.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn encode_around(&self, text: &str, plain: &[Range<usize>]) -> Result<Vec<TokenId>, String> {
        let tokenizer = self.tokenizer();
        unharmed(|| {
            let mut parts = PreTokenizedString::from(text);
            parts.split(|_, whole| self.stretches(&whole, plain))?;
            if let Some(normalizer) = tokenizer.get_normalizer() {
                parts.normalize(|part| normalizer.normalize(part))?;
            }
            if let Some(words) = tokenizer.get_pre_tokenizer() {
                words.pre_tokenize(&mut parts)?;
            }
            parts.tokenize(|word| tokenizer.get_model().tokenize(word.get()))?;
            parts.into_encoding(None, 0, OffsetType::None)
        })
    }

    /// Returns whether normalising `text` spells a token that `text` itself does not. The library
    /// looks for some tokens after normalising, where full-width letters may have become ASCII.
    pub fn normalises_to_tokens(&self, text: &str) -> bool {
        let tokenizer = self.tokenizer();
        let Some(normalizer) = tokenizer.get_normalizer() else { return false };
        let mut normalised = NormalizedString::from(text);
        // A damaged document may make the library panic; its text then is encoded part by part.
        let done = catch_unwind(AssertUnwindSafe(|| normalizer.normalize(&mut normalised)));
        if !matches!(done, Ok(Ok(()))) {
            return true;
        }
        let mut counts = HashMap::<TokenId, isize>::new();
        for (text, by) in [(text, 1), (normalised.get(), -1)] {
            let stretches = self.whole.stretches(text, |_, mark| !mark.ordinary);
            for id in stretches.into_iter().filter_map(|(_, id)| id) {
                *counts.entry(id).or_default() += by;
            }
        }
        counts.into_values().any(|count| count < 0)
    }

    fn stretches(
        &self,
        text: &NormalizedString,
        plain: &[Range<usize>],
    ) -> tokenizers::Result<Vec<(NormalizedString, Option<Vec<Token>>)>> {
        let stretches = self.whole.stretches(text.get(), |range, mark| is_read(plain, &range, mark));
        let cut = |(range, id): (Range<usize>, Option<TokenId>)| {
            let length = range.len();
            let part = text
                .slice(normalizer::Range::Normalized(range))
                .ok_or("a token begins within a character")?;
            let token = id.map(|id| vec![Token::new(id, part.get().to_owned(), (0, length))]);
            Ok((part, token))
        };
        stretches.into_iter().map(cut).collect()
    }

    fn tokenizer(&self) -> MutexGuard<'_, Built> {
        self.tokenizer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `encode` and catches panics, which the library raises on some texts for inconsistent
/// documents.
fn unharmed(encode: impl FnOnce() -> tokenizers::Result<Encoding>) -> Result<Vec<TokenId>, String> {
    // A panic may leave only the word cache behind, which stays valid or locked.
    match catch_unwind(AssertUnwindSafe(encode)) {
        Ok(encoded) => encoded.map(|encoding| encoding.get_ids().to_vec()).map_err(|error| error.to_string()),
        Err(_) => Err("it contradicts itself and cannot encode this text".to_owned()),
    }
}

/// A part of tokenizer.json that is ignored.
pub(super) struct Unused;

impl<'de> Deserialize<'de> for Unused {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl PostProcessor for Unused {
    fn added_tokens(&self, _: bool) -> usize {
        0
    }

    fn process_encodings(&self, encodings: Vec<Encoding>, _: bool) -> tokenizers::Result<Vec<Encoding>> {
        Ok(encodings)
    }
}

impl Decoder for Unused {
    fn decode_chain(&self, tokens: Vec<String>) -> tokenizers::Result<Vec<String>> {
        Ok(tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_library_is_a_reason() {
        let reason = unharmed(|| panic!("a text that it has no place for")).unwrap_err();
        assert!(reason.contains("contradicts itself"), "{reason}");
    }
}
