//! Tokenizers of embedding models. They need not give a text back, so that they are simpler than
//! those of language models.

use std::panic::catch_unwind;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json, json};
use tokenizers::Tokenizer;

use crate::error::{Error, Result};
use crate::folder::read_document;
use crate::gguf::Header;
use crate::limits;
use crate::tokenizer::{normalizer, whole};

/// Beginning of a word in the vocabularies of GGUF files; elsewhere its continuation is marked.
const WORD: char = '\u{2581}';
const CONTINUED: &str = "##";

/// Longest word in characters that is divided into tokens; a longer one is unknown.
const LONGEST_WORD: usize = 100;

/// Kinds of vocabularies and of pre-tokenizers that are read: their time is proportional to a text.
const VOCABULARIES: [&str; 3] = ["BPE", "Unigram", "WordPiece"];
const PRE_TOKENIZERS: [&str; 7] =
    ["BertPreTokenizer", "ByteLevel", "Digits", "Metaspace", "Punctuation", "Whitespace", "WhitespaceSplit"];

/// Longest piece of a vocabulary in bytes.
const LONGEST_PIECE: usize = 1024;

/// Reads tokenizer.json.
///
/// # Errors
/// `Error::Tokenizer` if it is missing or damaged, or of a kind that could take long.
pub(super) fn of_folder(folder: &Path) -> Result<Tokenizer> {
    let path = folder.join("tokenizer.json");
    let failed = |reason: String| Error::Tokenizer { path: path.clone(), reason };
    let bytes = read_document(&path, limits::TOKENIZER)?;
    let bytes = bytes.ok_or_else(|| failed("there is no tokenizer.json".to_owned()))?;
    let document = serde_json::from_slice(&bytes).map_err(|error| failed(error.to_string()))?;
    check(&document).map_err(failed)?;
    // The library panics on some damaged documents.
    let built = catch_unwind(|| {
        let mut tokenizer = Tokenizer::from_bytes(&bytes)?;
        tokenizer.with_truncation(None)?;
        tokenizer.with_padding(None);
        Ok::<_, tokenizers::Error>(tokenizer)
    });
    let built = built.map_err(|_| failed("it contradicts itself".to_owned()))?;
    built.map_err(|error| failed(error.to_string()))
}

/// Checks that a tokenizer.json takes time and memory proportional to a text.
///
/// # Errors
/// The reason to reject it.
fn check(document: &Json) -> std::result::Result<(), String> {
    let (model, kind) = (&document["model"], document["model"]["type"].as_str().unwrap_or("none"));
    if !VOCABULARIES.contains(&kind) {
        return Err(format!("expected a vocabulary of kind {}, found {kind}", VOCABULARIES.join(", ")));
    }
    if model["dropout"].as_f64().is_some_and(|dropout| dropout != 0.0) {
        return Err("its dropout chooses tokens by chance".to_owned());
    }
    if kind == "Unigram" {
        // An empty piece would send the library into an endless loop.
        let pieces = model["vocab"].as_array().into_iter().flatten();
        let mut lengths = pieces.map(|piece| piece[0].as_str().unwrap_or_default().len());
        if let Some(length) = lengths.find(|length| !(1..=LONGEST_PIECE).contains(length)) {
            return Err(format!("expected 1 to {LONGEST_PIECE} bytes in a piece, found {length}"));
        }
    }
    let added = document["added_tokens"].as_array().into_iter().flatten();
    whole::check(added.filter_map(|token| token["content"].as_str()))?;
    for step in normalizer::steps(&document["pre_tokenizer"], "pretokenizers")? {
        let kind = step["type"].as_str().unwrap_or("none");
        if !PRE_TOKENIZERS.contains(&kind) {
            return Err(format!("it divides a text by '{kind}', which is not known here"));
        }
    }
    normalizer::check_with(&document["normalizer"], |step| match step["type"].as_str() {
        // Decomposed, with spaces around some letters.
        Some("BertNormalizer") => Ok(5),
        Some("Precompiled") => replacements(step["precompiled_charsmap"].as_str().unwrap_or_default()),
        _ => normalizer::grows(step),
    })
}

/// Factor by which SentencePiece's table of replacements may lengthen a text: the length of the
/// longest replacement. The table begins with the size of a trie; the replacements follow it, each
/// with a 0 at its end.
///
/// # Errors
/// The reason to reject it.
fn replacements(table: &str) -> std::result::Result<usize, String> {
    let damaged = || "its table of replacements is damaged".to_owned();
    let table = STANDARD.decode(table).map_err(|_| damaged())?;
    let (size, rest) = table.split_first_chunk().ok_or_else(damaged)?;
    let texts = rest.get(u32::from_le_bytes(*size) as usize..).ok_or_else(damaged)?;
    match texts.split(|byte| *byte == 0).map(<[u8]>::len).max().unwrap_or(0) {
        longest if longest > normalizer::LONGEST => {
            Err(format!("it makes a text longer by {longest} bytes in one place"))
        }
        // Replaced letters have one byte or more; those with long replacements have three.
        longest => Ok(longest.div_ceil(3).max(1)),
    }
}

