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
    /// Those that end a reply: nothing is drafted after one.
    ends: Vec<TokenId>,
}

impl Tokens {
    /// Of the head that `source` describes; `ends` are the target's.
    ///
    /// # Errors
    /// `Error::BadModel` for a table of tokens that cannot be used.
    pub fn of(source: &ModelSource, ends: &[TokenId]) -> Result<Self> {
        Ok(Self { guessed: source.guessed_tokens()?, ends: ends.to_vec() })
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
        match &self.guessed {
            Some(guessed) => sampler.guess(row.named(guessed), after, count),
            None => sampler.guess(row, after, count),
        }
    }
}
