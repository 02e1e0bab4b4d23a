//! What a target's passes and a draft model's tokens cost, measured before the first reply.

use std::time::{Duration, Instant};

use super::{Drafter, Order};
use crate::error::Result;
use crate::forward::Model;
use crate::governor::{MOST_ROWS, VerifyCosts};
use crate::sampler::Sampler;
use crate::sampling::Sampling;
use crate::trace::TokenId;
use crate::tree::TokenTree;

/// Numbers of rows that are measured; the others lie between.
const ROWS: [usize; 6] = [1, 2, 3, 5, 9, MOST_ROWS];

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
pub fn verify(target: &mut dyn Model) -> Result<VerifyCosts> {
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
    Ok(VerifyCosts::measured(&points))
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

/// Milliseconds in which `drafter` drafts a token.
///
/// # Errors
/// Those of [`Drafter::draft`].
pub fn token(drafter: &mut dyn Drafter) -> Result<f64> {
    let mut sampler = Sampler::new(&Sampling::greedy())?;
    let mut times = Vec::new();
    let begin = Instant::now();
    for repeat in 0..=REPEATS {
        let start = Instant::now();
        let drafted = drafter.draft(&[ANY, ANY], &Order::chain(4), &mut sampler)?.guesses.len();
        if repeat > 0 && drafted > 0 {
            times.push(start.elapsed().as_secs_f64() * 1e3 / drafted as f64);
        }
        if begin.elapsed() > TIME && !times.is_empty() {
            break;
        }
    }
    Ok(if times.is_empty() { 0.0 } else { middle(times) })
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
