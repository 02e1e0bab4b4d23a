//! Comparison of two ways of drafting by time per token, on replies to the same prompt. Runs come
//! in pairs of alternating order, so that drifts cancel: a processor that warms up, a computer that
//! gets busy.

use std::ops::ControlFlow;

use foretoken_model::error::{Error, Result};

use crate::decoder::{Decoder, Progress, Reply, Request};
use crate::draft::Drafters;
use crate::trace::Round;

/// Maximum number of points of a curve.
const POINTS: usize = 200;

/// One of the two ways of drafting.
pub struct Contender {
    /// Request; prompt, sampling and maximum length equal the other contender's.
    pub request: Request,
    /// Index of its drafters.
    pub drafters: usize,
}

/// A finished run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub pair: usize,
    /// Index of the contender, 0 or 1.
    pub contender: usize,
    pub reply: Reply,
}

/// Progress of a comparison.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    Begun { pair: usize, contender: usize },
    Round(&'a Round),
    Finished(&'a Run),
}

/// Result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// Index of the faster contender; `None` if the pairs disagree.
    pub winner: Option<usize>,
    /// Time per token of the loser over that of the winner, or without a winner, of contender 1
    /// over contender 0: median, minimum and maximum of the pairs.
    pub ratio: f64,
    pub lowest: f64,
    pub highest: f64,
    pub pairs: usize,
}

/// Generates `pairs` replies of each contender from empty caches and without texts of earlier runs.
///
/// # Errors
/// Errors of [`Decoder::reply`], and `Error::Cancelled` if `on_event` returns `Break`.
pub fn run(
    decoder: &mut Decoder,
    contenders: &[Contender; 2],
    drafters: &mut [Drafters],
    pairs: usize,
    on_event: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) -> Result<Vec<Run>> {
    let mut runs = Vec::with_capacity(2 * pairs);
    for (pair, turn) in (0..pairs).flat_map(|pair| [(pair, 0), (pair, 1)]) {
        let contender = (pair + turn) % 2;
        let Contender { request, drafters: which } = &contenders[contender];
        go_on(on_event(Event::Begun { pair, contender }))?;
        decoder.forget(&mut drafters[*which]);
        let reply = decoder.reply(request, &mut drafters[*which], &mut |progress| match progress {
            Progress::Round(round) => on_event(Event::Round(round)),
            Progress::Prompt { .. } => ControlFlow::Continue(()),
        })?;
        let run = Run { pair, contender, reply: reply.uncancelled()? };
        go_on(on_event(Event::Finished(&run)))?;
        runs.push(run);
    }
    Ok(runs)
}

fn go_on(flow: ControlFlow<()>) -> Result<()> {
    if flow.is_break() { Err(Error::Cancelled) } else { Ok(()) }
}

/// Result from `(contender, milliseconds per token)` of every run, in order.
pub fn verdict(times: &[(usize, f64)]) -> Verdict {
    let of = |contender: usize| times.iter().filter(move |time| time.0 == contender).map(|time| time.1);
    let mut ratios: Vec<f64> = of(0).zip(of(1)).map(|(first, second)| second / first).collect();
    ratios.sort_by(f64::total_cmp);
    let median = match (ratios.len(), ratios.len() / 2) {
        (0, _) => 1.0,
        (length, middle) if length % 2 == 0 => (ratios[middle - 1] * ratios[middle]).sqrt(),
        (_, middle) => ratios[middle],
    };
    let lowest = ratios.first().copied().unwrap_or(1.0);
    let highest = ratios.last().copied().unwrap_or(1.0);
    let pairs = ratios.len();
    if lowest > 1.0 {
        Verdict { winner: Some(0), ratio: median, lowest, highest, pairs }
    } else if highest < 1.0 {
        Verdict { winner: Some(1), ratio: 1.0 / median, lowest: 1.0 / highest, highest: 1.0 / lowest, pairs }
    } else {
        Verdict { winner: None, ratio: median, lowest, highest, pairs }
    }
}

/// Progress of a reply: milliseconds since its start and tokens until then; includes the end of the
/// last round.
pub fn curve(rounds: &[Round]) -> Vec<(f32, u32)> {
    let step = rounds.len().div_ceil(POINTS).max(1);
    let mut tokens = 0;
    let mut points = Vec::with_capacity(POINTS);
    for (index, round) in rounds.iter().enumerate() {
        tokens += round.emitted().count() as u32;
        if (rounds.len() - 1 - index).is_multiple_of(step) {
            points.push((round.at_ms, tokens));
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_winner_takes_less_time_in_every_pair() {
        let verdict = verdict(&[(0, 10.0), (1, 15.0), (1, 18.0), (0, 10.0), (0, 10.0), (1, 14.0)]);
        assert_eq!(verdict, Verdict { winner: Some(0), ratio: 1.5, lowest: 1.4, highest: 1.8, pairs: 3 });
        let swapped = super::verdict(&[(1, 10.0), (0, 15.0), (0, 18.0), (1, 10.0)]);
        assert_eq!((swapped.winner, swapped.pairs), (Some(1), 2));
        assert!((swapped.ratio - 2.7f64.sqrt()).abs() < 1e-12, "{swapped:?}");
        assert!((swapped.lowest - 1.5).abs() < 1e-12 && (swapped.highest - 1.8).abs() < 1e-12, "{swapped:?}");
    }

    #[test]
    fn pairs_that_disagree_have_no_winner() {
        let verdict = verdict(&[(0, 10.0), (1, 15.0), (1, 9.0), (0, 10.0)]);
        assert_eq!((verdict.winner, verdict.lowest, verdict.highest), (None, 0.9, 1.5));
        assert_eq!(super::verdict(&[]).winner, None);
        assert_eq!(super::verdict(&[(0, 1.0), (1, 1.0)]).winner, None);
    }
}
