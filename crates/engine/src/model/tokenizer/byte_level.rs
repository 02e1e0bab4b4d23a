//! Byte-level BPE from the vocabulary and merges of a GGUF file, on the `tokenizers` library. How a text
//! is cut into words is known to `pre_tokenizer.rs`.

use tokenizers::AddedToken;
use tokenizers::models::bpe::{BPE, Merges, Vocab};

use super::library::Built;
use super::pre_tokenizer::PreTokenizer;
use super::table::Kind;

/// Builds the tokenizer. `merges` are in order of rank, two spellings with a space between.
///
/// # Errors
/// A reason when the merges do not fit the vocabulary.
pub(super) fn build<'a>(
    pre: &PreTokenizer,
    tokens: &[(&str, Kind)],
    merges: impl Iterator<Item = &'a str>,
) -> Result<Built, String> {
    let (vocabulary, pairs) = merged(tokens, merges)?;
    let model = BPE::builder()
        .vocab_and_merges(vocabulary, pairs)
        .ignore_merges(pre.whole_words)
        .build()
        .map_err(|error| error.to_string())?;
    let mut tokenizer = Built::new(model.into());
    tokenizer.with_pre_tokenizer(Some(pre.words()?));
    let added = tokens.iter().filter_map(|&(text, kind)| match kind {
        Kind::Control => Some(AddedToken::from(text, true)),
        Kind::Added => Some(AddedToken::from(text, false).normalized(false)),
        _ => None,
    });
    tokenizer.add_tokens(added.filter(|token| !token.content.is_empty())).map_err(|e| e.to_string())?;
    Ok(tokenizer)
}

/// A vocabulary and its merges as the library takes them.
///
/// # Errors
/// A reason when a merge is none, or makes no token.
pub(super) fn merged<'a>(
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
            // The library panics at a merge that is longer than every token.
            if left.len() + right.len() > longest {
                return Err(format!("expected a token for the merge '{merge}', found none"));
            }
            Ok((left.to_owned(), right.to_owned()))
        })
        .collect::<Result<Merges, String>>()?;
    Ok((vocabulary, pairs))
}
