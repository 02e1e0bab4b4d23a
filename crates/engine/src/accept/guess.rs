//! A draft token with its parent and the distribution it was drawn from.

use std::sync::Arc;

use foretoken_model::token::TokenId;

use crate::distribution::Distribution;
use crate::drafter_kind::DrafterKind;

/// A draft token, called a guess until the target has judged it.
#[derive(Debug, Clone, PartialEq)]
pub struct Guess {
    pub token: TokenId,
    /// Index of the guess before it; `None` if it follows the text directly.
    pub parent: Option<usize>,
    /// Distribution the token was drawn from. `None` for a certain guess, a point mass (n-gram,
    /// argmax, coupled draw). Siblings that share a distribution were drawn from it in list order,
    /// without replacement.
    pub drawn_from: Option<Arc<Distribution>>,
    /// The drafter's probability of the token, for display.
    pub probability: f32,
    /// The drafter's confidence before it drew the token, 0..=1. The governor calibrates it into a
    /// chance of acceptance.
    pub confidence: f32,
    pub drafter: DrafterKind,
}
