//! One drafted token.

use std::sync::Arc;

use crate::distribution::Distribution;
use crate::drafter_kind::DrafterKind;
use crate::token::TokenId;

/// A drafted token.
#[derive(Debug, Clone, PartialEq)]
pub struct Guess {
    pub token: TokenId,
    /// The guess it follows; `None` for one that follows the text.
    pub parent: Option<usize>,
    /// The distribution the token was really drawn from; `None` for a certain guess, a point mass (an
    /// n-gram, an argmax, a coupled draw). Siblings with the same one were drawn from it in their order,
    /// without replacement.
    pub drawn_from: Option<Arc<Distribution>>,
    /// The drafter's probability for the token, for display.
    pub probability: f32,
    /// How sure the drafter was, 0..=1, before the token was drawn if it was; what that is worth is for
    /// the governor to find out.
    pub confidence: f32,
    pub drafter: DrafterKind,
}
