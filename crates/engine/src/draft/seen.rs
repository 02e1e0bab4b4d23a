//! What the target ran of the text, as drafters hear it.

use std::ops::ControlFlow;

use super::Drafter;
use crate::context::Context;
use crate::error::Result;
use crate::forward::{Features, Model, Part, Row, catch_up_with};
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

/// Brings the target to all of `context` but its last token, and lets a drafter hear what it lacks of that. `go_on` is
/// asked between passes; returns whether it was carried through.
///
/// # Errors
/// Those of the target, and of [`Drafter::observe`].
pub fn let_hear(
    target: &mut dyn Model,
    drafter: &mut dyn Drafter,
    context: &Context,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    let taps = drafter.taps().cloned().unwrap_or_default();
    target.truncate(context.len() - 1 - drafter.deaf(context));
    let mut heard = Ok(());
    let (_, ended) = catch_up_with(target, context, &taps, &mut |Part { at, tokens, features, .. }| {
        heard = drafter.observe(&Seen { at, tokens, rows: None, features });
        if heard.is_ok() { go_on() } else { ControlFlow::Break(()) }
    })?;
    heard.map(|()| ended)
}
