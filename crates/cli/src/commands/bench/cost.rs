//! Cost of one pass: the target's over 1 to 17 tokens, and the drafter's for a token. Both decide
//! how far ahead drafting pays. Passes are measured as the rounds of a reply run them.

use std::ops::ControlFlow;
use std::time::Instant;

use foretoken_engine::context::Context;
use foretoken_engine::decoder::Request;
use foretoken_engine::draft::{DraftRequest, replay_for};
use foretoken_engine::sampler::Sampler;
use foretoken_engine::session::Session;
use foretoken_engine::speculation::MAX_DRAFT_LENGTH;
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{LogitSubset, Model, Want};
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;
use serde::Serialize;

use super::numbers::median;
use crate::error::Result;

/// The longest draft and the token before it.
const MAX_ROWS: usize = MAX_DRAFT_LENGTH + 1;

/// Number of cached tokens while a pass is measured, unless replies were measured before.
pub const CONTEXT: usize = 256;

/// Number of tokens per measured draft.
const DRAFT_LENGTH: usize = 4;

/// Measurements of each length, in rotating order, so that a slow moment affects all lengths.
const REPEATS: usize = 11;

/// The target's time for a pass with the logits of all rows.
#[derive(Serialize)]
pub struct RowCost {
    pub rows: usize,
    pub ms: f64,
    /// Time over the time of one row.
    pub ratio: f64,
    /// Time of a pass that follows a draft, which evicts weights of the target from the processor's
    /// cache; none without a drafter that takes time, and for one row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_draft_ms: Option<f64>,
    /// Average number of experts that a layer reads; none in a dense model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experts: Option<f64>,
}

impl RowCost {
    /// Costs from `times` by numbers of rows, in milliseconds; the first is that of one row.
    pub fn of(times: impl IntoIterator<Item = (usize, f64)>) -> Vec<Self> {
        let mut one = None;
        let cost = |(rows, ms)| Self {
            rows,
            ms,
            ratio: ms / *one.get_or_insert(ms),
            after_draft_ms: None,
            experts: None,
        };
        times.into_iter().map(cost).collect()
    }

    /// Heading above the [lines](Self::line) of such costs.
    pub fn heading(costs: &[Self]) -> String {
        let experts = costs.iter().any(|cost| cost.experts.is_some());
        let drafted = costs.iter().any(|cost| cost.after_draft_ms.is_some());
        let drafted = if drafted { "  after a draft, ms" } else { "" };
        format!(
            "rows in a pass          ms  ratio{}{drafted}",
            if experts { "  experts a layer" } else { "" }
        )
    }

    /// One line of the table.
    pub fn line(&self) -> String {
        let Self { rows, ms, ratio, after_draft_ms, experts } = self;
        let experts = experts.map_or(String::new(), |experts| format!("  {experts:>15.1}"));
        let drafted = after_draft_ms.map_or(String::new(), |ms| format!("  {ms:>17.3}"));
        format!("{rows:14}  {ms:>10.3}  {ratio:>5.2}{experts}{drafted}")
    }
}

