//! What a target's passes and a draft model's drafts cost, measured before the first reply.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::{Drafter, Order};
use crate::error::Result;
use crate::forward::Model;
use crate::governor::{Costs, MOST_ROWS};
use crate::sampler::Sampler;
use crate::sampling::Sampling;
use crate::trace::TokenId;
use crate::tree::TokenTree;

/// Numbers of rows that are measured; the others lie between.
const ROWS: [usize; 6] = [1, 2, 3, 5, 9, MOST_ROWS];

/// Draft lengths that are measured.
const LENGTHS: [usize; 2] = [1, 4];

/// Measuring ends after this time, as soon as each number of rows was measured once: a large model takes
/// longer and needs it less, as what disturbs is short.
const TIME: Duration = Duration::from_millis(250);

/// Measurements of a small one.
const REPEATS: usize = 99;

/// A token that every model has.
const ANY: TokenId = 0;

/// The costs of passes after what the target has cached.
///
/// # Errors
/// Those of [`Model::forward`].
pub fn verify(target: &mut dyn Model) -> Result<Costs> {
    let cached = target.cached().len();
    let room = target.config().context - cached;
    let rows: Vec<usize> = ROWS.into_iter().filter(|&rows| rows <= room).collect();
    let mut times = vec![Vec::new(); rows.len()];
    let begin = Instant::now();
    // The first pass touches memory for the first time and is not counted.
    pass(target, *rows.last().unwrap_or(&1))?;
    for _ in 0..REPEATS {
        for (&rows, times) in rows.iter().zip(&mut times) {
            times.push(pass(target, rows)?);
            target.truncate(cached);
        }
        if begin.elapsed() > TIME {
            break;
        }
    }
    let points: Vec<_> = rows.into_iter().zip(times.into_iter().map(middle)).collect();
    Ok(Costs::measured(&points))
}

/// What some numbers of rows cost at a glance, to see whether costs that are known hold.
///
/// # Errors
/// Those of [`Model::forward`].
pub fn glance(target: &mut dyn Model) -> Result<Vec<(usize, f64)>> {
    const GLANCE: [usize; 2] = [1, 5];
    let room = target.config().context - target.cached().len();
    let mut passes = Vec::new();
    for rows in GLANCE.into_iter().filter(|&rows| rows <= room) {
        // The first touches memory for the first time.
        let times = [pass(target, rows)?, pass(target, rows)?];
        passes.push((rows, times[0].min(times[1])));
    }
    Ok(passes)
}

/// Milliseconds.
fn pass(target: &mut dyn Model, rows: usize) -> Result<f64> {
    let cached = target.cached().len();
    let start = Instant::now();
    target.forward(&TokenTree::chain(std::iter::repeat_n(ANY, rows)), 0..rows)?;
    let time = start.elapsed();
    target.truncate(cached);
    Ok(time.as_secs_f64() * 1e3)
}

/// Milliseconds in which a drafter that knows nothing of `context` reads it.
///
/// # Errors
/// Those of [`Drafter::prepare`].
pub fn reading(drafter: &mut dyn Drafter, context: &[TokenId]) -> Result<f64> {
    drafter.forget();
    let start = Instant::now();
    let _ = drafter.prepare(context, &mut |_, _| ControlFlow::Continue(()))?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// The costs of drafts after `context` by their length; `None` of one that drafts nothing there.
///
/// # Errors
/// Those of [`Drafter::draft`].
pub fn draft(drafter: &mut dyn Drafter, context: &[TokenId]) -> Result<Option<Costs>> {
    let mut sampler = Sampler::new(&Sampling::greedy())?;
    let mut times = vec![Vec::new(); LENGTHS.len()];
    let begin = Instant::now();
    for repeat in 0..=REPEATS {
        for (&length, times) in LENGTHS.iter().zip(&mut times) {
            let start = Instant::now();
            let drafted = drafter.draft(context, &Order::chain(length), &mut sampler)?.guesses.len();
            // A draft that ended its text is taken for a part of a whole one.
            if repeat > 0 && drafted > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e3 * length as f64 / drafted as f64);
            }
        }
        if repeat > 0 && begin.elapsed() > TIME {
            break;
        }
    }
    let measured = LENGTHS.into_iter().zip(times).filter(|(_, times)| !times.is_empty());
    let points: Vec<_> = measured.map(|(length, times)| (length, middle(times))).collect();
    Ok((!points.is_empty()).then(|| Costs::measured(&points)))
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
