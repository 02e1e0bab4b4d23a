//! Tokenizers of Hugging Face folders: tokenizer.json, and special tokens from the documents beside
//! it.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value as Json;
use tokenizers::AddedToken;

use super::library::{Built, Library, Unused};
use super::normalizer;
use super::special::{SpecialToken, SpecialTokens, is_shown};
use super::table::{Kind, Spelling, Table, byte_token};
use super::{Encoder, Tokenizer};
use crate::error::{Error, Result};
use crate::folder::{Folder, read_document};
use crate::limits;
use crate::token::TokenId;

/// Longest piece of a Unigram vocabulary, in bytes; the library looks for all pieces at every
/// position of a text.
const LONGEST_PIECE: usize = 1024;
/// Type of a vocabulary whose pieces have scores.
const UNIGRAM: &str = "Unigram";
/// Unused token ids that are allowed in a vocabulary, beside as many as it has tokens.
const LARGEST_GAP: usize = 4096;

/// Parts of tokenizer.json that the library does not expose. Skips the vocabulary, most of the
/// document.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    added_tokens: Vec<Added>,
    #[serde(default)]
    normalizer: Json,
    #[serde(default)]
    model: Model,
    #[serde(default)]
    post_processor: Json,
    #[serde(default)]
    decoder: Json,
}

/// The `model` part of tokenizer.json.
#[derive(Deserialize, Default)]
struct Model {
    /// Missing in some old documents.
    #[serde(rename = "type")]
    kind: Option<String>,
    merges: Option<IgnoredAny>,
    dropout: Option<f64>,
}

#[derive(Deserialize)]
struct Added {
    /// In tokenizer_config.json, the token's key.
    #[serde(default)]
    id: TokenId,
    content: String,
    #[serde(default)]
    special: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    single_word: bool,
    normalized: Option<bool>,
}

/// Builds the tokenizer.
///
/// # Errors
/// `Error::Tokenizer` if tokenizer.json is missing, damaged, or of a kind that does not preserve
/// bytes.
pub(crate) fn from_folder(folder: &Folder) -> Result<Tokenizer> {
    let path = tokenizer_path(folder);
    let failed = |reason: String| Error::Tokenizer { path: path.clone(), reason };
    let text = read(folder)?;
    let document = parse(folder, &text)?;
    let special = roles(folder, &document);
    let spelling = known_spelling(folder, &document)?;
    let library = checked(&document).and_then(|()| build(&text, &document)).map_err(failed)?;
    let size = size(&library).map_err(failed)?;
    let texts: Vec<Option<String>> = (0..size).map(|id| library.id_to_token(id)).collect();
    if document.model.kind.as_deref() == Some(UNIGRAM) {
        pieces(&texts).map_err(failed)?;
    }
    let mut kinds: Vec<Kind> = texts.iter().map(|text| token_kind(text.as_deref(), spelling)).collect();
    for added in &document.added_tokens {
        if let Some(kind) = kinds.get_mut(added.id as usize) {
            let shown = !added.special || is_shown(&added.content);
            *kind = if shown { Kind::Added } else { Kind::Control };
        }
    }
    let tokens = texts.iter().map(|text| text.as_deref().unwrap_or_default()).zip(kinds);
    let table = Table::new(spelling, tokens);
    let strips = strips_leading_space(&document.decoder);
    let encoder = Encoder::Library(Box::new(Library::new(library)));
    Ok(Tokenizer::new(path, encoder, table, special, strips))
}

/// Checks that a document uses only what language models need and takes time and memory
/// proportional to a text. [`Words`](super::words::Words) checks the pre-tokenizer.
///
/// # Errors
/// The reason to reject the document.
fn checked(document: &Document) -> std::result::Result<(), String> {
    let Model { kind, merges, dropout } = &document.model;
    match kind.as_deref() {
        Some("BPE" | UNIGRAM) => {}
        None if merges.is_some() => {}
        kind => {
            return Err(format!(
                "expected a vocabulary of kind BPE or {UNIGRAM}, found {}",
                kind.unwrap_or("none")
            ));
        }
    }
    if dropout.is_some_and(|dropout| dropout != 0.0) {
        return Err("its dropout chooses tokens by chance".to_owned());
    }
    super::whole::check(document.added_tokens.iter().map(|added| added.content.as_str()))?;
    normalizer::check(&document.normalizer)
}

