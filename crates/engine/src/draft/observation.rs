//! Tokens run by the target, as drafters observe them.

use std::ops::ControlFlow;

use foretoken_forward::{Features, Model, PrefillChunk, Row, catch_up_with};
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use super::Drafter;
use crate::context::Context;

/// Consecutive tokens of the text that the target ran. They replace earlier observations at these
/// and all later positions.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    /// Position of the first token.
    pub at: usize,
    pub tokens: &'a [TokenId],
    /// Logits after each token; `None` for a part of a prompt, where none were computed.
    pub rows: Option<&'a [Row<'a>]>,
    /// Hidden states of each token; `None` if no drafter reads any.
    pub features: Option<Features<'a>>,
}

/// Runs the target over all of `context` but its last token, and lets the drafter observe what it
/// is missing. `go_on` is called between passes.
///
/// Returns `Break` if `go_on` did.
///
/// # Errors
/// Errors of the target and of [`Drafter::observe`].
pub fn replay_for(
    target: &mut dyn Model,
    drafter: &mut dyn Drafter,
    context: &Context,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    let taps = drafter.taps().cloned().unwrap_or_default();
    target.truncate(context.len() - 1 - drafter.missing_features(context));
    let mut outcome = Ok(());
    let (_, ended) =
        catch_up_with(target, context, &taps, &mut |PrefillChunk { at, tokens, features, .. }| {
            outcome = drafter.observe(&Observation { at, tokens, rows: None, features });
            if outcome.is_ok() { go_on() } else { ControlFlow::Break(()) }
        })?;
    outcome.map(|()| ended)
}
