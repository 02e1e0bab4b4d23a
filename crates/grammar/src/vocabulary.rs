//! A model's vocabulary as llguidance sees it: the bytes of each token, and the tokens of a text.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use foretoken_model::Tokenizer;
use foretoken_model::token::TokenId;
use foretoken_model::tools::MARKS;
use llguidance::ParserFactory;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};

/// Longest token in bytes, and most bytes of all tokens, that llguidance can hold.
const LONGEST: usize = 1023;
const MOST_BYTES: usize = 4_000_000;

/// Most states of a grammar's lexer, of 1 to 2 kB each.
const MOST_STATES: usize = 50_000;

/// See the module.
struct Vocabulary {
    tokenizer: Arc<Tokenizer>,
    trie: TokTrie,
    /// `true` if texts within others can be encoded.
    is_canonical: bool,
}

/// Returns whether a token is a marker of calls, which is never text.
fn is_mark(tokenizer: &Tokenizer, token: TokenId) -> bool {
    tokenizer.is_special(token) && MARKS.contains(&tokenizer.piece(token).as_str())
}

/// Prepares grammars over the first `rows` tokens of a vocabulary, which the model scores. Control
/// tokens, markers of calls and tokens that end a reply are never text.
///
/// # Errors
/// The reason if no token ends a reply or llguidance cannot hold the vocabulary.
pub fn factory(tokenizer: Arc<Tokenizer>, rows: usize) -> Result<ParserFactory, String> {
    let ends: Vec<TokenId> = tokenizer.ends().iter().copied().filter(|&end| (end as usize) < rows).collect();
    let Some(&end) = ends.first() else { return Err("the model has no token that ends a reply".to_owned()) };
    let bytes = |token: TokenId| match tokenizer.decode_bytes(token) {
        long if long.len() > LONGEST => Vec::new(),
        _ if ends.contains(&token) || is_mark(&tokenizer, token) => Vec::new(),
        bytes => bytes.to_vec(),
    };
    let words: Vec<Vec<u8>> = (0..rows as TokenId).map(bytes).collect();
    if words.iter().map(Vec::len).sum::<usize>() > MOST_BYTES {
        return Err("the model's vocabulary is too large for grammars".to_owned());
    }
    let prepare = || {
        let trie = TokTrie::from(&TokRxInfo::new(rows as u32, end), &words).with_eos_tokens(&ends);
        let is_canonical = tokenizer.encode_within("").is_some();
        let vocabulary: TokEnv = Arc::new(Vocabulary { tokenizer, trie, is_canonical });
        let slices = SlicedBiasComputer::json_slices();
        let mut factory = ParserFactory::new(&vocabulary, InferenceCapabilities::default(), &slices)?;
        factory.quiet();
        let limits = factory.limits_mut();
        limits.max_lexer_states = MOST_STATES;
        limits.verbose_errors = false;
        limits.precompute_large_lexemes = false;
        Ok(factory)
    };
    let prepared: Result<ParserFactory, Box<dyn std::error::Error>> = catch_unwind(AssertUnwindSafe(prepare))
        .unwrap_or_else(|_| Err("it cannot hold the vocabulary".into()));
    prepared.map_err(|error| error.to_string())
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            let encoded = self.tokenizer.encode_within(text);
            let is_text =
                |tokens: &Vec<TokenId>| !tokens.iter().any(|&token| is_mark(&self.tokenizer, token));
            encoded.filter(is_text).unwrap_or_else(|| self.trie.greedy_tokenize(text.as_bytes()))
        })
    }

    fn tokenize_is_canonical(&self) -> bool {
        self.is_canonical
    }
}
