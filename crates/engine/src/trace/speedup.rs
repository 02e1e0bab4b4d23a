//! Speedup of replies over plain decoding: the one number that window, server and terminal show.
//!
//! All rounds of a reply count except the first, whose time includes the prompt. Plain decoding is
//! assumed to take the time of a plain pass at each token's position ([`PlainCosts`]). A round
//! without a draft is plain decoding, apart from the time to look for a draft. Rounds whose draft
//! was rejected entirely save nothing, whatever a noisy clock shows. Stretches of repeated text do
//! not count ([`Repeats`]).

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::Round;
use super::plain::{Curve, PlainCosts};
use super::repeats::Repeats;
use crate::drafter_kind::DrafterKind;

/// Distance from 1 within which a reply is called as fast as plain decoding: measurements cannot
/// tell such speedups apart.
pub const SAME_SPEED: f64 = 0.05;

/// Positions that are summed before the curve is evaluated.
const STRETCH: u32 = 64;

/// Time between two rounds, as a multiple of the later one's own time, from which something else
/// happened in between: a prefill of the draft model, or the computer slept.
const PAUSE: f64 = 1.5;

/// Speedup of replies with drafts over plain decoding.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Speedup {
    /// `plain_ms / elapsed_ms`.
    pub factor: f64,
    /// `plain_ms - elapsed_ms`; negative where drafting cost time.
    pub saved_ms: f64,
    /// Estimated time of plain decoding, in milliseconds.
    pub plain_ms: f64,
    /// Time of the counted rounds, in milliseconds.
    pub elapsed_ms: f64,
    /// Number of replies; the parts of a continued reply count as one.
    pub replies: u32,
}

impl Speedup {
    /// Computes the speedup from both times; `None` if no time was counted.
    pub fn new(plain_ms: f64, elapsed_ms: f64, replies: u32) -> Option<Self> {
        let factor = plain_ms / elapsed_ms;
        let saved_ms = plain_ms - elapsed_ms;
        (elapsed_ms > 0.0 && factor.is_finite()).then_some(Self {
            factor,
            saved_ms,
            plain_ms,
            elapsed_ms,
            replies,
        })
    }

    /// Speedup of a reply; `None` if nothing was drafted or plain decoding was never measured.
    pub fn of(rounds: &[Round]) -> Option<Self> {
        let mut meter = SpeedupMeter::default();
        rounds.iter().for_each(|round| meter.add(round));
        meter.speedup()
    }

    /// Speedup after each round.
    pub fn after_each(rounds: &[Round]) -> Vec<Option<Self>> {
        let mut meter = SpeedupMeter::default();
        let after = |round| {
            meter.add(round);
            meter.speedup()
        };
        rounds.iter().map(after).collect()
    }

    /// Speedup of all parts of a continued reply.
    pub fn of_parts(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        let sum = Self::of_replies(parts)?;
        Some(Self { replies: 1, ..sum })
    }

    /// Speedup of several replies: of their total times, not the mean of their factors.
    pub fn of_replies(replies: impl IntoIterator<Item = Self>) -> Option<Self> {
        let (mut plain_ms, mut elapsed_ms, mut count) = (0.0, 0.0, 0);
        for reply in replies {
            plain_ms += reply.plain_ms;
            elapsed_ms += reply.elapsed_ms;
            count += reply.replies;
        }
        Self::new(plain_ms, elapsed_ms, count)
    }
}

impl Display for Speedup {
    /// "1.6x as fast as plain decoding", "about as fast as plain decoding".
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let digits = usize::from(self.factor < 9.95);
        match self.factor {
            same if (1.0 - SAME_SPEED..=1.0 + SAME_SPEED).contains(&same) => {
                formatter.write_str("about as fast as plain decoding")
            }
            factor => write!(formatter, "{factor:.digits$}x as fast as plain decoding"),
        }
    }
}

/// Speedup of a reply, updated round by round in constant time.
#[derive(Debug, Clone, Default)]
pub struct SpeedupMeter {
    costs: PlainCosts,
    repeats: Repeats,
    before: Option<Before>,
    /// True once anything was drafted; a reply without drafts is plain decoding itself.
    drafted: bool,
    counted: Vec<Counted>,
    /// Sums of the counted rounds, by position.
    stretches: BTreeMap<u32, Stretch>,
}

/// Previous round.
#[derive(Debug, Clone, Copy)]
struct Before {
    index: u32,
    at_ms: f32,
    /// True if the target's weights are still in the processor's cache: neither the prompt nor a
    /// draft model's pass evicted them.
    is_plain: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// At least one drafted token was accepted.
    Hit,
    /// Tokens were drafted and none was accepted.
    Miss,
    /// Nothing was drafted.
    Plain,
}

