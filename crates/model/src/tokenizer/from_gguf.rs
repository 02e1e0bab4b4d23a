//! Tokenizers of GGUF files.

use std::borrow::Cow;

use super::bpe;
use super::library::Library;
use super::pre_tokenizer::PreTokenizer;
use super::sentence_piece::SentencePiece;
use super::special::{ENDS, SHOWN, SpecialToken, SpecialTokens};
use super::table::{Kind, Spelling, Table};
use super::{Encoder, Tokenizer};
use crate::error::{Error, Result};
use crate::gguf::{Header, List};
use crate::token::TokenId;

const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";
const TOKENS: &str = "tokenizer.ggml.tokens";
const TOKEN_TYPES: &str = "tokenizer.ggml.token_type";

/// Phi-3 tokens that do not absorb the white space after them. Its other special tokens do,
/// according to its tokenizer.json; GGUF has no key for it.
const PHI3_KEEPS_SPACE: [&str; 3] = ["<unk>", "<s>", "<|endoftext|>"];

/// Builds the tokenizer.
///
/// # Errors
/// `Error::Tokenizer` for an unsupported kind or inconsistent lists.
pub(crate) fn from_gguf(header: &Header) -> Result<Tokenizer> {
    let failed = |reason| Error::Tokenizer { path: header.path().to_owned(), reason };
    let spelled = texts(header, TOKENS)?;
    let tokens = tokens(header, &spelled)?;
    let special = special_tokens(header)?;
    let joined = method(header)?;
    let (encoder, adds_space) = match joined {
        Method::Bytes | Method::Characters => {
            let merges = texts(header, "tokenizer.ggml.merges")?;
            let merges = merges.iter().map(Cow::as_ref);
            let built = match joined {
                Method::Characters => bpe::over_characters(&tokens, merges),
                _ => bpe::over_bytes(pre_tokenizer(header)?, &tokens, merges),
            };
            (Encoder::Library(Box::new(Library::new(built.map_err(failed)?))), false)
        }
        Method::Pieces => {
            let adds_space = header.boolean("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
            let unknown = token_id(header, "tokenizer.ggml.unknown_token_id", tokens.len())?;
            let mut pieces = SentencePiece::new(&tokens, scores(header, tokens.len())?, unknown, adds_space);
            if header.string("general.architecture")? == Some("phi3") {
                pieces.drop_space_after(|token| !PHI3_KEEPS_SPACE.contains(&token));
            }
            (Encoder::SentencePiece(Box::new(pieces)), adds_space)
        }
    };
    let table = Table::new(joined.spelling(), tokens.into_iter());
    Ok(Tokenizer::new(header.path().to_owned(), encoder, table, special, adds_space))
}

/// Returns the kind of tokenizer for display.
///
/// # Errors
/// As [`from_gguf`].
pub(crate) fn kind(header: &Header) -> Result<String> {
    let name = match method(header)? {
        Method::Bytes => Spelling::ByteLevel.name(),
        Method::Pieces => return Ok(Spelling::SentencePiece.name().into()),
        Method::Characters => return Ok("BPE over characters".into()),
    };
    pre_tokenizer(header)?;
    let pre = header.string(PRE)?.unwrap_or("default");
    Ok(format!("{name}, {pre}"))
}

/// Returns the number of tokens in the header.
pub(crate) fn vocabulary_size(header: &Header) -> Result<usize> {
    Ok(header.list(TOKENS)?.map_or(0, |tokens| tokens.len()))
}

/// Returns the special tokens.
///
/// # Errors
/// `Error::BadModel` for values of a wrong type; `Error::Tokenizer` for an unsupported kind.
pub(crate) fn special_tokens(header: &Header) -> Result<SpecialTokens> {
    let spelled = texts(header, TOKENS)?;
    let tokens = tokens(header, &spelled)?;
    let named = |key: &str| -> Result<Option<SpecialToken>> {
        let id = token_id(header, key, tokens.len())?;
        Ok(id.map(|id| SpecialToken { id, text: tokens[id as usize].0.to_owned() }))
    };
    let adds_bos_by_default = match method(header)? {
        Method::Bytes => pre_tokenizer(header)?.adds_bos,
        Method::Pieces | Method::Characters => true,
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
    let controls = tokens.iter().zip(0..).filter(|((_, kind), _)| *kind == Kind::Control);
    special.add_known_ends(controls.map(|(&(text, _), id)| SpecialToken { id, text: text.to_owned() }));
    Ok(special)
}

/// Encoding algorithm.
#[derive(Clone, Copy)]
enum Method {
    /// Byte-level BPE.
    Bytes,
    /// SentencePiece BPE by scores.
    Pieces,
    /// BPE over characters within lines.
    Characters,
}

impl Method {
    fn spelling(self) -> Spelling {
        match self {
            Self::Bytes => Spelling::ByteLevel,
            Self::Pieces | Self::Characters => Spelling::SentencePiece,
        }
    }
}

fn method(header: &Header) -> Result<Method> {
    match header.string(MODEL)? {
        Some("gpt2") => Ok(Method::Bytes),
        Some("llama") => Ok(Method::Pieces),
        Some("gemma4") => Ok(Method::Characters),
        other => Err(Error::Tokenizer {
            path: header.path().to_owned(),
            reason: format!(
                "expected type gpt2 (byte-level BPE), llama (SentencePiece) or gemma4 (BPE over characters), \
                 found {}",
                other.unwrap_or("none")
            ),
        }),
    }
}

fn pre_tokenizer(header: &Header) -> Result<&'static PreTokenizer> {
    let name = header.string(PRE)?.unwrap_or("default");
    PreTokenizer::named(name).map_err(|reason| Error::Tokenizer { path: header.path().to_owned(), reason })
}

/// Returns the spelling and kind of each token.
fn tokens<'a>(header: &Header, texts: &'a [Cow<'_, str>]) -> Result<Vec<(&'a str, Kind)>> {
    let texts = texts.iter().map(Cow::as_ref);
    let Some(types) = header.list(TOKEN_TYPES)? else {
        return Ok(texts.map(|text| (text, Kind::Normal)).collect());
    };
    let types = as_long(header, TOKEN_TYPES, types, texts.len())?
        .integers()
        .ok_or_else(|| header.bad(format!("whole numbers in {TOKEN_TYPES}"), "other values".into()))?;
    Ok(texts.zip(types).map(|(text, number)| (text, token_kind(text, number))).collect())
}

/// Maps GGUF's token type to a kind.
fn token_kind(text: &str, number: i64) -> Kind {
    match number {
        2 | 3 if SHOWN.contains(&text) => Kind::Added,
        2 | 3 => Kind::Control,
        // Some writers list end-of-turn tokens as user-defined; user input must not end a turn.
        4 if ENDS.contains(&text) => Kind::Control,
        4 => Kind::Added,
        5 => Kind::Unused,
        6 => Kind::Byte,
        _ => Kind::Normal,
    }
}

fn scores(header: &Header, tokens: usize) -> Result<Vec<f32>> {
    const SCORES: &str = "tokenizer.ggml.scores";
    let list = header.list(SCORES)?.ok_or_else(|| missing(header, SCORES))?;
    let scores = as_long(header, SCORES, list, tokens)?
        .numbers()
        .ok_or_else(|| header.bad(format!("numbers in {SCORES}"), "other values".into()))?;
    Ok(scores.into_iter().map(|score| score as f32).collect())
}

/// Returns a list that must have an entry per token.
fn as_long<'a>(header: &Header, key: &str, list: List<'a>, tokens: usize) -> Result<List<'a>> {
    if list.len() == tokens {
        return Ok(list);
    }
    Err(header.bad(format!("{tokens} entries in {key}, one for each token"), list.len().to_string()))
}

fn texts<'a>(header: &'a Header, key: &str) -> Result<Vec<Cow<'a, str>>> {
    let list = header.list(key)?.ok_or_else(|| missing(header, key))?;
    list.texts().ok_or_else(|| header.bad(format!("texts in {key}"), "other values".into()))
}

fn missing(header: &Header, key: &str) -> Error {
    Error::Tokenizer {
        path: header.path().to_owned(),
        reason: format!("expected the list {key}, found none"),
    }
}

fn token_id(header: &Header, key: &str, vocabulary: usize) -> Result<Option<TokenId>> {
    match header.integer(key)? {
        Some(id) if id >= vocabulary as u64 => {
            Err(header.bad(format!("{key} below {vocabulary}"), id.to_string()))
        }
        id => Ok(id.map(|id| id as TokenId)),
    }
}
