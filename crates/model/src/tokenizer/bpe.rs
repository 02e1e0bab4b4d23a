//! Byte-pair encoding with a GGUF file's vocabulary and merges, on the `tokenizers` library: over
//! bytes, as in most models, and over characters, as in Gemma 4.

use tokenizers::AddedToken;
use tokenizers::models::bpe::{BPE, BpeBuilder, Merges, Vocab};
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};

use super::library::{Built, Stoppable};
use super::pre_tokenizer::PreTokenizer;
use super::table::{Kind, SPACE};
use super::words::Words;

/// Separators of lines.
const LINES: &str = r"\n+";

/// Builds byte-level BPE. `merges` are ordered by rank, each two spellings separated by a space.
///
/// # Errors
/// A reason if the merges do not fit the vocabulary.
pub(super) fn over_bytes<'a>(
    pre: &PreTokenizer,
    tokens: &[(&str, Kind)],
    merges: impl Iterator<Item = &'a str>,
) -> Result<Built, String> {
    let model = BPE::builder().ignore_merges(pre.whole_words);
    build(model, pre.words()?, tokens, merges, |_| false)
}

/// Builds BPE over characters: spaces are spelled ▁, merges stay within lines, and characters
/// without a token become bytes. `merges` as in [`over_bytes`].
///
/// # Errors
/// A reason if the merges do not fit the vocabulary.
pub(super) fn over_characters<'a>(
    tokens: &[(&str, Kind)],
    merges: impl Iterator<Item = &'a str>,
) -> Result<Built, String> {
    // Maps spaces to ▁ and splits nothing.
    let spaces = Metaspace::new(SPACE, PrependScheme::Never, false);
    let words = Words::isolated(&[LINES], spaces)?;
    // Tokens of several line breaks are matched whole.
    let whole = |text: &str| text.bytes().all(|byte| byte == b'\n');
    build(BPE::builder().byte_fallback(true), words, tokens, merges, whole)
}

/// Builds a tokenizer. Added tokens, and normal tokens accepted by `whole`, are matched before the
/// text is split into words.
fn build<'a>(
    model: BpeBuilder,
    words: Words,
    tokens: &[(&str, Kind)],
    merges: impl Iterator<Item = &'a str>,
    whole: impl Fn(&str) -> bool,
) -> Result<Built, String> {
    let (vocabulary, pairs) = merged(tokens, merges)?;
    let model = model.vocab_and_merges(vocabulary, pairs).build().map_err(|error| error.to_string())?;
    let mut tokenizer = Built::new(Stoppable::from(model));
    tokenizer.with_pre_tokenizer(Some(words));
    let named = tokens.iter().filter(|(text, _)| !text.is_empty());
    let added = named.filter_map(|&(text, kind)| match kind {
        Kind::Control => Some(AddedToken::from(text, true)),
        Kind::Added => Some(AddedToken::from(text, false).normalized(false)),
        Kind::Normal if whole(text) => Some(AddedToken::from(text, false).normalized(false)),
        _ => None,
    });
    tokenizer.add_tokens(added).map_err(|error| error.to_string())?;
    Ok(tokenizer)
}

/// Returns the vocabulary and its merges in the library's form.
///
/// # Errors
/// A reason if a merge is malformed or produces no token.
fn merged<'a>(
    tokens: &[(&str, Kind)],
    merges: impl Iterator<Item = &'a str>,
) -> Result<(Vocab, Merges), String> {
    let vocabulary: Vocab =
        tokens.iter().zip(0u32..).map(|((text, _), id)| ((*text).to_owned(), id)).collect();
    let longest = tokens.iter().map(|(text, _)| text.len()).max().unwrap_or(0);
    let pairs = merges
        .map(|merge| {
            let (left, right) = merge
                .split_once(' ')
                .ok_or_else(|| format!("expected two parts in the merge '{merge}', found one"))?;
            // The library panics on a merge that is longer than every token.
            if left.len() + right.len() > longest {
                return Err(format!("expected a token for the merge '{merge}', found none"));
            }
            Ok((left.to_owned(), right.to_owned()))
        })
        .collect::<Result<Merges, String>>()?;
    Ok((vocabulary, pairs))
}
