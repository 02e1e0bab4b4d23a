//! Replay of drafting policies on recorded drafts, without a model.
//!
//! A greedy or coupled text is the same under every policy. So its tokens are recorded once, and at
//! every position the drafts that a drafter would make there. Any policy can then be walked over
//! the recording: it drafts at a position, its guesses are compared with the text, and it goes on
//! behind the accepted ones. The drafters and the governor are those of replies; n-grams and
//! recycling are computed again. Only time is simulated, from [`ReplayCosts`].
//!
//! Not replayed: noise of times, drafts that were not recorded, and fastest mode, whose text
//! depends on the policy.

mod costs;
mod recorded_drafter;
mod recording;

use std::sync::Arc;

use foretoken_forward::Row;
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;
use serde::Serialize;

pub use self::costs::ReplayCosts;
use self::recorded_drafter::{RecordedDrafter, Work};
pub use self::recording::{RecordedPosition, Recording};
use crate::accept::{Verdict, accept};
use crate::context::Context;
use crate::distribution::Distribution;
use crate::draft::{Drafters, Drafting, NgramDrafter, Observation, RecyclingDrafter, RoundInput};
use crate::drafter_kind::DrafterKind;
use crate::governor::RowRatios;
use crate::random::Generator;
use crate::sampler::Sampler;
use crate::speculation::{Room, Speculation, Verification};
use crate::trace::{Drafted, Extra, ExtraKind, LengthReason, Outcome, Round, Times};

/// Rounds of a text whose time [`ReplayedText::first`] is.
const FIRST_ROUNDS: usize = 24;

/// Result of a replayed text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplayedText {
    pub tokens: usize,
    pub rounds: usize,
    /// Verified guesses, and those accepted.
    pub drafted: usize,
    pub accepted: usize,
    pub all: Simulated,
    /// The first 24 rounds.
    pub first: Simulated,
    /// Verified guesses by tenths of their estimated chance.
    pub calibration: [Calibrated; 10],
}

/// Simulated milliseconds of rounds, and those of plain decoding for the same tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Simulated {
    pub ms: f64,
    pub plain_ms: f64,
}

/// Guesses of a range of estimated chances.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Calibrated {
    pub guesses: usize,
    /// Sum of the estimated chances: guesses expected on the text.
    pub expected: f64,
    /// Guesses on the text.
    pub reached: usize,
}

impl Calibrated {
    pub fn add(&mut self, more: Self) {
        self.guesses += more.guesses;
        self.expected += more.expected;
        self.reached += more.reached;
    }
}

impl ReplayedText {
    /// Adds a round, for whose tokens plain decoding takes `plain_ms`.
    fn add(&mut self, round: &Round, plain_ms: f64) {
        let Times { draft_ms, verify_ms, sample_ms, .. } = round.times;
        let ms = f64::from(draft_ms + verify_ms + sample_ms);
        let first = (self.rounds < FIRST_ROUNDS).then_some(&mut self.first);
        for simulated in first.into_iter().chain([&mut self.all]) {
            simulated.ms += ms;
            simulated.plain_ms += plain_ms;
        }
        for guess in &round.drafted {
            if let Some(chance) = guess.survival {
                let reached = usize::from(guess.outcome == Outcome::Accepted);
                let range = &mut self.calibration[((chance * 10.0) as usize).min(9)];
                range.add(Calibrated { guesses: 1, expected: f64::from(chance), reached });
            }
        }
        self.tokens += round.emitted().count();
        self.rounds += 1;
        self.drafted += round.drafted.len();
        self.accepted += round.accepted();
    }
}

/// Drafters with a governor that replays recordings one after the other and learns from them as in
/// replies.
pub struct Replay {
    drafters: Drafters,
    work: Arc<Work>,
    costs: ReplayCosts,
    speculation: Speculation,
}

impl Replay {
    /// Creates the drafters of recordings by a drafter of `kind`, which were never measured.
    pub fn new(kind: DrafterKind, costs: &ReplayCosts, speculation: &Speculation, ratios: RowRatios) -> Self {
        let work = Arc::<Work>::default();
        let recorded = RecordedDrafter::new(kind, Arc::clone(&work));
        let mut drafters = Drafters::new(vec![
            Box::new(recorded),
            Box::<NgramDrafter>::default(),
            Box::<RecyclingDrafter>::default(),
        ]);
        drafters.assume(ratios, Some(costs.step_share()));
        Self { drafters, work, costs: costs.clone(), speculation: speculation.clone() }
    }

