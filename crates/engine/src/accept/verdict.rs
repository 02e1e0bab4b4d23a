//! What came of judging a draft.

use crate::token::TokenId;

/// What the target made of a draft.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The accepted guesses, each following the one before.
    pub path: Vec<usize>,
    /// Guesses that were judged and not accepted; the others were never judged.
    pub rejected: Vec<usize>,
    /// The token that follows the accepted ones: recovered after a rejection, else a bonus.
    pub extra: TokenId,
}

impl Verdict {
    /// The last accepted guess.
    pub(super) fn last(&self) -> Option<usize> {
        self.path.last().copied()
    }
}
