//! Trace of a reply, round by round. Colours, statistics, replay, export and the text of a local
//! reply are computed from it; this module measures and decides nothing.

use foretoken_forward::ORDER_OF_SUMS;
use foretoken_model::KvDtype;
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::drafter_kind::DrafterKind;
use crate::logprobs::Logprobs;
use crate::speculation::Speculation;

mod plain;
mod repeats;
mod speedup;

pub use speedup::{SAME_SPEED, Speedup, SpeedupMeter};

/// Outcome of a drafted token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Outcome {
    /// Accepted: part of the text.
    Accepted,
    /// Rejected: the round's extra token takes its place.
    Rejected,
    /// Never judged: it followed a rejected token, a sibling was accepted, or the reply ended.
    Discarded,
}

/// A drafted token and its verification.
///
/// Probabilities are those used for verification. At temperature 0, where processed probabilities
/// are 0 or 1, they are the models' own (temperature 1, no filters), which are more informative.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Drafted {
    pub token: TokenId,
    /// Text that an accepted token added to the reply (empty while a character is incomplete); text
    /// of the token otherwise.
    pub text: String,
    /// Index of the drafted token that it follows; `None` if it follows the text.
    #[serde(default)]
    pub parent: Option<u32>,
    /// The drafter's probability of the token, 0..=1; for an n-gram its share among earlier
    /// continuations.
    pub draft_probability: f32,
    /// The target's probability of the token, 0..=1; `None` if the token was never judged.
    pub target_probability: Option<f32>,
    /// Chance of acceptance of this token alone: min(1, target / draft) for a draft model's token,
    /// the target's probability for tokens that were not sampled; `None` if it was never judged.
    pub acceptance: Option<f32>,
    pub outcome: Outcome,
    pub drafter: DrafterKind,
    /// Expected chance, before the verification, that this token and all before it on its path are
    /// accepted; `None` if it was not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survival: Option<f32>,
}

/// Origin of a token that the target chose itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ExtraKind {
    /// After a draft that was accepted as a whole.
    Bonus,
    /// In place of a rejected token.
    Recovered,
    /// In a round without a draft.
    Plain,
}

/// Token of the target that ends a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Extra {
    pub token: TokenId,
    /// Text that the token added to the reply.
    pub text: String,
    pub kind: ExtraKind,
}

/// Reason for a round's draft length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum LengthReason {
    /// Length set by the user.
    Fixed,
    /// Length with the highest expected speed.
    Governed,
    /// Trial of another choice: a draft where drafting does not pay, or none where it does.
    Probe,
    /// Drafting would cost time: too few tokens are accepted for the time of drafting and
    /// verifying.
    WouldNotPay,
    /// Drafting would cost time even if every token were accepted.
    CannotPay,
    /// The draft ended where a further guess was not worth its row.
    Unlikely,
    /// The draft ended where a further step of the drafter was not worth its time.
    StepTooDear,
    /// The first token does not wait for the draft model, which has not read the prompt yet.
    FirstToken,
    /// Drafting is switched off.
    #[default]
    Off,
    /// Too little repetition was found.
    NoMatch,
    /// The context or the maximum reply length is nearly used up.
    NoRoom,
    /// The draft ends the text.
    EndOfText,
    /// The draft model's own context is full.
    DraftContextFull,
    /// The drafter failed earlier in this reply, which continues without it.
    DrafterFailed,
}

/// Expected speed by draft length N, behind a choice of the governor: (1 + S_1 + ... + S_N) / (time
/// to draft N + T_v(N + 1) + time to judge), where S_j is the product of the acceptance up to depth
/// j.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Decision {
    /// Previous choice; `None` for the first of a reply.
    pub before: Option<u32>,
    pub chosen: u32,
    /// Milliseconds to draft 1 to 16 tokens, about N T_s.
    #[serde(default)]
    pub drafting_ms: Vec<f32>,
    /// T_v(1) to T_v(17): milliseconds to verify 1 to 17 rows.
    pub verify_ms: Vec<f32>,
    /// P(accepted, given that all ancestors were), by depth; 16 values.
    pub acceptance: Vec<f32>,
    /// Expected speed of draft lengths 0 to 16.
    pub tokens_per_second: Vec<f32>,
}

/// Milliseconds of the parts of a round; `rest` is what the other three leave.
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
    /// Index of the round, from 0 without gaps.
    pub index: u32,
    /// Number of tokens in the context (prompt and reply) before this round.
    pub position: u32,
    /// Drafted tokens, parents before their children. A chain has its accepted tokens first, then
    /// at most one rejected, then discarded ones.
    pub drafted: Vec<Drafted>,
    /// Token of the target; `None` if an accepted token ended the reply.
    pub extra: Option<Extra>,
    /// Requested draft length (K), the longest path of a tree; `drafted` may be shorter for
    /// `reason`.
    pub draft_length: u32,
    pub reason: LengthReason,
    /// Least chance of acceptance of the whole draft, below which it ends; `None` if there is none.
    #[serde(default)]
    pub threshold: Option<f32>,
    /// Expected tokens of the round, with the one that the target adds; `None` if they were not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<f32>,
    /// Price of verifying one more guess: the tokens usually written in that time. `None` if the
    /// draft did not end by its worth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_price: Option<f32>,
    /// True for staged drafting, where a smaller drafter drafts for the draft model.
    #[serde(default)]
    pub staged: bool,
    /// The governor's reasons for this length: in the first round, when its choice changes, and now
    /// and then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Mean number of experts that a layer read for all rows of the verification; `None` if the
    /// model has no experts or they are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experts: Option<f32>,
    pub times: Times,
    /// Milliseconds from the start of the reply to the end of this round.
    pub at_ms: f32,
    /// Log probabilities of the emitted tokens, if the request asked for them; no part of a trace.
    #[serde(skip)]
    #[ts(skip)]
    pub logprobs: Vec<Logprobs>,
}

