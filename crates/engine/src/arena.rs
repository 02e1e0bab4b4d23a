//! The arena: two ways of drafting write replies to the same prompt in turn, and the time a token takes says
//! which is faster. Pairs of runs in alternating order cancel what drifts: a processor that warms up, a
//! computer that gets busy.

use std::ops::ControlFlow;

use crate::decoder::{Decoder, Progress, Reply, Request};
use crate::draft::Drafters;
use crate::error::{Error, Result};
use crate::trace::Round;

/// Points of a curve at most.
const POINTS: usize = 200;

/// One of the two.
pub struct Contender {
    /// Whose prompt, sampling and longest reply are the other's, too.
    pub request: Request,
    /// Which of the drafters draft.
    pub drafters: usize,
}

/// A finished run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub pair: usize,
    /// 0 or 1.
    pub contender: usize,
    pub reply: Reply,
}

/// What happens in the arena.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    Begun { pair: usize, contender: usize },
    Round(&'a Round),
    Finished(&'a Run),
}

/// Who is faster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// `None` where the pairs disagree.
    pub winner: Option<usize>,
    /// The other's time a token over the winner's, without a winner that of 1 over that of 0: the median of the
    /// pairs, the least and the greatest.
    pub ratio: f64,
    pub lowest: f64,
    pub highest: f64,
    pub pairs: usize,
}

/// Lets both write `pairs` replies, each from an empty cache and with nothing remembered of the ones before,
/// after what passes and drafts cost was measured.
///
/// # Errors
/// Those of [`Decoder::reply`], and `Error::Cancelled` when `on_event` ends it.
pub fn run(
    decoder: &mut Decoder,
    contenders: &[Contender; 2],
    drafters: &mut [Drafters],
    pairs: usize,
    on_event: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) -> Result<Vec<Run>> {
    for contender in contenders {
        let drafters = &mut drafters[contender.drafters];
        if !drafters.is_empty() && !contender.request.speculation.is_off() {
            decoder.measure(drafters)?;
        }
    }
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

/// Who won, by `(contender, milliseconds a token)` of every run, in the order in which they were made.
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

/// Tokens by time: milliseconds since the reply's beginning and tokens until then, the last round's end among
/// them.
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
