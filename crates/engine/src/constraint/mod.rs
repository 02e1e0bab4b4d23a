//! Constraint of a reply: a grammar that its text follows, from where the model's reasoning ends.
//!
//! `masks` has the tokens that may follow the text and each path of guesses, `opening` finds the
//! end of the reasoning. The masks are applied to the target's logits and to every drafter's before
//! anything is drawn, so that acceptance needs no rule of its own.

mod masks;
mod opening;

use foretoken_grammar::Grammar;
use foretoken_model::Thinking;

pub use masks::Masks;
pub use opening::Opening;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraint {
    pub grammar: Grammar,
    /// Tags around the model's reasoning, if it reasons: see
    /// [`foretoken_model::ChatTemplate::thinking`].
    pub thinking: Option<Thinking>,
}
