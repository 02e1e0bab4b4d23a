//! Byte-level BPE from the vocabulary and merges of a GGUF file, on the `tokenizers` library. Owns
//! the table of pre-tokenizers; an unknown one is refused, for any other would split words wrongly.

use tokenizers::models::bpe::{BPE, Merges, Vocab};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;
use tokenizers::{AddedToken, PreTokenizerWrapper};

use super::table::Kind;

/// How a family cuts a text into words before the merges.
pub(super) struct PreTokenizer {
    /// Values of `tokenizer.ggml.pre`.
    names: &'static [&'static str],
    /// Applied in turn; each isolates its matches in what the one before left.
    patterns: &'static [&'static str],
    /// A word that is a token as it stands is not put together from merges.
    whole_words: bool,
    /// Whether a raw prompt starts with a BOS where the file does not say.
    pub adds_bos: bool,
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const PRE_TOKENIZERS: &[PreTokenizer] = &[
    PreTokenizer {
        names: &["default", "gpt-2", "phi-2", "mpt", "olmo", "jais"],
        patterns: &[GPT2],
        whole_words: false,
        adds_bos: false,
    },
    PreTokenizer {
        names: &["starcoder", "refact", "command-r", "smollm", "codeshell", "exaone"],
        patterns: &[r"\p{N}", GPT2],
        whole_words: false,
        adds_bos: false,
    },
    PreTokenizer {
        names: &["deepseek-coder"],
        patterns: &[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}"],
        whole_words: false,
        adds_bos: false,
    },
    PreTokenizer {
        names: &["llama-bpe", "llama3", "llama-v3", "falcon3"],
        patterns: &[LLAMA3],
        whole_words: true,
        adds_bos: true,
    },
    PreTokenizer { names: &["dbrx", "smaug-bpe"], patterns: &[LLAMA3], whole_words: false, adds_bos: false },
    PreTokenizer {
        names: &["qwen2", "deepseek-r1-qwen", "stablelm2"],
        patterns: &[QWEN2],
        whole_words: false,
        adds_bos: false,
    },
];

impl PreTokenizer {
    /// # Errors
    /// A reason naming the kinds there are.
    pub fn named(name: &str) -> Result<&'static Self, String> {
        PRE_TOKENIZERS.iter().find(|p| p.names.contains(&name)).ok_or_else(|| {
            let known: Vec<&str> = PRE_TOKENIZERS.iter().flat_map(|p| p.names).copied().collect();
            format!("it splits words the way of '{name}', expected one of {}", known.join(", "))
        })
    }
}

/// Builds the tokenizer. `merges` are in order of rank, two spellings with a space between.
///
/// # Errors
/// A reason when the merges do not fit the vocabulary.
pub(super) fn build<'a>(
    pre: &PreTokenizer,
    tokens: &[(&str, Kind)],
    merges: impl Iterator<Item = &'a str>,
) -> Result<tokenizers::Tokenizer, String> {
    let vocabulary: Vocab =
        tokens.iter().zip(0u32..).map(|((text, _), id)| ((*text).to_owned(), id)).collect();
    let pairs = merges
        .map(|merge| {
            let (left, right) = merge
                .split_once(' ')
                .ok_or_else(|| format!("expected two parts in the merge '{merge}', found one"))?;
            Ok((left.to_owned(), right.to_owned()))
        })
        .collect::<Result<Merges, String>>()?;
    let model = BPE::builder()
        .vocab_and_merges(vocabulary, pairs)
        .ignore_merges(pre.whole_words)
        .build()
        .map_err(|error| error.to_string())?;
    let mut tokenizer = tokenizers::Tokenizer::new(model);
    let mut steps: Vec<PreTokenizerWrapper> = Vec::new();
    for pattern in pre.patterns {
        let pattern = SplitPattern::Regex((*pattern).to_owned());
        let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false);
        steps.push(split.map_err(|error| error.to_string())?.into());
    }
    steps.push(ByteLevel::new(false, true, false).into());
    tokenizer.with_pre_tokenizer(Some(Sequence::new(steps)));
    let added = tokens.iter().filter_map(|&(text, kind)| match kind {
        Kind::Control => Some(AddedToken::from(text, true)),
        Kind::Added => Some(AddedToken::from(text, false).normalized(false)),
        _ => None,
    });
    tokenizer.add_tokens(added.filter(|token| !token.content.is_empty())).map_err(|e| e.to_string())?;
    Ok(tokenizer)
}
