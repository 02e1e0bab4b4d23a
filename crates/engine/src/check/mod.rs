//! Losslessness check: decodes a reply again without drafts and compares it token by token. In the
//! fastest mode, where other texts are equally valid, see [`reread`].

mod reread;

use std::ops::ControlFlow;

use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Model, Pass, Row, Want, catch_up};
use foretoken_model::error::{Error, Result};
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;
use serde::Serialize;

use crate::context::Context;
use crate::decoder::{Decoder, Progress, Request};
use crate::draft::Drafters;
use crate::random::coupled_score;
use crate::sampler::{Rules, Sampler};

pub use reread::{Agreement, reread};

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    pub identical: bool,
    /// Tokens of the reply without drafts.
    pub tokens: usize,
    pub first_difference: Option<Difference>,
}

/// First difference between two replies.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Difference {
    /// Index of the token, from the first token of the reply.
    pub position: usize,
    /// Token there with and without drafts; `None` if that reply had ended.
    pub with: Option<TokenId>,
    pub without: Option<TokenId>,
    /// Logit of each token.
    pub with_logit: Option<f32>,
    pub without_logit: Option<f32>,
    /// Difference of the logits, or with coupled draws, of the perturbed scores; `None` if a token
    /// is missing or has no probability.
    pub gap: Option<f32>,
    /// Range of the gap when the same text is run in passes of other sizes: 0 on the CPU, which
    /// computes the same bits for any number of rows.
    pub rounding: Option<f32>,
    /// True if rounding explains the difference: the gap is at most twice the range. Not a bug.
    pub near_tie: bool,
}

/// Generates the reply twice, with and without drafts, each time from an empty cache.
///
/// # Errors
/// Errors of [`compare`].
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

/// Generates the reply without drafts, from an empty cache, and compares it with the reply `with`
/// drafts.
///
/// # Errors
/// Errors of [`Decoder::reply`]; `Error::Setting` in the fastest mode, where another draft rightly
/// gives another text; `Error::Cancelled` if `on_progress` returns `Break`.
pub fn compare(
    decoder: &mut Decoder,
    request: &Request,
    with: &[TokenId],
    on_progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
) -> Result<Check> {
    repeatable(&request.sampling)?;
    decoder.target_mut().truncate(0);
    let without = decoder.reply(request, &mut Drafters::default(), on_progress)?.uncancelled()?;
    let request = &Request { sampling: decoder.sampling(&request.sampling), ..request.clone() };
    let sampler = decoder.sampler(request)?;
    let first_difference = part(decoder.target_mut(), request, sampler, with, &without.tokens)?;
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

/// Index of the first difference of two texts; `None` if they are equal.
pub fn first_difference(left: &[TokenId], right: &[TokenId]) -> Option<usize> {
    let same = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    (same < left.len().max(right.len())).then_some(same)
}

/// First difference of the text `with` drafts from the text `without`, by the logits of `target`
/// with penalties on all tokens; without a constraint.
///
/// # Errors
/// Errors of [`Model::run`].
pub fn difference(
    target: &mut dyn Model,
    request: &Request,
    with: &[TokenId],
    without: &[TokenId],
) -> Result<Option<Difference>> {
    let sampler = Sampler::new(&request.sampling)?.after_prompt(request.prompt.len());
    part(target, request, sampler, with, without)
}

fn part(
    target: &mut dyn Model,
    request: &Request,
    mut sampler: Sampler,
    with: &[TokenId],
    without: &[TokenId],
) -> Result<Option<Difference>> {
    let Some(position) = first_difference(with, without) else { return Ok(None) };
    let tokens = (with.get(position).copied(), without.get(position).copied());
    let context = Context::new([&request.prompt, &with[..position]].concat());
    let mut difference = Difference { position, with: tokens.0, without: tokens.1, ..Difference::default() };
    sampler.follow(&context);
    let mut margins = Vec::new();
    for rows in PASSES {
        let pass = score(target, &context, rows)?;
        let row = pass.logits().row(0);
        let logits = row.logits()?;
        let logit = |token: Option<TokenId>| logits.get(token? as usize).copied();
        (difference.with_logit, difference.without_logit) = (logit(tokens.0), logit(tokens.1));
        if let Some((left, right)) = tokens.0.zip(tokens.1) {
            margins.push(margin(row, &mut sampler.rules, &context, [left, right])?);
        }
    }
    // A token that a filter keeps in some passes and drops in others is at the filter's edge.
    let at_the_edge = margins.iter().any(Option::is_some) && margins.contains(&None);
    let margins: Vec<f32> = margins.into_iter().flatten().collect();
    let (least, most) = (margins.iter().copied().reduce(f32::min), margins.iter().copied().reduce(f32::max));
    difference.gap = margins.last().map(|margin| margin.abs());
    difference.rounding = least.zip(most).map(|(least, most)| most - least);
    let rounds = |(gap, rounding): (f32, f32)| gap <= 2.0 * rounding;
    difference.near_tie = at_the_edge || difference.gap.zip(difference.rounding).is_some_and(rounds);
    Ok(Some(difference))
}

/// Rows per pass when the last tokens of a context are run again. The last entry is plain decoding.
/// Differences between them are rounding.
const PASSES: [usize; 6] = [REREAD, 16, 8, 5, 3, 1];

/// Number of last tokens to run again.
const REREAD: usize = 64;

/// Runs the last tokens of `context` in passes of `rows` rows; row 0 of the returned pass follows
/// the context. The last token also has rows behind it, which it does not attend to.
fn score<'a>(target: &'a mut dyn Model, context: &[TokenId], rows: usize) -> Result<Pass<'a>> {
    let last = context.len() - 1;
    let from = context.len().saturating_sub(REREAD);
    let _ = catch_up(target, context, &mut |_, _| ControlFlow::Continue(()))?;
    let kept = target.truncate(from);
    for chunk in context[kept..last].chunks(rows) {
        target.run(&TokenTree::chain(chunk.iter().copied()), &Want::nothing())?;
    }
    let rows = rows.min(target.config().context - last);
    target.run(&TokenTree::chain(std::iter::repeat_n(context[last], rows)), &Want::rows(0..1))
}

/// Lead of the first of two tokens that may follow `context`, as a difference of logits or, with
/// coupled draws, of perturbed scores. `None` if a token has no probability.
fn margin(
    row: Row<'_>,
    rules: &mut Rules,
    context: &Context,
    [left, right]: [TokenId; 2],
) -> Result<Option<f32>> {
    let position = context.len();
    if let Some(seed) = rules.sampling.seed.filter(|_| !rules.sampling.is_greedy()) {
        let processed = rules.distribution(row, (&context[..]).into())?;
        let score = |token| coupled_score(u64::from(seed), position, token, processed.probability(token));
        let margin = (score(left) - score(right)) as f32 * rules.sampling.temperature;
        return Ok(margin.is_finite().then_some(margin));
    }
    if !rules.allows((&context[..]).into(), &[left, right])? {
        return Ok(None);
    }
    let (logits, penalties) = (row.logits()?, rules.penalties.at(&context[..]));
    let logit = |token: TokenId| {
        let penalty = penalties.iter().find(|penalty| penalty.token == token);
        let logit = logits[token as usize];
        penalty.map_or(logit, |penalty| penalty.apply(logit))
    };
    Ok(Some(logit(left) - logit(right)))
}