impl Round {
    /// Number of accepted drafted tokens.
    pub fn accepted(&self) -> usize {
        self.count(Outcome::Accepted)
    }

    /// Number of judged drafted tokens: accepted or rejected, not discarded.
    pub fn judged(&self) -> usize {
        self.accepted() + self.count(Outcome::Rejected)
    }

    /// Tokens that this round adds to the reply, in order.
    pub fn emitted(&self) -> impl Iterator<Item = (TokenId, &str)> {
        let extra = self.extra.iter().map(|extra| (extra.token, extra.text.as_str()));
        self.accepted_drafts().map(|drafted| (drafted.token, drafted.text.as_str())).chain(extra)
    }

    /// Tokens that this round adds to the reply, in order, each with its text and its drafter, or
    /// `None` for a token of the target.
    pub fn written(&self) -> impl Iterator<Item = (TokenId, &str, Option<DrafterKind>)> {
        let extra = self.extra.iter().map(|extra| (extra.token, extra.text.as_str(), None));
        let drafts = self.accepted_drafts();
        drafts.map(|drafted| (drafted.token, drafted.text.as_str(), Some(drafted.drafter))).chain(extra)
    }

    fn accepted_drafts(&self) -> impl Iterator<Item = &Drafted> {
        self.drafted.iter().filter(|drafted| drafted.outcome == Outcome::Accepted)
    }

    fn count(&self, outcome: Outcome) -> usize {
        self.drafted.iter().filter(|d| d.outcome == outcome).count()
    }
}

/// Reason why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Finish {
    /// An end-of-text token or a stop string.
    Stop,
    /// The maximum reply length was reached.
    Length,
    /// The model's context is full.
    ContextFull,
    /// Stopped by the user.
    Cancelled,
    /// The reply repeated itself.
    Repeating,
}

/// Statistics of a reply, computed from its rounds and its prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Summary {
    pub finish: Finish,
    /// Number of prompt tokens, and how many of them were in the target's cache.
    pub prompt_tokens: u32,
    pub reused_tokens: u32,
    /// Number of reused tokens whose caches were read from files.
    #[serde(default)]
    pub restored_tokens: u32,
    /// Number of emitted tokens, including an end-of-sequence token.
    pub tokens: u32,
    pub rounds: u32,
    pub drafted: u32,
    pub judged: u32,
    pub accepted: u32,
    /// accepted / judged; `None` if nothing was judged.
    pub acceptance_rate: Option<f64>,
    /// Emitted tokens / rounds.
    pub tokens_per_round: f64,
    /// Milliseconds to the end of the first round, including prompt processing.
    pub ttft_ms: f64,
    /// Speed after the first round.
    pub tokens_per_second: Option<f64>,
    pub elapsed_ms: f64,
    pub times: Times,
    /// Estimated speed of plain decoding, from measured passes on this device; `None` if nothing
    /// drafted.
    #[serde(default)]
    pub plain_tokens_per_second: Option<f64>,
    /// Speedup against plain decoding; `None` if nothing was drafted, plain decoding was not
    /// measured, or the reply is older than this field.
    #[serde(default)]
    pub speedup: Option<Speedup>,
    /// Settings of the reply; `None` if the reply is older than this field.
    #[serde(default)]
    pub settings: Option<ReplySettings>,
    /// [`ORDER_OF_SUMS`] of the engine; 1 if the reply is older than this field.
    #[serde(default = "first_order")]
    #[ts(skip)]
    pub order_of_sums: u32,
    /// Format of the target's KV cache.
    #[serde(default)]
    #[ts(skip)]
    pub kv_dtype: KvDtype,
    /// Bytes of a character that the reply ended in; its text does not contain them, and a
    /// continuation completes the character.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(skip)]
    pub unfinished: Vec<u8>,
}

fn first_order() -> u32 {
    1
}

/// Drafting and sampling settings of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ReplySettings {
    pub speculation: Speculation,
    /// Sampling settings, with the random seed that was drawn if the text depends on one.
    pub sampling: Sampling,
    /// Stop strings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<String>>")]
    pub stop: Vec<String>,
    /// System prompt; filled in by the caller.
    #[serde(default)]
    pub system_prompt: String,
    /// Reasoning on or off, if it was set; filled in by the caller.
    #[serde(default)]
    pub thinking: Option<bool>,
}

impl Summary {
    /// Computes the summary of `rounds`; `elapsed_ms` is the time from start to end of the reply.
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
            restored_tokens: 0,
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
            order_of_sums: ORDER_OF_SUMS,
            kv_dtype: KvDtype::default(),
            unfinished: Vec::new(),
        }
    }
}
