//! The tokenizer that a GGUF header describes.

use candle_core::quantized::gguf_file::Value;

use super::byte_level::{self, PreTokenizer};
use super::sentence_piece::SentencePiece;
use super::special::{ENDS, SpecialToken, SpecialTokens};
use super::table::{Kind, Spelling, Table};
use super::{Encoder, Tokenizer};
use crate::error::{Error, Result};
use crate::model::gguf::Header;
use crate::trace::TokenId;

const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";
const TOKENS: &str = "tokenizer.ggml.tokens";
const TOKEN_TYPES: &str = "tokenizer.ggml.token_type";

/// Builds the tokenizer.
///
/// # Errors
/// `Error::Tokenizer` for a kind that is not known or lists that do not fit together.
pub(in crate::model) fn from_gguf(header: &Header) -> Result<Tokenizer> {
    let failed = |reason| Error::Tokenizer { path: header.path().to_owned(), reason };
    let tokens = tokens(header)?;
    let special = special_tokens(header)?;
    let (encoder, spelling, adds_space) = match spelling(header)? {
        Spelling::ByteLevel => {
            let pre = pre_tokenizer(header)?;
            let merges = strings(header, "tokenizer.ggml.merges")?;
            let built = byte_level::build(pre, &tokens, merges.into_iter()).map_err(failed)?;
            (Encoder::library(built), Spelling::ByteLevel, false)
        }
        Spelling::SentencePiece => {
            let adds_space = header.boolean("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
            let unknown = token_id(header, "tokenizer.ggml.unknown_token_id", tokens.len())?;
            let pieces = SentencePiece::new(&tokens, scores(header)?, unknown, adds_space);
            (Encoder::SentencePiece(Box::new(pieces)), Spelling::SentencePiece, adds_space)
        }
    };
    let table = Table::new(spelling, tokens.into_iter());
    Ok(Tokenizer::new(header.path().to_owned(), encoder, table, special, adds_space))
}

/// The kind of tokenizer, for a person.
///
/// # Errors
/// As [`from_gguf`].
pub(in crate::model) fn kind(header: &Header) -> Result<String> {
    let spelling = spelling(header)?;
    if spelling == Spelling::SentencePiece {
        return Ok(spelling.name().into());
    }
    pre_tokenizer(header)?;
    let pre = header.string(PRE)?.unwrap_or("default");
    Ok(format!("{}, {pre}", spelling.name()))
}

/// Tokens the header lists.
pub(in crate::model) fn vocabulary_size(header: &Header) -> Result<usize> {
    Ok(header.array(TOKENS)?.map_or(0, <[Value]>::len))
}

/// The tokens with a role.
///
/// # Errors
/// `Error::BadModel` for values of a wrong type, `Error::Tokenizer` for ids outside the vocabulary.
pub(in crate::model) fn special_tokens(header: &Header) -> Result<SpecialTokens> {
    let tokens = tokens(header)?;
    let named = |key: &str| -> Result<Option<SpecialToken>> {
        let id = token_id(header, key, tokens.len())?;
        Ok(id.map(|id| SpecialToken { id, text: tokens[id as usize].0.to_owned() }))
    };
    let adds_bos_by_default = match spelling(header)? {
        Spelling::ByteLevel => pre_tokenizer(header)?.adds_bos,
        Spelling::SentencePiece => true,
    };
    let mut special = SpecialTokens {
        bos: named("tokenizer.ggml.bos_token_id")?,
        adds_bos: header.boolean("tokenizer.ggml.add_bos_token")?.unwrap_or(adds_bos_by_default),
        eos: named("tokenizer.ggml.eos_token_id")?,
        ends: Vec::new(),
    };
    let eot = named("tokenizer.ggml.eot_token_id")?;
    let eom = named("tokenizer.ggml.eom_token_id")?;
    for token in [special.eos.clone(), eot, eom].into_iter().flatten() {
        special.add_end(token);
    }
    for (&(text, kind), id) in tokens.iter().zip(0..) {
        if kind == Kind::Control && ENDS.contains(&text) {
            special.add_end(SpecialToken { id, text: text.to_owned() });
        }
    }
    Ok(special)
}

fn spelling(header: &Header) -> Result<Spelling> {
    match header.string(MODEL)? {
        Some("gpt2") => Ok(Spelling::ByteLevel),
        Some("llama") => Ok(Spelling::SentencePiece),
        other => Err(Error::Tokenizer {
            path: header.path().to_owned(),
            reason: format!(
                "expected the kind gpt2 (byte-level BPE) or llama (SentencePiece), found {}",
                other.unwrap_or("none")
            ),
        }),
    }
}

fn pre_tokenizer(header: &Header) -> Result<&'static PreTokenizer> {
    let name = header.string(PRE)?.unwrap_or("default");
    PreTokenizer::named(name).map_err(|reason| Error::Tokenizer { path: header.path().to_owned(), reason })
}

/// Spelling and kind of every token.
fn tokens(header: &Header) -> Result<Vec<(&str, Kind)>> {
    let texts = strings(header, TOKENS)?;
    let Some(types) = header.array(TOKEN_TYPES)? else {
        return Ok(texts.into_iter().map(|text| (text, Kind::Normal)).collect());
    };
    if types.len() != texts.len() {
        let expected = format!("{} entries in {TOKEN_TYPES}", texts.len());
        return Err(header.bad(expected, types.len().to_string()));
    }
    Ok(texts.into_iter().zip(types.iter().map(token_kind)).collect())
}

/// A token's kind; the numbers are GGUF's.
fn token_kind(value: &Value) -> Kind {
    let number = match *value {
        Value::I32(n) => i64::from(n),
        Value::U32(n) => i64::from(n),
        _ => 1,
    };
    match number {
        2 | 3 => Kind::Control,
        4 => Kind::Added,
        5 => Kind::Unused,
        6 => Kind::Byte,
        _ => Kind::Normal,
    }
}

fn scores(header: &Header) -> Result<Vec<f32>> {
    let key = "tokenizer.ggml.scores";
    let values = header.array(key)?.unwrap_or_default();
    let scores: Option<Vec<f32>> = values.iter().map(|value| value.to_f32().ok()).collect();
    scores.ok_or_else(|| header.bad(format!("numbers in {key}"), "other values".into()))
}

fn strings<'a>(header: &'a Header, key: &str) -> Result<Vec<&'a str>> {
    let values = header.array(key)?.ok_or_else(|| Error::Tokenizer {
        path: header.path().to_owned(),
        reason: format!("expected the list {key}, found none"),
    })?;
    let texts: Option<Vec<&str>> = values
        .iter()
        .map(|value| match value {
            Value::String(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    texts.ok_or_else(|| header.bad(format!("texts in {key}"), "other values".into()))
}

fn token_id(header: &Header, key: &str, vocabulary: usize) -> Result<Option<TokenId>> {
    match header.integer(key)? {
        Some(id) if id >= vocabulary as u64 => {
            Err(header.bad(format!("{key} below {vocabulary}"), id.to_string()))
        }
        id => Ok(id.map(|id| id as TokenId)),
    }
}
