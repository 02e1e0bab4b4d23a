//! Vocabulary of a draft head, which may be a subset of its target's.

use foretoken_forward::Row;
use foretoken_model::ModelSource;
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use crate::accept::Guess;
use crate::context::After;
use crate::sampler::Sampler;

pub(super) struct Tokens {
    /// Target token of each output row; `None` if rows are target tokens.
    guessed: Option<Vec<TokenId>>,
    /// End tokens of the target: nothing is drafted after one.
    ends: Vec<TokenId>,
}

impl Tokens {
    /// Reads the vocabulary of the head `source`; `ends` are the target's end tokens.
    ///
    /// # Errors
    /// `Error::BadModel` for an invalid table of tokens.
    pub fn of(source: &ModelSource, ends: &[TokenId]) -> Result<Self> {
        Ok(Self { guessed: source.guessed_tokens()?, ends: ends.to_vec() })
    }

    /// Returns true if a token ends a reply.
    pub fn end(&self, token: TokenId) -> bool {
        self.ends.contains(&token)
    }

    /// Up to `count` guesses from a row of logits; with `certain` its likeliest tokens, whatever
    /// the sampler's settings.
    pub fn guess(
        &self,
        row: Row<'_>,
        after: After<'_>,
        count: usize,
        certain: bool,
        sampler: &mut Sampler,
    ) -> Result<Vec<Guess>> {
        let row = self.guessed.as_ref().map_or(row, |guessed| row.restricted_to(guessed));
        if certain { sampler.likeliest(row, after, count) } else { sampler.guess(row, after, count) }
    }
}
