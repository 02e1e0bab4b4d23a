//! Checks of stored replies, the arena, and disk space of traces.

use std::ops::RangeInclusive;

use foretoken_engine::speculation::Speculation;
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Progress of a check, in tokens of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CheckProgress {
    pub done: u32,
    pub total: u32,
}

/// Result of checking a stored reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum ReplyCheck {
    /// The reply was decoded again without drafts.
    Text {
        /// Number of compared tokens: all of the reply, or those up to the difference.
        tokens: u32,
        /// Seed of both replies; `None` at temperature 0.
        seed: Option<u32>,
        /// First difference; `None` if all tokens are equal.
        difference: Option<TextDifference>,
    },
    /// The fastest mode samples another reply each time. So the target processed this one again
    /// without drafts, and the probabilities that judged its drafted tokens are compared with the
    /// new ones.
    Distribution {
        judged: u32,
        /// Number of probabilities that differ.
        different: u32,
        /// Largest difference between two probabilities.
        largest_difference: f32,
    },
    /// The reply differs, and the engine that wrote it added numbers in another order.
    OtherOrder,
}

/// First difference between a reply and the one without drafts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct TextDifference {
    /// Index of the token in the reply, from 0.
    pub position: u32,
    /// Token of the reply without drafts; `None` if it had already ended.
    pub with: Option<Candidate>,
    pub without: Option<Candidate>,
    /// Difference of their logits; `None` if one has none.
    pub gap: Option<f32>,
    /// `true` if the logits are so close that rounding decided: a numerical effect, not a bug.
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

/// Drafting of one side of the arena.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Setup {
    /// Id of the draft, as in [`super::Settings::drafts`].
    pub draft: String,
    pub speculation: Speculation,
    pub mode: Mode,
}

/// Number of replies that each set-up of an arena may write.
pub const ARENA_PAIRS: RangeInclusive<u32> = 1..=20;
/// Longest reply of an arena, in tokens.
pub const ARENA_TOKENS: RangeInclusive<u32> = 16..=2048;

/// Two set-ups that take turns replying to the same prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ArenaRequest {
    pub prompt: String,
    pub setups: [Setup; 2],
    /// Number of replies of each set-up: [`ARENA_PAIRS`].
    pub pairs: u32,
    /// Longest reply in tokens: [`ARENA_TOKENS`].
    pub max_tokens: u32,
}

/// Events of a running arena.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export)]
pub enum ArenaEvent {
    /// Set-up 0 or 1 begins to write; the first one alternates.
    Run {
        pair: u32,
        setup: u32,
    },
    Progress {
        /// Tokens of this run so far.
        tokens: u32,
        at_ms: f32,
        /// Text added by the round.
        text: String,
    },
    Finished {
        run: ArenaRun,
    },
}

/// A reply of one set-up.
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
    /// Progress over time: milliseconds since the start of the run and tokens until then, at most
    /// 200 points.
    pub curve: Vec<(f32, u32)>,
}

/// Stored result of an arena.
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
    /// Sampling of both set-ups, except for the mode; with the seed.
    pub sampling: Sampling,
    pub max_tokens: u32,
    /// The two set-ups.
    pub setups: Vec<ArenaSetup>,
    pub runs: Vec<ArenaRun>,
    /// Texts of each set-up's first run.
    pub texts: Vec<String>,
    /// First token in which those texts differ; `None` if they are equal.
    pub first_difference: Option<u32>,
    pub verdict: Verdict,
}

/// A set-up with its draft's name, which the page shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ArenaSetup {
    /// Name of the draft: "Starter draft 1.1M · Q8_0", "no draft".
    pub draft: String,
    pub setup: Setup,
}

/// Winner of an arena, by time per token.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Verdict {
    /// The faster set-up; `None` if `lowest` to `highest` contains 1, so the runs do not decide.
    pub winner: Option<u32>,
    /// The other's time over the winner's (set-up 1's over set-up 0's without a winner): median of
    /// the pairs, the lowest and the highest.
    pub ratio: f64,
    pub lowest: f64,
    pub highest: f64,
    pub pairs: u32,
}

/// Disk space of the stored traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct TraceStorage {
    #[ts(type = "number")]
    pub bytes: u64,
    /// Number of replies with a trace.
    #[ts(type = "number")]
    pub replies: u64,
}