/// A counted round.
#[derive(Debug, Clone, Copy)]
struct Counted {
    /// Index of its first token in the reply.
    token: usize,
    stretch: u32,
    kind: Kind,
    sums: Sums,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    tokens: f64,
    positions: f64,
    /// Total milliseconds.
    ms: f64,
    /// Milliseconds of plain rounds, without looking for a draft.
    plain_ms: f64,
}

impl Sums {
    fn add(&mut self, other: &Self, sign: f64) {
        self.tokens += sign * other.tokens;
        self.positions += sign * other.positions;
        self.ms += sign * other.ms;
        self.plain_ms += sign * other.plain_ms;
    }

    /// Milliseconds of plain decoding for these tokens.
    fn cost(&self, curve: &Curve) -> f64 {
        if self.tokens > 0.5 { self.tokens * curve.at(self.positions / self.tokens) } else { 0.0 }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Stretch {
    hits: Sums,
    misses: Sums,
    plain: Sums,
}

impl Stretch {
    fn of(&mut self, kind: Kind) -> &mut Sums {
        match kind {
            Kind::Hit => &mut self.hits,
            Kind::Miss => &mut self.misses,
            Kind::Plain => &mut self.plain,
        }
    }

    fn plain_ms(&self, curve: &Curve) -> f64 {
        self.hits.cost(curve) + self.misses.cost(curve).min(self.misses.ms) + self.plain.plain_ms
    }

    fn elapsed_ms(&self) -> f64 {
        self.hits.ms + self.misses.ms + self.plain.ms
    }
}

impl SpeedupMeter {
    /// Adds the next round of the reply.
    pub fn add(&mut self, round: &Round) {
        let decision = round.decision.as_ref();
        if let Some(&expected) = decision.and_then(|decision| decision.tokens_per_second.first()) {
            self.costs.expect(round.position, expected);
        }
        self.drafted |= !round.drafted.is_empty();
        let first_token = self.repeats.len();
        round.emitted().for_each(|(token, _)| self.repeats.push(token));
        let runs_model = |kind| matches!(kind, DrafterKind::Model | DrafterKind::Head);
        let ran_model = round.drafted.iter().any(|drafted| runs_model(drafted.drafter));
        let now =
            Before { index: round.index, at_ms: round.at_ms, is_plain: self.before.is_some() && !ran_model };
        // A round whose predecessor is missing has no time of its own.
        let before = self.before.replace(now).filter(|before| before.index + 1 == round.index);
        if let Some(before) = before {
            self.count(round, before, first_token);
        }
        self.forget_repeats();
    }

    fn count(&mut self, round: &Round, before: Before, token: usize) {
        let ms = f64::from(round.at_ms - before.at_ms).max(0.0);
        let kind = match round.drafted.is_empty() {
            true => Kind::Plain,
            false if round.accepted() == 0 => Kind::Miss,
            false => Kind::Hit,
        };
        let plain_ms = if kind == Kind::Plain { plain_ms(round, ms) } else { 0.0 };
        if kind == Kind::Plain && before.is_plain {
            self.costs.measure(round.position, plain_ms);
        }
        let tokens = (self.repeats.len() - token) as f64;
        let middle = f64::from(round.position) + (tokens - 1.0) / 2.0;
        let sums = Sums { tokens, positions: tokens * middle, ms, plain_ms };
        let counted = Counted { token, stretch: round.position / STRETCH, kind, sums };
        self.stretches.entry(counted.stretch).or_default().of(kind).add(&sums, 1.0);
        self.counted.push(counted);
    }

    /// Removes rounds whose tokens turned out to be a repetition.
    fn forget_repeats(&mut self) {
        let Some(start) = self.repeats.start() else { return };
        while let Some(Counted { stretch, kind, sums, .. }) =
            self.counted.pop_if(|counted| counted.token >= start)
        {
            self.stretches.entry(stretch).or_default().of(kind).add(&sums, -1.0);
        }
    }

    /// Speedup so far; `None` if nothing was drafted or plain decoding was never measured.
    pub fn speedup(&self) -> Option<Speedup> {
        let curve = self.costs.curve().filter(|_| self.drafted && !self.counted.is_empty())?;
        let plain_ms = self.stretches.values().map(|stretch| stretch.plain_ms(&curve)).sum();
        let elapsed_ms = self.stretches.values().map(Stretch::elapsed_ms).sum();
        Speedup::new(plain_ms, elapsed_ms, 1)
    }
}

/// Milliseconds of a plain round without looking for a draft. `ms` is the time since the previous
/// round.
fn plain_ms(round: &Round, ms: f64) -> f64 {
    let times = &round.times;
    let own = f64::from(times.draft_ms + times.verify_ms + times.sample_ms + times.rest_ms);
    let paused = own > 0.0 && ms > PAUSE * own;
    (if paused { own } else { ms } - f64::from(times.draft_ms)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Decision, Drafted, Extra, ExtraKind, LengthReason, Outcome, Times};

    /// Reply of consecutive rounds whose tokens all differ.
    #[derive(Default)]
    struct Made {
        rounds: Vec<Round>,
        position: u32,
        at_ms: f64,
        token: u32,
    }

    impl Made {
        /// Starts after a first round that ends at `position`, at 500 ms.
        fn from(position: u32) -> Self {
            let mut made = Self { position, at_ms: 490.0, ..Self::default() };
            made.round(10.0, 0, 0);
            made
        }

        /// Adds a round of `ms` milliseconds with numbers of drafted and accepted tokens.
        fn round(&mut self, ms: f64, drafted: usize, accepted: usize) {
            self.at_ms += ms;
            let mut next = || {
                self.token += 1;
                self.token
            };
            let drafted: Vec<_> = (0..drafted).map(|at| drafted_token(next(), at < accepted)).collect();
            let extra = Extra { token: next(), text: String::new(), kind: ExtraKind::Plain };
            self.rounds.push(Round {
                index: self.rounds.len() as u32,
                position: self.position,
                draft_length: drafted.len() as u32,
                drafted,
                extra: Some(extra),
                reason: LengthReason::Governed,
                threshold: None,
                expected: None,
                row_price: None,
                staged: false,
                decision: None,
                experts: None,
                times: Times { verify_ms: ms as f32, ..Times::default() },
                at_ms: self.at_ms as f32,
                logprobs: Vec::new(),
            });
            self.position += accepted as u32 + 1;
        }

        fn expecting(mut self, tokens_per_second: f32) -> Self {
            self.rounds[0].decision = Some(Decision {
                before: None,
                chosen: 1,
                drafting_ms: Vec::new(),
                verify_ms: Vec::new(),
                acceptance: Vec::new(),
                tokens_per_second: vec![tokens_per_second, 2.0 * tokens_per_second],
            });
            self
        }
    }

    fn drafted_token(token: u32, accepted: bool) -> Drafted {
        Drafted {
            token,
            text: String::new(),
            parent: None,
            draft_probability: 0.5,
            target_probability: Some(0.5),
            acceptance: Some(1.0),
            outcome: if accepted { Outcome::Accepted } else { Outcome::Rejected },
            drafter: DrafterKind::Model,
            survival: None,
        }
    }

    fn near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-3, "{found}, expected {expected}");
    }