/// Medians for every number of rows that a round can have, after `context` cached tokens.
///
/// As in a reply, a pass follows another over as many rows, and returns the hidden states that the
/// first drafter reads. A pass over one row right after one over many takes longer.
pub fn verify_cost(session: &mut Session, requests: &[Request], context: usize) -> Result<Vec<RowCost>> {
    let Session { decoder, draft, .. } = session;
    let target = decoder.target_mut();
    let context = context.min(target.config().context.saturating_sub(MAX_ROWS));
    let text = Context::new(tokens(requests).take(context + 1).collect());
    fill(target, &text[..context])?;
    let mut drafter = draft.drafters.first().filter(|drafter| !drafter.cost().is_free());
    let taps = drafter.as_ref().and_then(|drafter| drafter.taps()).cloned().unwrap_or_default();
    if let Some(drafter) = drafter.as_deref_mut().filter(|drafter| drafter.taps().is_some()) {
        let _ = replay_for(target, drafter, &text, &mut || ControlFlow::Continue(()))?;
    }
    let most = MAX_ROWS.min(target.config().context - context);
    let (mut times, mut after_draft) = (vec![Vec::new(); most], vec![Vec::new(); most]);
    let mut experts = vec![None; most];
    let mut sampler = Sampler::new(&Sampling::greedy())?;
    let mut pass = |rows: usize| -> Result<(f64, Option<f64>)> {
        let tree = TokenTree::chain(tokens(requests).skip(context).take(rows));
        let start = Instant::now();
        let pass = target.run(&tree, &Want::all_rows().subset(LogitSubset::Peaks).features(&taps))?;
        let found = (milliseconds(start), pass.experts_read());
        pass.keep(&[])?;
        Ok(found)
    };
    for _ in 0..REPEATS {
        for rows in 1..=most {
            pass(rows)?;
            let (ms, read) = pass(rows)?;
            times[rows - 1].push(ms);
            experts[rows - 1] = read;
            if let Some(drafter) = drafter.as_deref_mut().filter(|_| rows > 1) {
                drafter.draft(&text, &DraftRequest::chain(rows - 1), &mut sampler)?;
                after_draft[rows - 1].push(pass(rows)?.0);
            }
        }
    }
    let costs = RowCost::of((1..).zip(times.into_iter().filter_map(median)));
    let others = after_draft.into_iter().map(median).zip(experts);
    let whole = |(cost, (after_draft_ms, experts))| RowCost { after_draft_ms, experts, ..cost };
    Ok(costs.into_iter().zip(others).map(whole).collect())
}

/// Prefill speed of the target in tokens per second: the median of three.
pub fn prompt_speed(target: &mut dyn Model, requests: &[Request]) -> Result<f64> {
    let mut speeds = Vec::new();
    for _ in 0..3 {
        let start = Instant::now();
        let read = fill_with_text(target, requests)?;
        target.wait()?;
        speeds.push(read as f64 / milliseconds(start) * 1e3);
    }
    Ok(median(speeds).unwrap_or_default())
}

/// Fills the cache with text, [`CONTEXT`] tokens if there is room, and returns their number.
pub fn fill_with_text(target: &mut dyn Model, requests: &[Request]) -> Result<usize> {
    let context = context(requests, target.config().context - MAX_ROWS.min(target.config().context));
    fill(target, &context)?;
    Ok(context.len())
}

/// Replaces the cached tokens by `text`.
fn fill(target: &mut dyn Model, text: &[TokenId]) -> Result<()> {
    target.truncate(0);
    target.run(&TokenTree::chain(text.iter().copied()), &Want::nothing())?;
    Ok(())
}

/// The drafter's time for a token; `None` without a drafter or drafted tokens.
pub fn draft_cost(session: &mut Session, requests: &[Request]) -> Result<Option<f64>> {
    let Some(request) = requests.first() else { return Ok(None) };
    let context = Context::new(context(requests, session.decoder.target().config().context - 1));
    let mut sampler = Sampler::new(&request.sampling)?;
    let mut times = Vec::new();
    let Session { decoder, draft, .. } = session;
    let Some(drafter) = draft.drafters.first() else { return Ok(None) };
    if drafter.taps().is_some() {
        let _ = replay_for(decoder.target_mut(), drafter, &context, &mut || ControlFlow::Continue(()))?;
    }
    // The first repeat also reads the context.
    for repeat in 0..=REPEATS {
        let start = Instant::now();
        let drafted =
            drafter.draft(&context, &DraftRequest::chain(DRAFT_LENGTH), &mut sampler)?.guesses.len();
        if repeat > 0 && drafted > 0 {
            times.push(milliseconds(start) / drafted as f64);
        }
    }
    Ok(median(times))
}

/// Text of the prompts, repeated up to the measured context or `room`.
fn context(requests: &[Request], room: usize) -> Vec<TokenId> {
    tokens(requests).take(CONTEXT.min(room)).collect()
}

fn tokens(requests: &[Request]) -> impl Iterator<Item = TokenId> {
    requests.iter().flat_map(|request| request.prompt.iter().copied()).cycle()
}

pub fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
