//! Result of judging a draft.

use foretoken_model::token::TokenId;

/// Result of judging a draft.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Accepted guesses, each a child of the one before.
    pub path: Vec<usize>,
    /// Guesses that were judged and rejected; all others were never judged.
    pub rejected: Vec<usize>,
    /// Token after the accepted ones: recovered after a rejection, else a bonus token.
    pub extra: TokenId,
}

impl Verdict {
    /// The last accepted guess.
    pub(super) fn last(&self) -> Option<usize> {
        self.path.last().copied()
    }
}
