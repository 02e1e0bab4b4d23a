//! The tokens that a draft head guesses, which may be some of its target's.

use crate::accept::Guess;
use crate::context::After;
use crate::error::Result;
use crate::forward::Row;
use crate::model::ModelSource;
use crate::sampler::Sampler;
use crate::token::TokenId;

pub(super) struct Tokens {
    /// Of each row of its output matrix the target's; `None` where rows are tokens.
    guessed: Option<Vec<TokenId>>,
    /// Tokens of the target.
    vocabulary: usize,
    /// Those that end a reply: nothing is drafted after one.
    ends: Vec<TokenId>,
}

impl Tokens {
    /// Of the head that `source` describes; `ends` are the target's.
    ///
    /// # Errors
    /// `Error::BadModel` for a table of tokens that cannot be used.
    pub fn of(source: &ModelSource, ends: &[TokenId]) -> Result<Self> {
        let (guessed, vocabulary) = (source.guessed_tokens()?, source.config()?.tokens());
        Ok(Self { guessed, vocabulary, ends: ends.to_vec() })
    }

    /// Whether a token ends a reply.
    pub fn end(&self, token: TokenId) -> bool {
        self.ends.contains(&token)
    }

    /// Up to `count` guesses from a row of scores.
    pub fn guess(
        &self,
        row: Row<'_>,
        after: After<'_>,
        count: usize,
        sampler: &mut Sampler,
    ) -> Result<Vec<Guess>> {
        let Some(guessed) = &self.guessed else { return sampler.guess(row, after, count) };
        if !sampler.looks_at_all() {
            return sampler.guess(row.named(guessed), after, count);
        }
        let mut whole = vec![f32::NEG_INFINITY; self.vocabulary];
        for (&token, &logit) in guessed.iter().zip(row.logits()?) {
            whole[token as usize] = logit;
        }
        sampler.guess(Row::of(&whole), after, count)
    }
}
