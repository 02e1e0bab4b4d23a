//! A draft on trial: how often a target would accept its guesses on a text that is there already, and what
//! that is worth on this device. Writes nothing.

use std::ops::ControlFlow;

use super::{Drafter, Order, measure};
use crate::distribution::Distribution;
use crate::error::Result;
use crate::forward::{Model, catch_up};
use crate::governor::{Costs, Governor};
use crate::sampler::Sampler;
use crate::sampling::{Mode, Sampling};
use crate::trace::TokenId;
use crate::tree::TokenTree;

/// What came of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// Places of the text that were tried.
    pub tokens: usize,
    /// The mean chance that a drafted token is accepted.
    pub acceptance: f64,
    /// The draft length that promises most; 0 where plain decoding does.
    pub draft_length: usize,
    pub tokens_per_second: f64,
    pub plain_tokens_per_second: f64,
}

impl Trial {
    /// Against plain decoding.
    pub fn speedup(&self) -> f64 {
        self.tokens_per_second / self.plain_tokens_per_second
    }
}

/// Places that are tried at most: the last ones of the text.
const PLACES: usize = 96;

/// Places whose scores are had from one pass of the target.
const AT_ONCE: usize = 16;

/// Tries `drafter` on the end of `text` (never empty), drawing as `sampling` says. `go_on` is asked between
/// passes; `None` when it says `Break`. The target's cache holds the text afterwards, or the end of it where it
/// is longer than half the context.
///
/// The chance of acceptance is the overlap of the two distributions, the sum of min(p, q) (Leviathan et al.
/// 2023); of a certain guess, the target's probability of it; where nothing is drafted, nothing. It is taken
/// for the same at all depths.
///
/// # Errors
/// Those of the two models.
pub fn attempt(
    target: &mut dyn Model,
    drafter: &mut dyn Drafter,
    text: &[TokenId],
    sampling: &Sampling,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Option<Trial>> {
    let text = &text[text.len().saturating_sub(target.config().context / 2)..];
    let sampling = Sampling { mode: Mode::Fastest, ..sampling.clone() };
    let mut sampler = Sampler::new(&sampling)?;
    if catch_up(target, text, &mut |_, _| go_on())?.1.is_break() {
        return Ok(None);
    }
    let first = (text.len() + 1).saturating_sub(PLACES).max(1);
    // The last token fed is the one before the first place.
    target.truncate(first - 1);
    if drafter.prepare(&text[..first], &mut |_, _| go_on())?.is_break() {
        return Ok(None);
    }
    let mut chances = Vec::new();
    for start in (first..=text.len()).step_by(AT_ONCE) {
        let end = (start + AT_ONCE).min(text.len() + 1);
        let rows = TokenTree::chain(text[start - 1..end - 1].iter().copied());
        let logits = target.forward(&rows, 0..end - start)?;
        for (row, place) in (start..end).enumerate() {
            if go_on().is_break() {
                return Ok(None);
            }
            let context = &text[..place];
            let theirs = Distribution::processed(logits.row(row), &sampling, context);
            let draft = drafter.draft(context, &Order::chain(1), &mut sampler)?;
            chances.push(draft.guesses.first().map_or(0.0, |guess| match &guess.drawn_from {
                Some(drawn_from) => 1.0 - theirs.excess(1.0, drawn_from),
                None => theirs.probability(guess.token),
            }));
        }
    }
    let verify = measure::verify(target)?;
    let draft = measure::draft(drafter, text)?.unwrap_or_else(|| Costs::measured(&[(1, 0.0)]));
    let governor = Governor::new(verify, draft);
    let acceptance = chances.iter().sum::<f64>() / chances.len().max(1) as f64;
    let (draft_length, rate) = governor.promise(acceptance);
    Ok(Some(Trial {
        tokens: chances.len(),
        acceptance,
        draft_length,
        tokens_per_second: rate * 1e3,
        plain_tokens_per_second: governor.plain_rate() * 1e3,
    }))
}
