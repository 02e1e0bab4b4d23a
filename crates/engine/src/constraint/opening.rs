//! Reasoning before the text that a grammar constrains. Its end is found by tokens alone, so that
//! it may be anywhere in a draft.

use foretoken_model::channels::{self, Channels};
use foretoken_model::token::TokenId;
use foretoken_model::{Special, Thinking, Tokenizer};

/// Tokens around a reply's reasoning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// Token that begins reasoning, as the first of a reply; `None` if the reply reasons anyway.
    pub open: Option<TokenId>,
    /// Tokens that end it, at least one.
    pub close: Vec<TokenId>,
}

impl Opening {
    /// Reasoning of a reply to `prompt`, with these tags; `None` if there will be none.
    pub fn after(prompt: &[TokenId], tokenizer: &Tokenizer, thinking: Thinking) -> Option<Self> {
        let tokens = |text: &str| tokenizer.encode(text, Special::Parse).unwrap_or_default();
        if Channels::after(prompt, tokenizer).is_some() {
            let close = tokens(channels::ANSWER);
            return (!prompt.ends_with(&close)).then_some(Self { open: None, close });
        }
        let (open, close) = (tokens(thinking.open).first().copied()?, tokens(thinking.close));
        let [close] = close[..] else { return None };
        let last = |token| prompt.iter().rposition(|&other| other == token);
        let reasons = last(open).is_some_and(|open| last(close).is_none_or(|close| close < open));
        Some(Self { open: (!reasons).then_some(open), close: vec![close] })
    }

    /// Number of `tokens` up to the end of the reasoning, which has begun; `None` if it goes on.
    pub fn end(&self, tokens: &[TokenId]) -> Option<usize> {
        let found = tokens.windows(self.close.len()).position(|window| window == self.close);
        found.map(|at| at + self.close.len())
    }

    /// The last of the tokens that end the reasoning, if `tokens` end with all those before it.
    pub fn last_of_close(&self, tokens: &[TokenId]) -> Option<TokenId> {
        let (&last, before) = self.close.split_last()?;
        (!before.is_empty() && tokens.ends_with(before)).then_some(last)
    }
}
