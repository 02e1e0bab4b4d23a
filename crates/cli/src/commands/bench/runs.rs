//! Runs the same requests with several settings, in turn, so that other load on the computer
//! affects all alike.

use std::ops::ControlFlow;

use foretoken_engine::decoder::{Reply, Request};
use foretoken_engine::governor::GovernorStats;
use foretoken_engine::session::Session;
use foretoken_engine::speculation::Speculation;
use serde::Serialize;

use super::cost::CONTEXT;
use super::numbers::median;
use super::rounds::{RoundCost, RoundTimes};
use crate::error::Result;
use crate::output;

/// Speed of one way of decoding.
#[derive(Serialize)]
pub struct Speed {
    /// Tokens after a reply's first round over their time, so the prompt's processing does not
    /// count. The median over the repeats, each being all prompts together; null if every reply
    /// ended in its first round.
    pub tokens_per_second: Option<f64>,
    /// Accepted over judged tokens of all replies; null if none was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acceptance_rate: Option<f64>,
    /// Accepted over drafted tokens, including those that were not judged; null if none was
    /// drafted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_of_drafted: Option<f64>,
    /// Emitted tokens over rounds of all replies; null without drafts, where it is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_round: Option<f64>,
    /// Times of the rounds after each reply's first.
    pub rounds: Vec<RoundCost>,
}

/// Replies `repeats` times to all `requests` with each of `ways` in turn, and prints the speed of
/// each repeat. The ways do not share statistics. If `cold`, they also forget acceptance after each
/// reply and keep only the costs that were learned before the first counted repeat.
pub fn compare(
    session: &mut Session,
    requests: &[Request],
    ways: &[(String, Speculation)],
    repeats: u32,
    cold: bool,
) -> Result<Vec<Totals>> {
    let mut totals: Vec<Totals> = ways.iter().map(|_| Totals::default()).collect();
    let mut known = vec![session.draft.drafters.saved_stats(); ways.len()];
    for repeat in 0..=repeats {
        // The first repeat warms up caches, pages and clocks.
        let counts = repeat > 0;
        let requests = if counts { requests } else { &requests[..1] };
        for request in requests {
            for turn in 0..ways.len() {
                // Rotates the order, so that no way is always first.
                let way = (turn + repeat as usize) % ways.len();
                let ((_, speculation), totals) = (&ways[way], &mut totals[way]);
                // Otherwise a repeated reply would be drafted from the first one.
                session.decoder.forget(&mut session.draft.drafters);
                session.draft.drafters.restore(known[way].as_ref());
                let reply = write(session, &Request { speculation: speculation.clone(), ..request.clone() })?;
                let stats = session.draft.drafters.saved_stats();
                match cold {
                    false => known[way] = stats,
                    true if !counts => known[way] = stats.map(GovernorStats::without_texts),
                    true => {}
                }
                if counts {
                    totals.add(&reply);
                }
            }
        }
        if counts {
            totals.iter_mut().for_each(Totals::end_repeat);
            let speeds =
                ways.iter().zip(&totals).map(|((name, _), totals)| format!("{} {name}", totals.last()));
            let speeds = speeds.collect::<Vec<_>>().join(", ");
            output::note(format_args!("repeat {repeat} of {repeats}: tokens/s {speeds}"));
        }
    }
    Ok(totals)
}

/// Writes a reply.
pub fn write(session: &mut Session, request: &Request) -> Result<Reply> {
    Ok(session.decoder.reply(request, &mut session.draft.drafters, &mut |_| ControlFlow::Continue(()))?)
}

/// Sums over the replies of one way of decoding.
#[derive(Default)]
pub struct Totals {
    /// Tokens per second of each finished repeat that has any.
    repeats: Vec<f64>,
    /// Current repeat: tokens after each reply's first round, and their time.
    tokens: usize,
    ms: f64,
    /// All repeats.
    rounds: u32,
    emitted: u32,
    drafted: u32,
    judged: u32,
    accepted: u32,
    times: RoundTimes,
}

impl Totals {
    pub fn add(&mut self, reply: &Reply) {
        self.times.add(&reply.rounds);
        if let [first, .., last] = &reply.rounds[..] {
            self.tokens += reply.tokens.len() - first.emitted().count();
            self.ms += f64::from(last.at_ms - first.at_ms);
        }
        self.rounds += reply.summary.rounds;
        self.emitted += reply.summary.tokens;
        self.drafted += reply.summary.drafted;
        self.judged += reply.summary.judged;
        self.accepted += reply.summary.accepted;
    }

    pub fn end_repeat(&mut self) {
        if self.tokens > 0 {
            self.repeats.push(self.tokens as f64 * 1e3 / self.ms);
        }
        (self.tokens, self.ms) = (0, 0.0);
    }

    /// Tokens per second of the latest repeat, formatted.
    pub fn last(&self) -> String {
        self.repeats.last().map_or("no".to_owned(), |speed| format!("{speed:.1}"))
    }

    /// Median position of the rounds; [`CONTEXT`] without rounds.
    pub fn position(&self) -> usize {
        self.times.position().unwrap_or(CONTEXT)
    }

    pub fn plain(self) -> Speed {
        Speed {
            tokens_per_second: median(self.repeats),
            acceptance_rate: None,
            accepted_of_drafted: None,
            tokens_per_round: None,
            rounds: self.times.costs(),
        }
    }

    pub fn speculative(self) -> Speed {
        let ratio = |part: u32, whole: u32| (whole > 0).then(|| f64::from(part) / f64::from(whole));
        Speed {
            acceptance_rate: ratio(self.accepted, self.judged),
            accepted_of_drafted: ratio(self.accepted, self.drafted),
            tokens_per_round: ratio(self.emitted, self.rounds),
            tokens_per_second: median(self.repeats),
            rounds: self.times.costs(),
        }
    }
}
