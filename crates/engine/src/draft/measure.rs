//! Cost measurements of a target's passes and a drafter's drafts, for evaluations without replies.

use std::time::{Duration, Instant};

use foretoken_forward::tree::TokenTree;
use foretoken_forward::{LogitSubset, Model, Taps, Want};
use foretoken_model::error::Result;
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;

use super::{DraftRequest, Drafter};
use crate::context::Context;
use crate::governor::{Costs, DraftCosts, MAX_ROWS};
use crate::sampler::Sampler;

/// Row counts that are measured; costs between them are interpolated.
const ROWS: [usize; 6] = [1, 2, 3, 5, 9, MAX_ROWS];

/// Time limit, once everything was measured [`FEWEST`] times.
const TIME: Duration = Duration::from_millis(250);

/// Minimum number of measurements. A single one may be disturbed.
const FEWEST: usize = 3;

/// Maximum number of measurements, for small models.
const REPEATS: usize = 99;

/// Rows of the passes between measured drafts.
const PASS_ROWS: usize = 2;

/// Cyclic reader of a text's tokens.
struct Text<'a> {
    tokens: &'a [TokenId],
    at: usize,
}

impl Text<'_> {
    /// The next `count` tokens as a chain; token 0 if the text is empty.
    fn next(&mut self, count: usize) -> TokenTree {
        let token = |index: usize| self.tokens.get(index % self.tokens.len().max(1)).copied().unwrap_or(0);
        let tree = TokenTree::chain((self.at..self.at + count).map(token));
        self.at += count;
        tree
    }
}

/// Measures passes over tokens of `text` after the target's cached tokens, without hidden states.
///
/// # Errors
/// Errors of [`Model::run`].
pub fn verify(target: &mut dyn Model, text: &[TokenId]) -> Result<Costs> {
    let (text, taps) = (&mut Text { tokens: text, at: 0 }, &Taps::default());
    let room = target.config().context - target.cached().len();
    let rows: Vec<usize> = ROWS.into_iter().filter(|&rows| rows <= room).collect();
    let mut times = vec![Vec::new(); rows.len()];
    // The first pass touches memory for the first time and is not counted.
    pass(target, *rows.last().unwrap_or(&1), text, taps)?;
    repeatedly(|| {
        // One row follows many here, and one in plain decoding.
        pass(target, 1, text, taps)?;
        for (&rows, times) in rows.iter().zip(&mut times) {
            times.push(pass(target, rows, text, taps)?);
        }
        Ok(())
    })?;
    let points: Vec<_> = rows.into_iter().zip(times.into_iter().map(middle)).collect();
    Ok(Costs::measured(&points))
}

/// Milliseconds of a pass over `rows` tokens, none of which stay cached.
fn pass(target: &mut dyn Model, rows: usize, text: &mut Text<'_>, taps: &Taps) -> Result<f64> {
    let tree = text.next(rows);
    let start = Instant::now();
    let pass = target.run(&tree, &Want::all_rows().subset(LogitSubset::Peaks).features(taps))?;
    let time = start.elapsed();
    pass.keep(&[])?;
    Ok(time.as_secs_f64() * 1e3)
}

/// Measures drafts after `context`. `None` for a drafter that drafts nothing there, or at no cost.
///
/// As in a reply, each draft follows a pass of `target`, whose weights have evicted the drafter's
/// from the cache, and another pass follows it. The passes run over tokens of `text`, as in
/// [`verify`].
///
/// # Errors
/// Errors of [`Drafter::draft`] and [`Model::run`].
pub fn draft(
    drafter: &mut dyn Drafter,
    context: &Context,
    target: &mut dyn Model,
    text: &[TokenId],
) -> Result<Option<DraftCosts>> {
    let taps = &drafter.taps().cloned().unwrap_or_default();
    let (lengths, at_once) = (drafter.cost().lengths(), drafter.cost().at_once().is_some());
    let mut sampler = Sampler::new(&Sampling::greedy())?;
    let mut timed = |length: usize| -> Result<Option<f64>> {
        let start = Instant::now();
        let drafted = drafter.draft(context, &DraftRequest::chain(length), &mut sampler)?.guesses.len();
        let time = start.elapsed().as_secs_f64() * 1e3;
        // The time of a draft that ended its text early is scaled up to the whole length, unless
        // all of it came in one pass.
        Ok(match drafted {
            0 => None,
            _ if at_once => Some(time),
            part => Some(time * length as f64 / part as f64),
        })
    };
    // The first drafts touch memory for the first time and are not counted.
    let mut drafts_here = false;
    for &length in &lengths {
        drafts_here |= timed(length)?.is_some();
    }
    if !drafts_here {
        return Ok(None);
    }
    let text = &mut Text { tokens: text, at: 0 };
    let passes = target.cached().len() + PASS_ROWS <= target.config().context;
    let mut drafts = vec![Vec::new(); lengths.len()];
    let (mut after_draft, mut after_pass) = (Vec::new(), Vec::new());
    repeatedly(|| {
        for (&length, drafts) in lengths.iter().zip(&mut drafts) {
            drafts.extend(timed(length)?);
            if passes {
                after_draft.push(pass(target, PASS_ROWS, text, taps)?);
            }
        }
        if passes {
            after_pass.push(pass(target, PASS_ROWS, text, taps)?);
        }
        Ok(())
    })?;
    let measured = lengths.into_iter().zip(drafts).filter(|(_, times)| !times.is_empty());
    let points: Vec<_> = measured.map(|(length, times)| (length, middle(times))).collect();
    if points.is_empty() {
        return Ok(None);
    }
    let eviction_cost = if passes { middle(after_draft) / middle(after_pass) } else { 1.0 };
    Ok(Some(DraftCosts { draft: Costs::measured(&points), eviction_cost }))
}

/// Measures [`FEWEST`] times and then until [`TIME`] is over, at most [`REPEATS`] times.
fn repeatedly(mut measure: impl FnMut() -> Result<()>) -> Result<()> {
    let begin = Instant::now();
    for repeat in 1..=REPEATS {
        measure()?;
        if repeat >= FEWEST && begin.elapsed() > TIME {
            break;
        }
    }
    Ok(())
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_measured_with_consecutive_tokens_of_a_text() {
        let text = &mut Text { tokens: &[5, 6, 7], at: 0 };
        let tokens = |tree: TokenTree| tree.tokens().collect::<Vec<_>>();
        assert_eq!([2, 3].map(|rows| tokens(text.next(rows))), [vec![5, 6], vec![7, 5, 6]]);
        assert_eq!(tokens(Text { tokens: &[], at: 4 }.next(2)), [0, 0]);
    }
}
