//! The proof that drafts change nothing: a reply is decoded again without them and compared token by token.
//! Where another text would be as right, the probabilities that judged it are: see [`reread`].

mod reread;

use std::ops::ControlFlow;

use serde::Serialize;

use crate::decoder::{Decoder, Progress, Request};
use crate::draft::Drafters;
use crate::error::{Error, Result};
use crate::forward::catch_up;
use crate::sampling::Sampling;
use crate::trace::TokenId;
use crate::tree::TokenTree;

pub use reread::{Agreement, reread};

/// Logits that are closer may change places by rounding alone: twice what half precision makes of a logit
/// of 16, 2^-11 of it.
const NEAR_TIE: f32 = 1.0 / 64.0;

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    pub identical: bool,
    /// Tokens of the reply without drafts.
    pub tokens: usize,
    pub first_difference: Option<Difference>,
}

/// Where two replies part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Counts from the first token of the reply.
    pub position: usize,
    /// The token there with and without drafts; `None` where that reply had already ended.
    pub with: Option<TokenId>,
    pub without: Option<TokenId>,
    /// What the target gives them.
    pub with_logit: Option<f32>,
    pub without_logit: Option<f32>,
    /// Between the two logits; `None` when one token has none.
    pub gap: Option<f32>,
    /// The gap is one that rounding can make: on a device that does not compute the same bits for any number
    /// of rows this is no bug.
    pub near_tie: bool,
}

/// Writes the reply twice, with drafts and without, each time from an empty cache.
///
/// # Errors
/// Those of [`compare`].
pub fn check(
    decoder: &mut Decoder,
    request: &Request,
    drafters: &mut Drafters,
    on_progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
) -> Result<Check> {
    repeatable(&request.sampling)?;
    decoder.target_mut().truncate(0);
    let with = decoder.reply(request, drafters, on_progress)?.uncancelled()?;
    compare(decoder, request, &with.tokens, on_progress)
}

/// Writes a reply again without drafts, from an empty cache, and compares it with the one `with` them.
///
/// # Errors
/// Those of [`Decoder::reply`], `Error::Setting` for sampling in the fastest mode, where another draft
/// rightly gives another text, and `Error::Cancelled` when `on_progress` ends it.
pub fn compare(
    decoder: &mut Decoder,
    request: &Request,
    with: &[TokenId],
    on_progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
) -> Result<Check> {
    repeatable(&request.sampling)?;
    decoder.target_mut().truncate(0);
    let without = decoder.reply(request, &mut Drafters::default(), on_progress)?.uncancelled()?;
    let first_difference = differ(decoder, request, with, &without.tokens)?;
    Ok(Check { identical: first_difference.is_none(), tokens: without.tokens.len(), first_difference })
}

fn repeatable(sampling: &Sampling) -> Result<()> {
    if sampling.is_repeatable() {
        return Ok(());
    }
    Err(Error::Setting {
        name: "mode",
        expected: "temperature 0, or the reproducible mode with a seed, since in the fastest mode only the \
                   distribution is the same and not the text",
        found: "sampling in the fastest mode or without a seed".to_owned(),
    })
}

/// Where two texts part, counted from their first token; `None` when they are the same.
pub fn first_difference(left: &[TokenId], right: &[TokenId]) -> Option<usize> {
    let same = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    (same < left.len().max(right.len())).then_some(same)
}

fn differ(
    decoder: &mut Decoder,
    request: &Request,
    with: &[TokenId],
    without: &[TokenId],
) -> Result<Option<Difference>> {
    let Some(position) = first_difference(with, without) else { return Ok(None) };
    let (with_token, without_token) = (with.get(position).copied(), without.get(position).copied());
    let context = [&request.prompt, &with[..position]].concat();
    let logits = next_logits(decoder, &context)?;
    let logit = |token: Option<TokenId>| logits.get(token? as usize).copied();
    let (with_logit, without_logit) = (logit(with_token), logit(without_token));
    let gap = with_logit.zip(without_logit).map(|(left, right)| (left - right).abs());
    Ok(Some(Difference {
        position,
        with: with_token,
        without: without_token,
        with_logit,
        without_logit,
        gap,
        near_tie: gap.is_some_and(|gap| gap <= NEAR_TIE),
    }))
}

/// The target's scores after `context`, `[vocabulary]`.
fn next_logits(decoder: &mut Decoder, context: &[TokenId]) -> Result<Vec<f32>> {
    let target = decoder.target_mut();
    let _ = catch_up(target, context, &mut |_, _| ControlFlow::Continue(()))?;
    let last = TokenTree::chain(context.last().copied());
    Ok(target.forward(&last, 0..1)?.row(0).logits().to_vec())
}