    /// Replays a text.
    ///
    /// # Errors
    /// `Error::Setting` if the recording's sampling settings are out of range.
    pub fn text(&mut self, recording: &Arc<Recording>) -> Result<ReplayedText> {
        self.drafters.forget();
        self.work.begin(recording);
        self.drafters.begin_reply(recording.kind, &self.speculation);
        let mut sampler = Sampler::new(&recording.sampling)?;
        let mut context = Context::new(recording.prompt.clone());
        let mut result = ReplayedText::default();
        while result.tokens < recording.text.len() {
            let round = self.round(recording, &mut context, &mut sampler, result.rounds)?;
            result.add(&round, round.emitted().count() as f64 * self.costs.plain_ms());
        }
        Ok(result)
    }

    /// Replays a round and appends its tokens to `context`.
    fn round(
        &mut self,
        recording: &Recording,
        context: &mut Context,
        sampler: &mut Sampler,
        index: usize,
    ) -> Result<Round> {
        sampler.follow(context);
        let written = context.len() - recording.prompt.len();
        let rest = &recording.text[written..];
        let measures_plain = self.drafters.needs_plain_rounds(&self.speculation);
        let drafting = if measures_plain {
            Drafting::none(LengthReason::Probe)
        } else {
            let room = Room::new(rest.len());
            let (speculation, vocabulary) = (&self.speculation, usize::MAX);
            self.drafters.draft(RoundInput { context, speculation, room, vocabulary }, sampler)
        };
        let target = |parent: Option<usize>| {
            let depth = drafting.guesses.path(parent).len();
            Ok::<_, foretoken_model::Error>(Distribution::point(rest[depth]))
        };
        let mut random = Generator::Coupled { seed: 0 };
        let verdict = accept(&drafting.guesses, Verification::Token, context.len(), target, &mut random)?;
        let emitted = &rest[..=verdict.path.len()];
        let mut round = record(&drafting, &verdict, index, context.len());
        let (rows, draft_ms) = (drafting.guesses.len() + 1, self.work.take_ms(&self.costs));
        let eviction = if draft_ms > 0.0 { self.costs.eviction } else { 1.0 };
        round.times = Times {
            draft_ms: draft_ms as f32,
            verify_ms: (self.costs.verify_ms(rows) * eviction) as f32,
            sample_ms: self.costs.judge_ms(rows) as f32,
            rest_ms: 0.0,
        };
        self.observe(recording, context, written, emitted);
        context.extend(emitted.iter().copied());
        self.drafters.learn(&round, &drafting, emitted);
        if measures_plain {
            self.drafters.learn_plain_pass(f64::from(round.times.verify_ms));
        }
        Ok(round)
    }

    /// Passes the tokens that the target ran in a round to the drafters, with the recorded leaders
    /// of their rows.
    fn observe(&mut self, recording: &Recording, context: &Context, written: usize, emitted: &[TokenId]) {
        let at = context.len() - 1;
        let ran = context.last().into_iter().chain(emitted).copied();
        let tokens: Vec<TokenId> = ran.take(emitted.len()).collect();
        let leaders = recording.positions[written..].iter().take(tokens.len());
        let leaders: Vec<_> = leaders.map(RecordedPosition::leaders_by_token).collect();
        let rows: Vec<Row<'_>> =
            leaders.iter().map(|(tokens, logits)| Row::of(logits).restricted_to(tokens)).collect();
        self.drafters.observe(&Observation { at, tokens: &tokens, rows: Some(&rows), features: None });
    }
}

/// Record of a round, without texts and target probabilities.
fn record(drafting: &Drafting, verdict: &Verdict, index: usize, position: usize) -> Round {
    let outcome = |guess: usize| {
        if verdict.path.contains(&guess) {
            Outcome::Accepted
        } else if verdict.rejected.contains(&guess) {
            Outcome::Rejected
        } else {
            Outcome::Discarded
        }
    };
    let drafted = drafting.guesses.iter().enumerate().map(|(number, guess)| Drafted {
        token: guess.token,
        text: String::new(),
        parent: guess.parent.map(|parent| parent as u32),
        draft_probability: guess.probability,
        target_probability: None,
        acceptance: None,
        outcome: outcome(number),
        drafter: guess.drafter,
        survival: drafting.survivals.get(number).copied(),
    });
    Round {
        index: index as u32,
        position: position as u32,
        drafted: drafted.collect(),
        extra: Some(Extra { token: verdict.extra, text: String::new(), kind: ExtraKind::Bonus }),
        draft_length: drafting.length as u32,
        reason: drafting.reason,
        threshold: drafting.threshold,
        expected: drafting.expected(),
        row_price: drafting.row_price,
        staged: drafting.staged,
        decision: None,
        experts: None,
        times: Times::default(),
        at_ms: 0.0,
        logprobs: Vec::new(),
    }
}