    #[test]
    fn the_time_saved_is_the_time_of_plain_passes_minus_the_time_taken() {
        let mut made = Made::from(100);
        (0..4).for_each(|_| made.round(10.0, 0, 0));
        (0..5).for_each(|_| made.round(15.0, 2, 2));
        let speedup = Speedup::of(&made.rounds).unwrap();
        near(speedup.elapsed_ms, 40.0 + 75.0);
        near(speedup.plain_ms, 40.0 + 150.0);
        near(speedup.saved_ms, 75.0);
        near(speedup.factor, 190.0 / 115.0);
        assert_eq!(speedup.replies, 1);
    }

    #[test]
    fn nothing_accepted_is_never_a_gain() {
        // Plain passes were slow because something else ran, which had ended when the drafts came.
        let mut made = Made::from(29_000).expecting(3.1);
        (0..4).for_each(|_| made.round(320.0, 0, 0));
        (0..40).for_each(|_| made.round(120.0, 3, 0));
        for speedup in Speedup::after_each(&made.rounds).into_iter().flatten() {
            assert!(speedup.saved_ms <= 0.0 && speedup.factor <= 1.0, "{speedup:?}");
        }
        assert!(Speedup::of(&made.rounds).is_some());
    }

    #[test]
    fn each_position_has_the_cost_that_plain_decoding_has_there() {
        // A plain pass takes 5 ms and 1 ms more with every 100 tokens of context.
        let cost = |position: f64| 5.0 + position / 100.0;
        let mut made = Made::from(100);
        let (mut plain_ms, mut elapsed_ms) = (0.0, 0.0);
        for number in 0..1004 {
            let at = f64::from(made.position);
            if number % 50 < 4 {
                made.round(cost(at), 0, 0);
                plain_ms += cost(at);
                elapsed_ms += cost(at);
            } else {
                let ms = 1.5 * cost(at);
                made.round(ms, 2, 2);
                plain_ms += cost(at) + cost(at + 1.0) + cost(at + 2.0);
                elapsed_ms += ms;
            }
        }
        let speedup = Speedup::of(&made.rounds).unwrap();
        near(speedup.elapsed_ms, elapsed_ms);
        near(speedup.plain_ms, plain_ms);
        let at_the_end = f64::from(made.position - 100) * cost(f64::from(made.position));
        assert!(at_the_end > 1.6 * plain_ms, "one speed for all would have been far off");
    }

