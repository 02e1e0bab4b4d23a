//! Vocabulary of a draft head, which may be a subset of its target's.

use foretoken_forward::Row;
use foretoken_model::ModelSource;
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

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

    /// End tokens of the target.
    pub fn ends(&self) -> &[TokenId] {
        &self.ends
    }

    /// A row of logits with the target's tokens.
    pub fn name<'a>(&'a self, row: Row<'a>) -> Row<'a> {
        match &self.guessed {
            Some(guessed) => row.restricted_to(guessed),
            None => row,
        }
    }
}