/// Checks the pieces of a Unigram vocabulary. An empty piece would send the library into an endless
/// loop.
///
/// # Errors
/// The reason to reject the pieces.
fn pieces(texts: &[Option<String>]) -> std::result::Result<(), String> {
    let lengths = texts.iter().flatten().map(String::len);
    match lengths.into_iter().find(|&length| length == 0 || length > LONGEST_PIECE) {
        Some(length) => Err(format!("expected 1 to {LONGEST_PIECE} bytes in a piece, found {length}")),
        None => Ok(()),
    }
}

/// Returns the largest token id plus one.
///
/// # Errors
/// A reason if ids have large gaps, for which no model has rows.
fn size(library: &Built) -> std::result::Result<u32, String> {
    let vocabulary = library.get_vocab(true);
    let greatest = vocabulary.values().max().copied().unwrap_or(0);
    if greatest as usize > vocabulary.len() * 2 + LARGEST_GAP {
        return Err(format!(
            "expected {} tokens numbered without gaps, found number {greatest}",
            vocabulary.len()
        ));
    }
    Ok(greatest + 1)
}

/// Builds the library's tokenizer, adds the tokens that only tokenizer_config.json lists, and
/// disables post-processing.
///
/// # Errors
/// The library's reason to reject the document.
fn build(text: &[u8], document: &Document) -> std::result::Result<Built, String> {
    // The library panics on some damaged documents, such as one with a merge longer than every
    // token.
    let built = catch_unwind(AssertUnwindSafe(|| {
        let mut library = Built::from_bytes(text).map_err(|error| error.to_string())?;
        library.with_truncation(None).map_err(|error| error.to_string())?;
        library.with_padding(None).with_post_processor(None::<Unused>).with_decoder(None::<Unused>);
        add(&mut library, document)?;
        Ok(library)
    }));
    built.unwrap_or_else(|_| {
        Err("expected a tokenizer document, found one that contradicts itself".to_owned())
    })
}

/// Adds the tokens that only tokenizer_config.json lists, and checks the ids of all added tokens.
fn add(library: &mut Built, document: &Document) -> std::result::Result<(), String> {
    let new = document.added_tokens.iter().filter(|added| library.token_to_id(&added.content).is_none());
    let new: Vec<AddedToken> = new
        .map(|added| {
            AddedToken::from(added.content.as_str(), added.special)
                .lstrip(added.lstrip)
                .rstrip(added.rstrip)
                .single_word(added.single_word)
                .normalized(added.normalized.unwrap_or(!added.special))
        })
        .collect();
    // At once, because the library builds its search tree again with each call.
    library.add_tokens(new).map_err(|error| error.to_string())?;
    for added in &document.added_tokens {
        match library.token_to_id(&added.content) {
            Some(id) if id == added.id && !added.content.is_empty() => {}
            found => {
                let found = found.map_or_else(|| "none".to_owned(), |id| id.to_string());
                return Err(format!(
                    "expected the added token '{}' to be number {}, found {found}",
                    added.content, added.id
                ));
            }
        }
    }
    Ok(())
}

/// Returns the kind of tokenizer for display.
///
/// # Errors
/// As [`from_folder`].
pub(crate) fn kind(folder: &Folder) -> Result<String> {
    let document = parse(folder, &read(folder)?)?;
    Ok(known_spelling(folder, &document)?.name().into())
}

/// Returns the special tokens without building the tokenizer.
///
/// # Errors
/// As [`from_folder`].
pub(crate) fn special_tokens(folder: &Folder) -> Result<SpecialTokens> {
    let text = read(folder)?;
    Ok(roles(folder, &parse(folder, &text)?))
}

fn tokenizer_path(folder: &Folder) -> PathBuf {
    folder.path.join("tokenizer.json")
}

fn read(folder: &Folder) -> Result<Vec<u8>> {
    read_document(&tokenizer_path(folder), limits::TOKENIZER)?.ok_or_else(|| Error::Tokenizer {
        path: folder.path.clone(),
        reason: "expected tokenizer.json in the folder, found none".into(),
    })
}

fn parse(folder: &Folder, text: &[u8]) -> Result<Document> {
    let mut document: Document = serde_json::from_slice(text).map_err(|error| Error::Tokenizer {
        path: tokenizer_path(folder),
        reason: format!("expected a tokenizer document, found {error}"),
    })?;
    let more = added_by_config(folder)?;
    let known: HashSet<String> = document.added_tokens.iter().map(|added| added.content.clone()).collect();
    document.added_tokens.extend(more.into_iter().filter(|added| !known.contains(&added.content)));
    Ok(document)
}

