//! Checks of stored replies, the arena, and what traces take on disk.

use std::ops::RangeInclusive;

use foretoken_engine::sampling::{Mode, Sampling};
use foretoken_engine::speculation::Speculation;
use foretoken_engine::token::TokenId;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// How far a check has come, in tokens of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CheckProgress {
    pub done: u32,
    pub total: u32,
}

/// What a check of a stored reply found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum ReplyCheck {
    /// The reply was decoded again without drafts.
    Text {
        /// Of the reply; all were compared, or all up to the difference.
        tokens: u32,
        /// That of both; `None` at temperature 0.
        seed: Option<u32>,
        /// The first one; `None` when all tokens are the same.
        difference: Option<TextDifference>,
    },
    /// In the fastest mode each reply is another. So the target read this one again without drafts, and the
    /// probabilities by which drafted tokens were judged are compared with those it gives then.
    Distribution {
        judged: u32,
        /// Probabilities that are not the same.
        different: u32,
        /// Between two probabilities.
        largest_difference: f32,
    },
}

/// Where a reply and the one without drafts part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct TextDifference {
    /// Counts from the first token of the reply.
    pub position: u32,
    /// `None` where that reply had already ended.
    pub with: Option<Candidate>,
    pub without: Option<Candidate>,
    /// Between their logits; `None` when one has none.
    pub gap: Option<f32>,
    /// The logits are so close that rounding decided: numeric, and no bug.
    pub near_tie: bool,
}

/// A token that the target might have chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Candidate {
    pub token: TokenId,
    pub text: String,
    pub logit: f32,
}

/// How one side of the arena drafts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Setup {
    /// As in [`super::Settings::draft`].
    pub draft: String,
    pub speculation: Speculation,
    pub mode: Mode,
}

/// How many replies each set-up of an arena may write.
pub const ARENA_PAIRS: RangeInclusive<u32> = 1..=20;
/// How long these may be at most, in tokens.
pub const ARENA_TOKENS: RangeInclusive<u32> = 16..=2048;

/// Two set-ups that write a reply to the same prompt in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ArenaRequest {
    pub prompt: String,
    pub setups: [Setup; 2],
    /// Each set-up writes so many replies: [`ARENA_PAIRS`].
    pub pairs: u32,
    /// [`ARENA_TOKENS`].
    pub max_tokens: u32,
}

/// Sent while the arena runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export)]
pub enum ArenaEvent {
    /// A set-up, 0 or 1, begins to write; who is first alternates.
    Run {
        pair: u32,
        setup: u32,
    },
    Progress {
        /// Of this run so far.
        tokens: u32,
        at_ms: f32,
        /// What the round added.
        text: String,
    },
    Finished {
        run: ArenaRun,
    },
}

/// A reply by one of the set-ups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ArenaRun {
    pub pair: u32,
    pub setup: u32,
    pub tokens: u32,
    pub elapsed_ms: f64,
    pub ttft_ms: f64,
    pub tokens_per_second: Option<f64>,
    pub acceptance_rate: Option<f64>,
    pub tokens_per_round: f64,
    /// Tokens by time: milliseconds since the run's beginning and tokens until then, at most 200 points.
    pub curve: Vec<(f32, u32)>,
}

/// What an arena brought, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Arena {
    #[ts(type = "number")]
    pub id: i64,
    /// Milliseconds since 1970.
    #[ts(type = "number")]
    pub created_at: i64,
    pub prompt: String,
    /// Label of the target.
    pub target: String,
    pub device: String,
    /// Of both, but for the mode; with the seed.
    pub sampling: Sampling,
    pub max_tokens: u32,
    /// Two.
    pub setups: Vec<ArenaSetup>,
    pub runs: Vec<ArenaRun>,
    /// Of each set-up's first run.
    pub texts: Vec<String>,
    /// The first token in which those two differ; `None` when they are the same.
    pub first_difference: Option<u32>,
    pub verdict: Verdict,
}

/// A set-up with the name of what drafted, by which the page calls it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ArenaSetup {
    /// "Starter draft 1.1M · Q8_0", "no draft".
    pub draft: String,
    pub setup: Setup,
}

/// Who is faster, by the time a token takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Verdict {
    /// `None` when `lowest` to `highest` contains 1: the runs cannot tell.
    pub winner: Option<u32>,
    /// The other's time over the winner's (set-up 1's over set-up 0's without a winner): median of the pairs,
    /// the least and the greatest.
    pub ratio: f64,
    pub lowest: f64,
    pub highest: f64,
    pub pairs: u32,
}

/// What the kept traces take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct TraceStorage {
    #[ts(type = "number")]
    pub bytes: u64,
    /// Replies with a trace.
    #[ts(type = "number")]
    pub replies: u64,
}
