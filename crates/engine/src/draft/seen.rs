//! What the target ran of the text, as drafters hear it.

use crate::forward::{Features, Row};
use crate::token::TokenId;

/// Tokens of the text that the target ran. What was heard of their positions and of later ones before no longer
/// holds.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The position of the first of them.
    pub at: usize,
    pub tokens: &'a [TokenId],
    /// Of each token the scores of what may follow it; `None` for a part of a prompt, where nobody asked.
    pub rows: Option<&'a [Row<'a>]>,
    /// Of each token its hidden states; `None` where no drafter reads any.
    pub features: Option<Features<'a>>,
}