/// Reads the tokens in tokenizer_config.json, ordered by id.
fn added_by_config(folder: &Folder) -> Result<Vec<Added>> {
    const KEY: &str = "added_tokens_decoder";
    let listed = folder.tokenizer_config[KEY].as_object().into_iter().flatten();
    let mut tokens = listed
        .map(|(number, token)| {
            let id = number.parse().ok()?;
            Some(Added { id, ..Added::deserialize(token).ok()? })
        })
        .collect::<Option<Vec<Added>>>()
        .ok_or_else(|| Error::Tokenizer {
            path: folder.path.join("tokenizer_config.json"),
            reason: format!("expected tokens keyed by their numbers in {KEY}, found something else"),
        })?;
    tokens.sort_by_key(|token| token.id);
    Ok(tokens)
}

fn roles(folder: &Folder, document: &Document) -> SpecialTokens {
    let token = |added: &Added| SpecialToken { id: added.id, text: added.content.clone() };
    let by_text = |text: &str| document.added_tokens.iter().find(|added| added.content == text).map(token);
    let by_id = |id: u64| document.added_tokens.iter().find(|added| u64::from(added.id) == id).map(token);
    // A token is given as its text, or as an object with the text in `content`.
    let named = |key: &str| {
        [&folder.tokenizer_config, &folder.special_tokens_map].into_iter().find_map(|document| {
            let value = &document[key];
            by_text(value.as_str().or_else(|| value["content"].as_str())?)
        })
    };
    let bos = named("bos_token").or_else(|| folder.config["bos_token_id"].as_u64().and_then(by_id));
    let adds_bos = folder.tokenizer_config["add_bos_token"]
        .as_bool()
        .unwrap_or_else(|| bos.as_ref().is_some_and(|bos| begins_with(&document.post_processor, &bos.text)));
    let mut special = SpecialTokens { bos, adds_bos, eos: named("eos_token"), ..SpecialTokens::default() };
    if let Some(eos) = special.eos.clone() {
        special.add_end(eos);
    }
    for config in [&folder.generation_config, &folder.config] {
        let ids = match &config["eos_token_id"] {
            Json::Array(ids) => ids.as_slice(),
            id => std::slice::from_ref(id),
        };
        for id in ids.iter().filter_map(Json::as_i64).take(limits::ENDS) {
            // -1 and numbers that no vocabulary reaches mean none.
            let Ok(token) = TokenId::try_from(id) else {
                special.warnings.push(format!("eos_token_id is {id}, which is no token"));
                continue;
            };
            // A token that ends a reply counts even if it is not an added token.
            let unnamed = || SpecialToken { id: token, text: format!("token {id}") };
            special.add_end(by_id(u64::from(token)).unwrap_or_else(unnamed));
        }
    }
    let controls = document.added_tokens.iter().filter(|added| added.special);
    special.add_known_ends(controls.map(|added| SpecialToken { id: added.id, text: added.content.clone() }));
    special
}

/// Returns whether a post-processor prepends the special token `bos`.
fn begins_with(post_processor: &Json, bos: &str) -> bool {
    match post_processor["type"].as_str() {
        Some("TemplateProcessing") => post_processor["single"][0]["SpecialToken"]["id"] == bos,
        Some("Sequence") => steps(post_processor, "processors").any(|step| begins_with(step, bos)),
        _ => false,
    }
}

fn known_spelling(folder: &Folder, document: &Document) -> Result<Spelling> {
    spelling(&document.decoder).ok_or_else(|| Error::Tokenizer {
        path: tokenizer_path(folder),
        reason: "expected a byte-level or SentencePiece decoder, found another".into(),
    })
}

fn spelling(decoder: &Json) -> Option<Spelling> {
    match decoder["type"].as_str()? {
        "ByteLevel" => Some(Spelling::ByteLevel),
        "ByteFallback" | "Metaspace" => Some(Spelling::SentencePiece),
        "Sequence" => steps(decoder, "decoders").find_map(spelling),
        _ => None,
    }
}

fn strips_leading_space(decoder: &Json) -> bool {
    match decoder["type"].as_str() {
        Some("Strip") => decoder["content"] == " " && decoder["start"].as_u64() > Some(0),
        Some("Metaspace") => decoder["prepend_scheme"] != "never",
        Some("Sequence") => steps(decoder, "decoders").any(strips_leading_space),
        _ => false,
    }
}

fn steps<'a>(sequence: &'a Json, key: &str) -> impl Iterator<Item = &'a Json> {
    sequence[key].as_array().into_iter().flatten()
}

/// Returns the kind of a token that is not an added token.
fn token_kind(text: Option<&str>, spelling: Spelling) -> Kind {
    match text {
        None => Kind::Unused,
        Some(text) if spelling == Spelling::SentencePiece && byte_token(text).is_some() => Kind::Byte,
        Some(_) => Kind::Normal,
    }
}
