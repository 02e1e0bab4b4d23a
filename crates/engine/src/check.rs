//! The proof that drafts change nothing: writes a reply with and without them and compares token by
//! token.

use std::ops::ControlFlow;

use serde::Serialize;

use crate::decoder::{Decoder, Progress, Reply, Request};
use crate::draft::Drafters;
use crate::error::{Error, Result};
use crate::forward::catch_up;
use crate::sampling::Mode;
use crate::trace::TokenId;
use crate::tree::TokenTree;

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    pub identical: bool,
    /// Tokens compared: those of the reply without drafts.
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
    /// The difference of the two tokens' logits; small means a near tie. `None` when one has none.
    pub gap: Option<f32>,
}

/// Writes the reply twice, each time from an empty cache.
///
/// # Errors
/// Those of [`Decoder::reply`], and `Error::Setting` for sampling in the fastest mode, where another
/// draft rightly gives another text.
pub fn check(
    decoder: &mut Decoder,
    request: &Request,
    drafters: &mut Drafters,
    on_progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
) -> Result<Check> {
    let sampling = &request.sampling;
    if !sampling.is_greedy() && (sampling.mode == Mode::Fastest || sampling.seed.is_none()) {
        return Err(Error::Setting {
            name: "mode",
            expected: "temperature 0, or the reproducible mode with a seed, since in the fastest mode \
                       only the distribution is the same and not the text",
            found: "sampling in the fastest mode or without a seed".to_owned(),
        });
    }
    decoder.target_mut().truncate(0);
    let without = decoder.reply(request, &mut Drafters::default(), on_progress)?;
    decoder.target_mut().truncate(0);
    let with = decoder.reply(request, drafters, on_progress)?;
    let first_difference = differ(decoder, request, &with, &without)?;
    Ok(Check { identical: first_difference.is_none(), tokens: without.tokens.len(), first_difference })
}

fn differ(
    decoder: &mut Decoder,
    request: &Request,
    with: &Reply,
    without: &Reply,
) -> Result<Option<Difference>> {
    let position = with.tokens.iter().zip(&without.tokens).take_while(|(a, b)| a == b).count();
    let token = |reply: &Reply| reply.tokens.get(position).copied();
    let (with_token, without_token) = (token(with), token(without));
    if with_token == without_token {
        return Ok(None);
    }
    let gap = match (with_token, without_token) {
        (Some(left), Some(right)) => {
            let context = [&request.prompt, &with.tokens[..position]].concat();
            let logits = next_logits(decoder, &context)?;
            Some((logits[left as usize] - logits[right as usize]).abs())
        }
        _ => None,
    };
    Ok(Some(Difference { position, with: with_token, without: without_token, gap }))
}

/// The target's scores after `context`, `[vocabulary]`.
fn next_logits(decoder: &mut Decoder, context: &[TokenId]) -> Result<Vec<f32>> {
    let target = decoder.target_mut();
    let _ = catch_up(target, context, &mut |_, _| ControlFlow::Continue(()))?;
    let last = TokenTree::chain(context.last().copied());
    Ok(target.forward(&last, 0..1)?.row(0).logits().to_vec())
}
