//! Tokens that penalties leave alone, and those that end DRY's sequences.

use std::collections::{HashMap, HashSet};

use crate::model::{Special, Tokenizer};
use crate::token::TokenId;

/// Tokens of a sequence breaker after its first one, at most, as in llama.cpp.
const LONGEST_TAIL: usize = 20;

/// See the module.
#[derive(Debug, Default)]
pub struct PenaltyTokens {
    /// A template's markers and what ends a text.
    exempt: HashSet<TokenId>,
    /// Of the first token of a breaker, those that follow; of one that has the whole breaker in it, none.
    breakers: HashMap<TokenId, Vec<Vec<TokenId>>>,
    longest_tail: usize,
}

impl PenaltyTokens {
    /// Of a vocabulary, where sequences end at one of the texts `breakers`.
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
        // The token may end in the breaker's beginning.
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

    /// Of tokens by number: those that are left alone, and those that are breakers by themselves.
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

    /// Whether a token has a whole breaker in it.
    pub fn is_breaker(&self, token: TokenId) -> bool {
        self.breakers.get(&token).is_some_and(|tails| tails.iter().any(Vec::is_empty))
    }

    pub fn longest_tail(&self) -> usize {
        self.longest_tail
    }

    /// The tokens after `at` that a breaker has which begins there and is whole before `end`; `None` for no breaker.
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
