//! What happened in a reply, round by round. Colours, statistics, replay, export and the text of a local reply are
//! folds over a trace; nothing here measures or decides anything.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::drafter_kind::DrafterKind;
use crate::sampling::Sampling;
use crate::speculation::Speculation;
use crate::token::TokenId;

mod plain;
mod repeats;
mod speedup;

pub use speedup::{SAME_SPEED, Speedup, SpeedupMeter};

/// What became of a drafted token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Outcome {
    /// The target agreed; the token is part of the text.
    Accepted,
    /// The target disagreed; the round's extra token stands in its place.
    Rejected,
    /// Never judged: it followed a rejected token, another was accepted in its place, or the reply ended.
    Discarded,
}

/// One drafted token and its judgement.
///
/// Probabilities are those the judgement used; at temperature 0, where every processed probability
/// is 0 or 1, they are the models' own (temperature 1, no filter), which say more to a reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Drafted {
    pub token: TokenId,
    /// Accepted: exactly what the token added to the reply (empty while a character is incomplete).
    /// Otherwise: what the token would read as.
    pub text: String,
    /// The drafted token it follows, by its place in the round; `None` for one that follows the text.
    #[serde(default)]
    pub parent: Option<u32>,
    /// The drafter's probability for the token, 0..=1: for an n-gram the share of what followed before.
    pub draft_probability: f32,
    /// The target's probability for the token, 0..=1; `None` when the token was never judged.
    pub target_probability: Option<f32>,
    /// The chance of acceptance, judged by itself: min(1, target / draft) for a draft model's token, the
    /// target's probability for others, which are drawn from no distribution; `None` when never judged.
    pub acceptance: Option<f32>,
    pub outcome: Outcome,
    pub drafter: DrafterKind,
}

/// Where a token that the target itself chose comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ExtraKind {
    /// After the whole draft was accepted.
    Bonus,
    /// In place of a rejected token.
    Recovered,
    /// In a round without a draft.
    Plain,
}

/// The token a round emits beyond the accepted ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Extra {
    pub token: TokenId,
    /// Exactly what the token added to the reply.
    pub text: String,
    pub kind: ExtraKind,
}

/// Why a round drafted as many tokens as it did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum LengthReason {
    /// The length asked for in the settings.
    Fixed,
    /// The length that promises most tokens per second.
    Governed,
    /// This round tries what was not chosen: a draft where drafting does not pay, or none where it does.
    Probe,
    /// Drafting would cost time: too few tokens are accepted for what drafting and verifying take.
    WouldNotPay,
    /// Drafting would cost time even if every token were accepted.
    CannotPay,
    /// The draft ended where all of it became unlikely to be accepted.
    Unlikely,
    /// The first token does not wait for the draft model, which has yet to read the prompt.
    FirstToken,
    /// Drafting is switched off.
    #[default]
    Off,
    /// Nothing to repeat was found, or less than was asked for.
    NoMatch,
    /// The context or the maximum reply length leaves room for no more.
    NoRoom,
    /// The draft ends the text.
    EndOfText,
    /// The draft model's own context is full.
    DraftContextFull,
    /// The drafter failed earlier in this reply; the reply goes on without drafts.
    DrafterFailed,
}

/// The curve behind a choice of draft length N, from which it can be drawn and explained:
/// (1 + S_1 + ... + S_N) / (time to draft N + T_v(N + 1) + time to judge), with S_j the product of the acceptance up to depth j.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Decision {
    /// The choice before this one; `None` for the first of a reply.
    pub before: Option<u32>,
    pub chosen: u32,
    /// Milliseconds to draft 1 to 16 tokens, about N T_s.
    #[serde(default)]
    pub drafting_ms: Vec<f32>,
    /// T_v(1) to T_v(17), milliseconds to verify.
    pub verify_ms: Vec<f32>,
    /// The chance by depth that a drafted token is accepted when all before it are, 16 of them.
    pub acceptance: Vec<f32>,
    /// What is expected of the draft lengths 0 to 16.
    pub tokens_per_second: Vec<f32>,
}

/// Milliseconds spent in the parts of a round; `rest` is what the other three leave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Times {
    pub draft_ms: f32,
    pub verify_ms: f32,
    pub sample_ms: f32,
    pub rest_ms: f32,
}

/// One round: draft, verify, accept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Round {
    /// Counts from 0 without gaps.
    pub index: u32,
    /// Tokens in the context (prompt and reply) before this round.
    pub position: u32,
    /// In draft order, parents before their children. Of a chain accepted ones first, at most one rejected,
    /// then discarded ones.
    pub drafted: Vec<Drafted>,
    /// `None` when an accepted token ended the reply.
    pub extra: Option<Extra>,
    /// Draft length asked for (K), the longest path of a tree; `drafted` may be shorter for `reason`.
    pub draft_length: u32,
    pub reason: LengthReason,
    /// The least chance of acceptance of the whole draft at which it ended; `None` where none was set.
    #[serde(default)]
    pub threshold: Option<f32>,
    /// Whether the draft model was drafted for.
    #[serde(default)]
    pub staged: bool,
    /// Why the governor chose this length: in the first round, where its choice changed, and now and then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Experts that a layer read to verify, on average, for all its rows; `None` in a model without, and where nobody
    /// counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experts: Option<f32>,
    pub times: Times,
    /// Milliseconds from the start of the reply to the end of this round.
    pub at_ms: f32,
}

