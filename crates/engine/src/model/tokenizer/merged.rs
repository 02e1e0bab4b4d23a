//! BPE over characters, as Gemma 4 has it: spaces are spelled ▁, lines are joined by merges within themselves, and what no
//! token spells becomes bytes. On the `tokenizers` library.

use tokenizers::AddedToken;
use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};

use super::byte_level::merged;
use super::library::Built;
use super::table::{Kind, SPACE};
use super::words::Words;

/// What is between lines.
const LINES: &str = r"\n+";

/// Builds the tokenizer. `merges` are in order of rank, two spellings with a space between.
///
/// # Errors
/// A reason when the merges do not fit the vocabulary.
pub(super) fn build<'a>(
    tokens: &[(&str, Kind)],
    merges: impl Iterator<Item = &'a str>,
) -> Result<Built, String> {
    let (vocabulary, pairs) = merged(tokens, merges)?;
    let model = BPE::builder()
        .vocab_and_merges(vocabulary, pairs)
        .byte_fallback(true)
        .build()
        .map_err(|error| error.to_string())?;
    let mut tokenizer = Built::new(model.into());
    // Spells spaces, and cuts nothing.
    let spaces = Metaspace::new(SPACE, PrependScheme::Never, false);
    tokenizer.with_pre_tokenizer(Some(Words::isolated(&[LINES], spaces)?));
    let added = tokens.iter().filter_map(|&(text, kind)| match kind {
        Kind::Control => Some(AddedToken::from(text, true)),
        Kind::Added => Some(AddedToken::from(text, false).normalized(false)),
        // Runs of line breaks are taken whole.
        Kind::Normal if text.bytes().all(|byte| byte == b'\n') => {
            Some(AddedToken::from(text, false).normalized(false))
        }
        _ => None,
    });
    tokenizer.add_tokens(added.filter(|token| !token.content.is_empty())).map_err(|e| e.to_string())?;
    Ok(tokenizer)
}