    #[test]
    fn the_pass_after_a_draft_does_not_measure_plain_decoding() {
        let mut made = Made::from(100);
        for number in 0..20 {
            made.round(15.0, 2, 2);
            // The draft model evicted the target's weights from the processor's cache.
            made.round(14.0, 0, 0);
            if number % 5 == 0 {
                (0..3).for_each(|_| made.round(10.0, 0, 0));
            }
        }
        near(Speedup::of(&made.rounds).unwrap().plain_ms, 20.0 * (30.0 + 14.0) + 4.0 * 30.0);
    }

    #[test]
    fn without_plain_passes_the_governors_estimate_counts() {
        let mut made = Made::from(100).expecting(100.0);
        (0..10).for_each(|_| made.round(20.0, 3, 3));
        near(Speedup::of(&made.rounds).unwrap().factor, 2.0);
    }

    #[test]
    fn there_is_no_speedup_without_drafts_or_without_a_measure() {
        let mut plain = Made::from(100).expecting(100.0);
        (0..10).for_each(|_| plain.round(10.0, 0, 0));
        assert_eq!(Speedup::of(&plain.rounds), None);
        let mut unmeasured = Made::from(100);
        (0..10).for_each(|_| unmeasured.round(10.0, 1, 1));
        assert_eq!(Speedup::of(&unmeasured.rounds), None);
        assert_eq!(Speedup::of(&[]), None);
    }

    #[test]
    fn the_drafts_prefill_counts_against_the_speedup() {
        let mut made = Made::from(100).expecting(100.0);
        made.round(10.0, 0, 0);
        let pause = 400.0;
        for round in &mut made.rounds[1..] {
            round.at_ms += pause;
        }
        made.at_ms += f64::from(pause);
        (0..10).for_each(|_| made.round(20.0, 3, 3));
        let speedup = Speedup::of(&made.rounds).unwrap();
        near(speedup.plain_ms, 10.0 + 400.0);
        near(speedup.elapsed_ms, 410.0 + 200.0);
    }

    #[test]
    fn repeated_stretches_do_not_count() {
        let mut made = Made::from(100).expecting(100.0);
        (0..10).for_each(|_| made.round(20.0, 1, 1));
        let before = Speedup::of(&made.rounds).unwrap();
        // Four tokens a round, of a sequence of eight.
        for number in 0..40 {
            made.token = 10_000 + 4 * (number % 2);
            made.round(12.0, 3, 3);
        }
        let after = Speedup::of(&made.rounds).unwrap();
        near(after.plain_ms, before.plain_ms + 80.0);
        near(after.elapsed_ms, before.elapsed_ms + 24.0);
    }

    #[test]
    fn the_parts_of_a_continued_reply_are_summed_and_are_one_reply() {
        let part = |plain_ms, elapsed_ms| Speedup::new(plain_ms, elapsed_ms, 1).unwrap();
        let whole = Speedup::of_parts([part(3000.0, 1000.0), part(1000.0, 1000.0)]).unwrap();
        assert_eq!((whole.factor, whole.saved_ms, whole.replies), (2.0, 2000.0, 1));
        let replies = Speedup::of_replies([whole, part(1000.0, 1000.0)]).unwrap();
        assert_eq!((replies.plain_ms, replies.elapsed_ms, replies.replies), (5000.0, 3000.0, 2));
        assert_eq!(Speedup::of_parts([]), None);
    }

    #[test]
    fn the_last_running_value_is_that_of_the_reply() {
        let mut made = Made::from(100).expecting(80.0);
        for number in 0..200 {
            made.round(if number % 9 < 4 { 10.0 } else { 17.0 }, usize::from(number % 9 >= 4) * 2, 1);
        }
        let after_each = Speedup::after_each(&made.rounds);
        assert_eq!(after_each.len(), made.rounds.len());
        assert_eq!(after_each.last().copied().flatten(), Speedup::of(&made.rounds));
        assert_eq!(after_each[0], None, "the first round is the prompt's");
        for (at, speedup) in (1..).zip(&after_each) {
            assert_eq!(*speedup, Speedup::of(&made.rounds[..at]));
        }
    }

    #[test]
    fn within_five_percent_it_is_about_as_fast() {
        let words = |factor| Speedup::new(1000.0 * factor, 1000.0, 1).unwrap().to_string();
        let found = [1.62, 1.051, 1.05, 0.95, 0.949, 0.78, 12.3].map(words);
        let expected = ["1.6x", "1.1x", "about", "about", "0.9x", "0.8x", "12x"];
        assert_eq!(found, expected.map(|factor| format!("{factor} as fast as plain decoding")));
    }
}