impl Round {
    /// Drafted tokens the target agreed with.
    pub fn accepted(&self) -> usize {
        self.count(Outcome::Accepted)
    }

    /// Drafted tokens the target looked at: accepted or rejected, not discarded.
    pub fn judged(&self) -> usize {
        self.accepted() + self.count(Outcome::Rejected)
    }

    /// The tokens this round adds to the reply, in order.
    pub fn emitted(&self) -> impl Iterator<Item = (TokenId, &str)> {
        let accepted = self.drafted.iter().filter(|d| d.outcome == Outcome::Accepted);
        accepted
            .map(|d| (d.token, d.text.as_str()))
            .chain(self.extra.iter().map(|e| (e.token, e.text.as_str())))
    }

    fn count(&self, outcome: Outcome) -> usize {
        self.drafted.iter().filter(|d| d.outcome == outcome).count()
    }
}

/// How a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Finish {
    /// The model ended it, or a stop string did.
    Stop,
    /// The maximum reply length was reached.
    Length,
    /// The model's context is full.
    ContextFull,
    /// The person stopped it.
    Cancelled,
    /// The model ran in circles.
    Repeating,
}

/// The numbers of a whole reply: a fold over its rounds and what came before the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Summary {
    pub finish: Finish,
    /// Tokens of the prompt, and how many of them were still in the target's cache.
    pub prompt_tokens: u32,
    pub reused_tokens: u32,
    /// Emitted tokens, an end-of-sequence token included.
    pub tokens: u32,
    pub rounds: u32,
    pub drafted: u32,
    pub judged: u32,
    pub accepted: u32,
    /// accepted / judged; `None` when nothing was judged.
    pub acceptance_rate: Option<f64>,
    /// Emitted tokens / rounds.
    pub tokens_per_round: f64,
    /// Time to the first round's end, prompt processing included.
    pub ttft_ms: f64,
    /// Emitted tokens after the first round over the time they took.
    pub tokens_per_second: Option<f64>,
    pub elapsed_ms: f64,
    pub times: Times,
    /// Of plain decoding, by what passes were measured to cost on this device; `None` where nothing drafted.
    #[serde(default)]
    pub plain_tokens_per_second: Option<f64>,
    /// Against plain decoding; `None` where nothing was drafted, plain decoding was not measured, or the reply is from
    /// before it was recorded.
    #[serde(default)]
    pub speedup: Option<Speedup>,
    /// The settings it was written with; `None` for replies from before they were recorded.
    #[serde(default)]
    pub settings: Option<ReplySettings>,
}

/// How a reply was drafted and how its tokens were chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ReplySettings {
    pub speculation: Speculation,
    /// With the seed that was drawn for it, where one decides the text.
    pub sampling: Sampling,
    /// Instructions before the conversation; for whoever made the prompt to fill in.
    #[serde(default)]
    pub system_prompt: String,
    /// Whether the model was told to think, or not to; for the same to fill in.
    #[serde(default)]
    pub thinking: Option<bool>,
}

impl Summary {
    /// Folds `rounds`; `elapsed_ms` counts from the start of the reply to its end.
    pub fn of(
        rounds: &[Round],
        finish: Finish,
        prompt_tokens: usize,
        reused_tokens: usize,
        elapsed_ms: f64,
    ) -> Self {
        let tokens: usize = rounds.iter().map(|r| r.emitted().count()).sum();
        let judged: usize = rounds.iter().map(Round::judged).sum();
        let accepted: usize = rounds.iter().map(Round::accepted).sum();
        let first = rounds.first();
        let ttft_ms = first.map_or(elapsed_ms, |r| f64::from(r.at_ms));
        let later = tokens - first.map_or(0, |r| r.emitted().count());
        let later_ms = rounds.last().map_or(0.0, |r| f64::from(r.at_ms)) - ttft_ms;
        let mut times = Times::default();
        for round in rounds {
            times.draft_ms += round.times.draft_ms;
            times.verify_ms += round.times.verify_ms;
            times.sample_ms += round.times.sample_ms;
            times.rest_ms += round.times.rest_ms;
        }
        Self {
            finish,
            prompt_tokens: prompt_tokens as u32,
            reused_tokens: reused_tokens as u32,
            tokens: tokens as u32,
            rounds: rounds.len() as u32,
            drafted: rounds.iter().map(|r| r.drafted.len() as u32).sum(),
            judged: judged as u32,
            accepted: accepted as u32,
            acceptance_rate: (judged > 0).then(|| accepted as f64 / judged as f64),
            tokens_per_round: tokens as f64 / rounds.len().max(1) as f64,
            ttft_ms,
            tokens_per_second: (later > 0 && later_ms > 0.0).then(|| later as f64 * 1e3 / later_ms),
            elapsed_ms,
            times,
            plain_tokens_per_second: None,
            speedup: Speedup::of(rounds),
            settings: None,
        }
    }
}
