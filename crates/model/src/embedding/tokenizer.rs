//! Tokenizers of embedding models. They need not give a text back, so that they are simpler than
//! those of language models.

use std::path::Path;

use serde_json::{Map, Value as Json, json};
use tokenizers::Tokenizer;

use crate::error::{Error, Result};
use crate::folder::read_document;
use crate::gguf::Header;
use crate::limits;

/// Beginning of a word in the vocabularies of GGUF files; elsewhere its continuation is marked.
const WORD: char = '\u{2581}';
const CONTINUED: &str = "##";

/// Longest word in characters that is divided into tokens; a longer one is unknown.
const LONGEST_WORD: usize = 100;

/// Reads tokenizer.json.
///
/// # Errors
/// `Error::Tokenizer` if it is missing or damaged.
pub(super) fn of_folder(folder: &Path) -> Result<Tokenizer> {
    let path = folder.join("tokenizer.json");
    let failed = |reason: String| Error::Tokenizer { path: path.clone(), reason };
    let bytes = read_document(&path, limits::TOKENIZER)?;
    let bytes = bytes.ok_or_else(|| failed("there is no tokenizer.json".to_owned()))?;
    let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(|error| failed(error.to_string()))?;
    tokenizer.with_truncation(None).map_err(|error| failed(error.to_string()))?;
    tokenizer.with_padding(None);
    Ok(tokenizer)
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
    let text_of = |key: &str, usual: &str| -> Result<(String, u32)> {
        let id = header.integer(&format!("tokenizer.ggml.{key}"))?;
        let id = id.or_else(|| tokens.iter().position(|token| token == usual).map(|id| id as u64));
        let id = id.filter(|id| *id < tokens.len() as u64);
        let id = id.ok_or_else(|| failed(format!("it has no token {usual}")))? as usize;
        Ok((tokens[id].clone(), id as u32))
    };
    let (first, last) = (text_of("cls_token_id", "[CLS]")?, text_of("seperator_token_id", "[SEP]")?);
    let unknown = text_of("unknown_token_id", "[UNK]")?.0;
    let vocabulary: Map<String, Json> =
        (0..).zip(&tokens).map(|(id, token)| (token.clone(), id.into())).collect();
    let document = json!({
        "added_tokens": [added(&first), added(&last)],
        "normalizer": { "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                        "strip_accents": true, "lowercase": true },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": { "type": "BertProcessing", "cls": first, "sep": last },
        "model": { "type": "WordPiece", "unk_token": unknown, "continuing_subword_prefix": CONTINUED,
                   "max_input_chars_per_word": LONGEST_WORD, "vocab": vocabulary },
    });
    Tokenizer::from_bytes(document.to_string()).map_err(|error| failed(error.to_string()))
}

/// A special token of tokenizer.json.
fn added((content, id): &(String, u32)) -> Json {
    json!({
        "id": id, "content": content, "special": true, "normalized": false, "single_word": false,
        "lstrip": false, "rstrip": false,
    })
}

/// A token as WordPiece writes it.
fn piece(text: &str) -> String {
    match text.strip_prefix(WORD) {
        Some(word) => word.to_owned(),
        None if text.starts_with('[') && text.ends_with(']') => text.to_owned(),
        None => format!("{CONTINUED}{text}"),
    }
}
