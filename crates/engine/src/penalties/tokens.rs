//! Tokens without penalties, and sequence breakers of DRY.

use std::collections::{HashMap, HashSet};

use foretoken_model::token::TokenId;
use foretoken_model::{Special, Tokenizer};

/// Maximum number of tokens of a sequence breaker after its first one, as in llama.cpp.
const LONGEST_TAIL: usize = 20;

/// See the module.
#[derive(Debug, Default)]
pub struct PenaltyTokens {
    /// Special tokens and end-of-text tokens.
    exempt: HashSet<TokenId>,
    /// Remaining tokens of a breaker, by its first token; empty if that token contains the whole
    /// breaker.
    breakers: HashMap<TokenId, Vec<Vec<TokenId>>>,
    longest_tail: usize,
}

impl PenaltyTokens {
    /// Finds exempt tokens and the sequence breakers `breakers` in a vocabulary.
    pub fn of(tokenizer: &Tokenizer, breakers: &[String]) -> Self {
        let all = 0..tokenizer.vocabulary() as TokenId;
        let ends = tokenizer.ends().iter().copied();
        let exempt: HashSet<_> =
            all.clone().filter(|&token| tokenizer.is_special(token)).chain(ends).collect();
        let mut tokens = Self { exempt, ..Self::default() };
        let breakers: Vec<&str> =
            breakers.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        for token in all.filter(|token| !tokens.exempt.contains(token)).collect::<Vec<_>>() {
            for breaker in &breakers {
                tokens.add(tokenizer, token, breaker);
            }
        }
        tokens
    }

    fn add(&mut self, tokenizer: &Tokenizer, token: TokenId, breaker: &str) {
        let (bytes, sought) = (tokenizer.decode_bytes(token), breaker.as_bytes());
        if bytes.windows(sought.len()).any(|window| window == sought) {
            self.breakers.entry(token).or_default().push(Vec::new());
            return;
        }
        // The token may end with the start of the breaker.
        for begun in 1..sought.len().min(bytes.len() + 1) {
            if !bytes.ends_with(&sought[..begun]) || !breaker.is_char_boundary(begun) {
                continue;
            }
            if let Ok(mut tail) = tokenizer.encode(&breaker[begun..], Special::Ignore) {
                tail.truncate(LONGEST_TAIL);
                self.longest_tail = self.longest_tail.max(tail.len());
                let tails = self.breakers.entry(token).or_default();
                if !tails.contains(&tail) {
                    tails.push(tail);
                }
            }
        }
    }

    /// Creates them from ids of exempt tokens and of single-token breakers.
    #[cfg(test)]
    pub fn of_ids(exempt: &[TokenId], breakers: &[TokenId]) -> Self {
        Self {
            exempt: exempt.iter().copied().collect(),
            breakers: breakers.iter().map(|&token| (token, vec![Vec::new()])).collect(),
            longest_tail: 0,
        }
    }

    pub fn is_exempt(&self, token: TokenId) -> bool {
        self.exempt.contains(&token)
    }

    /// Returns true if a token contains a whole breaker.
    pub fn is_breaker(&self, token: TokenId) -> bool {
        self.breakers.get(&token).is_some_and(|tails| tails.iter().any(Vec::is_empty))
    }

    pub fn longest_tail(&self) -> usize {
        self.longest_tail
    }

    /// Number of further tokens of a breaker that begins at `at` and ends before `end`; `None` if
    /// there is none.
    pub fn breaks(&self, at: usize, end: usize, token: impl Fn(usize) -> TokenId) -> Option<usize> {
        let first = token(at);
        if self.exempt.contains(&first) {
            return Some(0);
        }
        let fits = |tail: &&Vec<TokenId>| {
            at + tail.len() < end
                && tail.iter().enumerate().all(|(next, &other)| token(at + 1 + next) == other)
        };
        self.breakers.get(&first)?.iter().filter(fits).map(Vec::len).max()
    }
}