/// Makes the WordPiece tokenizer of a GGUF file, with lower case and without accents as in
/// llama.cpp.
///
/// # Errors
/// `Error::Tokenizer` for another kind.
pub(super) fn of_gguf(header: &Header) -> Result<Tokenizer> {
    let failed = |reason: String| Error::Tokenizer { path: header.path().to_owned(), reason };
    let kind = header.string("tokenizer.ggml.model")?.unwrap_or("none");
    if kind != "bert" {
        return Err(failed(format!("expected a vocabulary of kind bert, found {kind}")));
    }
    let texts = header.list("tokenizer.ggml.tokens")?.and_then(|list| list.texts()).unwrap_or_default();
    let tokens: Vec<String> = texts.iter().map(|text| piece(text)).collect();
    let token_of = |key: &str, usual: &str| -> Result<Special> {
        let id = header.integer(&format!("tokenizer.ggml.{key}"))?;
        let id = id.or_else(|| tokens.iter().position(|token| token == usual).map(|id| id as u64));
        let id = id.filter(|id| *id < tokens.len() as u64);
        let id = id.ok_or_else(|| failed(format!("it has no token {usual}")))? as usize;
        Ok(Special { content: tokens[id].clone(), id: id as u32 })
    };
    let (first, last) = (token_of("cls_token_id", "[CLS]")?, token_of("seperator_token_id", "[SEP]")?);
    let unknown = token_of("unknown_token_id", "[UNK]")?.content;
    let vocabulary: Map<String, Json> =
        (0..).zip(&tokens).map(|(id, token)| (token.clone(), id.into())).collect();
    let document = json!({
        "added_tokens": [first.json(), last.json()],
        "normalizer": { "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                        "strip_accents": true, "lowercase": true },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": { "type": "BertProcessing", "cls": [first.content, first.id],
                            "sep": [last.content, last.id] },
        "model": { "type": "WordPiece", "unk_token": unknown, "continuing_subword_prefix": CONTINUED,
                   "max_input_chars_per_word": LONGEST_WORD, "vocab": vocabulary },
    });
    Tokenizer::from_bytes(document.to_string()).map_err(|error| failed(error.to_string()))
}

/// A special token.
struct Special {
    content: String,
    id: u32,
}

impl Special {
    /// Entry of tokenizer.json.
    fn json(&self) -> Json {
        json!({
            "id": self.id, "content": self.content, "special": true, "normalized": false, "single_word": false,
            "lstrip": false, "rstrip": false,
        })
    }
}

/// A token as WordPiece writes it.
fn piece(text: &str) -> String {
    match text.strip_prefix(WORD) {
        Some(word) => word.to_owned(),
        None if text.starts_with('[') && text.ends_with(']') => text.to_owned(),
        None => format!("{CONTINUED}{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document with a change in one of its parts.
    fn with(part: &str, value: Json) -> Json {
        let mut document = json!({
            "model": { "type": "Unigram", "vocab": [["a", 0.0]] },
            "added_tokens": [{ "content": "<s>" }],
            "normalizer": { "type": "Sequence", "normalizers": [
                { "type": "Precompiled", "precompiled_charsmap": table(&["a", "de"]) },
                { "type": "Replace", "pattern": { "Regex": " {2,}" }, "content": " " },
            ] },
            "pre_tokenizer": { "type": "Sequence", "pretokenizers": [
                { "type": "WhitespaceSplit" }, { "type": "Metaspace" },
            ] },
        });
        document[part] = value;
        document
    }

    /// A table of replacements with a trie of four bytes.
    fn table(replacements: &[&str]) -> String {
        let texts: String = replacements.iter().map(|text| format!("{text}\0")).collect();
        STANDARD.encode([&4u32.to_le_bytes()[..], &[0; 4], texts.as_bytes()].concat())
    }

    #[test]
    fn documents_of_published_models_are_read_and_those_that_could_take_long_are_not() {
        assert_eq!(check(&with("decoder", Json::Null)), Ok(()));
        assert_eq!(check(&with("normalizer", json!({ "type": "BertNormalizer" }))), Ok(()));
        let precompiled = |table: String| json!({ "type": "Precompiled", "precompiled_charsmap": table });
        for (part, value, expected) in [
            ("model", json!({ "type": "WordLevel" }), "found WordLevel"),
            ("model", json!({ "type": "BPE", "dropout": 0.1 }), "by chance"),
            ("model", json!({ "type": "Unigram", "vocab": [["", 0.0]] }), "found 0"),
            ("added_tokens", json!([{ "content": "x".repeat(2000) }]), "found 2000"),
            ("pre_tokenizer", json!({ "type": "Split", "pattern": { "Regex": "(a+)+$" } }), "'Split'"),
            (
                "normalizer",
                json!({ "type": "Replace", "pattern": { "Regex": "(a+)+" }, "content": "" }),
                "(a+)+",
            ),
            ("normalizer", precompiled(table(&[&"x".repeat(65)])), "longer by 65 bytes"),
            ("normalizer", precompiled("AAAA".to_owned()), "damaged"),
            ("normalizer", precompiled(STANDARD.encode([255; 12])), "damaged"),
        ] {
            let refused = check(&with(part, value)).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
