//! Tokenizers of GGUF files.

use std::borrow::Cow;

use super::bpe;
use super::library::Library;
use super::pre_tokenizer::PreTokenizer;
use super::sentence_piece::SentencePiece;
use super::special::{ENDS, SpecialToken, SpecialTokens, is_shown};
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
    let whole = tokens.iter().filter(|(_, kind)| matches!(kind, Kind::Added | Kind::Control));
    super::whole::check(whole.map(|&(text, _)| text)).map_err(failed)?;
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
            let unknown = token_id(header, "tokenizer.ggml.unknown_token_id", tokens.len(), &mut Vec::new())?;
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
    let mut warnings = Vec::new();
    let mut named = |key: &str| -> Result<Option<SpecialToken>> {
        let id = token_id(header, key, tokens.len(), &mut warnings)?;
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
        ..SpecialTokens::default()
    };
    let eot = named("tokenizer.ggml.eot_token_id")?;
    let eom = named("tokenizer.ggml.eom_token_id")?;
    for token in [special.eos.clone(), eot, eom].into_iter().flatten() {
        special.add_end(token);
    }
    special.warnings = warnings;
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

/// Markers listed as normal text that are searched for in the template, more than any model has.
const MOST_MARKERS: usize = 1024;

/// Returns the spelling and kind of each token.
fn tokens<'a>(header: &Header, texts: &'a [Cow<'_, str>]) -> Result<Vec<(&'a str, Kind)>> {
    let texts = texts.iter().map(Cow::as_ref);
    let template = header.chat_template()?.unwrap_or_default();
    let Some(types) = header.list(TOKEN_TYPES)? else {
        return Ok(texts.map(|text| (text, Kind::Normal)).collect());
    };
    let types = as_long(header, TOKEN_TYPES, types, texts.len())?
        .integers()
        .ok_or_else(|| header.bad(format!("whole numbers in {TOKEN_TYPES}"), "other values".into()))?;
    let mut searches = 0..MOST_MARKERS;
    let mut in_template = |text: &str| searches.next().is_some() && template.contains(text);
    Ok(texts
        .zip(types)
        .map(|(text, number)| match token_kind(text, number) {
            Kind::Normal if is_marker(text) && in_template(text) => (text, marker_kind(text)),
            kind => (text, kind),
        })
        .collect())
}

/// Returns true for names that only markers of turns have: `<|im_end|>`, `[INST]`.
fn is_marker(text: &str) -> bool {
    let inner = |open: &str, close: &str| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    let barred =
        inner("<|", "|>").is_some_and(|name| !name.is_empty() && !name.contains(char::is_whitespace));
    let capitals = |name: &str| name.len() >= 3 && name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let bracketed = inner("[", "]").is_some_and(|name| capitals(name.strip_prefix('/').unwrap_or(name)));
    barred || bracketed || ENDS.contains(&text)
}

/// Kind of a marker that some writers list as normal text. The template means the token, and user
/// input must not spell it.
fn marker_kind(text: &str) -> Kind {
    if ENDS.contains(&text) && !is_shown(text) { Kind::Control } else { Kind::Added }
}

/// Maps GGUF's token type to a kind.
fn token_kind(text: &str, number: i64) -> Kind {
    match number {
        2 | 3 if is_shown(text) => Kind::Added,
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

/// Returns the id of a token with a role. An id outside the vocabulary means none to many writers
/// (-1, the largest number of its type); it is ignored with one of the `warnings`.
fn token_id(
    header: &Header,
    key: &str,
    vocabulary: usize,
    warnings: &mut Vec<String>,
) -> Result<Option<TokenId>> {
    let Some(id) = header.signed(key)? else { return Ok(None) };
    let found = usize::try_from(id).ok().filter(|&id| id < vocabulary);
    if found.is_none() {
        warnings.push(format!("{key} is {id}, which is no token"));
    }
    Ok(found.map(|id| id as TokenId))
}
