//! Sampling settings and their validation. The arithmetic is in `distribution`.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::error::{Error, Result};
use crate::token::TokenId;

/// Random mode of sampling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Mode {
    /// Rejection sampling: most tokens per round. With another draft, the text differs and its
    /// distribution does not.
    #[default]
    Fastest,
    /// Gumbel-coupled: the text depends only on the seed, whatever drafts.
    Reproducible,
}

/// Sampling settings. The defaults sample and cut the unlikely tail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct Sampling {
    /// 0 (greedy: always the likeliest token) or more; 1 leaves the target's probabilities alone.
    pub temperature: f32,
    /// Keep the k likeliest tokens; 0 keeps all.
    pub top_k: u32,
    /// Keep the smallest set of tokens that holds this share of the probability, 0 < p <= 1.
    pub top_p: f32,
    /// Drop tokens less likely than this share of the likeliest, 0 <= p < 1.
    pub min_p: f32,
    /// Use the penalties that the model's makers recommend, or those for small models. The values
    /// below are then ignored.
    #[serde(default = "no_choice")]
    pub automatic_penalties: bool,
    /// Divide positive and multiply negative logits of tokens that occurred before; 1 is off.
    pub repetition_penalty: f32,
    /// Number of last tokens, prompt included, for the repetition penalty; -1 for all, 0 for none.
    #[serde(default = "whole_text")]
    pub repeat_last_n: i32,
    /// Subtract from the logits of tokens that occur in the reply, -2 to 2; 0 is off.
    pub presence_penalty: f32,
    /// Subtract from a token's logit for each time that it occurs in the reply, -2 to 2; 0 is off.
    pub frequency_penalty: f32,
    /// Tokens, and what is added to their logits before all penalties, -100 to 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<(TokenId, f32)>>")]
    pub logit_bias: Vec<(TokenId, f32)>,
    /// DRY lowers the logit of a token that would continue a repeated sequence of n tokens by
    /// multiplier x base^(n - allowed length), from the allowed length on; 0 is off.
    pub dry_multiplier: f32,
    pub dry_base: f32,
    /// Number of tokens, 1 or more.
    pub dry_allowed_length: u32,
    /// Number of last tokens, prompt included, for DRY; -1 for all, 0 for none.
    pub dry_penalty_last_n: i32,
    /// Texts that end repeated sequences.
    pub dry_sequence_breakers: Vec<String>,
    /// End replies that repeat themselves.
    #[serde(default = "no_choice")]
    pub stop_loops: bool,
    /// Fixed seed; `None` draws a new one for every reply.
    pub seed: Option<u32>,
    pub mode: Mode,
}

/// Stored settings that are older than the choice keep their values.
fn no_choice() -> bool {
    false
}

/// Earlier versions applied the repetition penalty to the whole text.
fn whole_text() -> i32 {
    -1
}

/// Maximum number of tokens with a bias.
pub const MAX_BIASES: usize = 1024;

/// Maximum number of sequence breakers, and bytes of each.
pub const MAX_BREAKERS: usize = 32;
pub const MAX_BREAKER: usize = 64;

/// Longest sequence that may be repeated without a penalty.
const MAX_ALLOWED_LENGTH: u32 = 1000;

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.7,
            top_k: 0,
            top_p: 0.95,
            min_p: 0.0,
            automatic_penalties: true,
            repetition_penalty: 1.0,
            repeat_last_n: 64,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logit_bias: Vec::new(),
            dry_multiplier: 0.0,
            dry_base: 1.75,
            dry_allowed_length: 2,
            dry_penalty_last_n: -1,
            dry_sequence_breakers: ["\n", ":", "\"", "*"].map(str::to_owned).to_vec(),
            stop_loops: true,
            seed: None,
            mode: Mode::Fastest,
        }
    }
}

/// Recommended penalties of a model; see [`Sampling`] for the units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ModelPenalties {
    pub repetition_penalty: f32,
    pub repeat_last_n: i32,
    pub dry_multiplier: f32,
    pub dry_base: f32,
    pub dry_allowed_length: u32,
    pub dry_penalty_last_n: i32,
}

impl Default for ModelPenalties {
    /// No penalties.
    fn default() -> Self {
        let Sampling {
            repetition_penalty,
            repeat_last_n,
            dry_multiplier,
            dry_base,
            dry_allowed_length,
            dry_penalty_last_n,
            ..
        } = Sampling::default();
        Self {
            repetition_penalty,
            repeat_last_n,
            dry_multiplier,
            dry_base,
            dry_allowed_length,
            dry_penalty_last_n,
        }
    }
}

impl ModelPenalties {
    /// Penalties that let a small model end its replies without loops and change little else,
    /// measured with SmolLM2 135M.
    pub const SMALL: Self = Self {
        repetition_penalty: 1.03,
        repeat_last_n: 128,
        dry_multiplier: 0.8,
        dry_base: 1.75,
        dry_allowed_length: 4,
        dry_penalty_last_n: 2048,
    };
}

impl Sampling {
    /// Greedy sampling without penalties or loop detection.
    pub fn greedy() -> Self {
        Self {
            temperature: 0.0,
            top_p: 1.0,
            automatic_penalties: false,
            stop_loops: false,
            ..Self::default()
        }
    }

    /// Returns true if tokens that occurred before have penalties.
    pub fn penalises_tokens(&self) -> bool {
        self.repetition_penalty != 1.0 && self.repeat_last_n != 0
    }

    /// Returns true if tokens that continue a repeated sequence have penalties.
    pub fn penalises_sequences(&self) -> bool {
        self.dry_multiplier > 0.0 && self.dry_penalty_last_n != 0
    }

    /// Returns true if tokens of the reply have penalties.
    pub fn penalises_counts(&self) -> bool {
        self.presence_penalty != 0.0 || self.frequency_penalty != 0.0
    }

    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }

    /// Returns true if the same settings give the same text again, whatever drafts.
    pub fn is_repeatable(&self) -> bool {
        self.is_greedy() || self.mode == Mode::Reproducible && self.seed.is_some()
    }

    /// Draws a seed if the text depends on one, so that it can be recorded.
    pub fn seeded(&self) -> Self {
        let wanted = !self.is_greedy() && self.mode == Mode::Reproducible;
        Self { seed: self.seed.or_else(|| wanted.then(rand::random)), ..self.clone() }
    }

    /// Replaces automatic penalties with those of a model; `None` for a model that needs none.
    #[must_use]
    pub fn with_penalties_of(&self, model: Option<&ModelPenalties>) -> Self {
        if !self.automatic_penalties {
            return self.clone();
        }
        let plain = ModelPenalties::default();
        let ModelPenalties {
            repetition_penalty,
            repeat_last_n,
            dry_multiplier,
            dry_base,
            dry_allowed_length,
            dry_penalty_last_n,
        } = *model.unwrap_or(&plain);
        Self {
            automatic_penalties: false,
            repetition_penalty,
            repeat_last_n,
            dry_multiplier,
            dry_base,
            dry_allowed_length,
            dry_penalty_last_n,
            ..self.clone()
        }
    }

    /// # Errors
    /// `Error::Setting` naming the first value that is out of its range.
    pub fn validate(&self) -> Result<()> {
        let within = |name, value: f32, expected, ok: bool| {
            if ok && value.is_finite() {
                Ok(())
            } else {
                Err(Error::Setting { name, expected, found: value.to_string() })
            }
        };
        within("temperature", self.temperature, "0 to 5", (0.0..=5.0).contains(&self.temperature))?;
        within("top-p", self.top_p, "more than 0 and at most 1", self.top_p > 0.0 && self.top_p <= 1.0)?;
        within("min-p", self.min_p, "at least 0 and less than 1", (0.0..1.0).contains(&self.min_p))?;
        let penalty = self.repetition_penalty;
        within("repetition penalty", penalty, "0.1 to 10", (0.1..=10.0).contains(&penalty))?;
        for (name, penalty) in
            [("presence penalty", self.presence_penalty), ("frequency penalty", self.frequency_penalty)]
        {
            within(name, penalty, "-2 to 2", (-2.0..=2.0).contains(&penalty))?;
        }
        for &(_, bias) in &self.logit_bias {
            within("logit bias", bias, "-100 to 100", (-100.0..=100.0).contains(&bias))?;
        }
        let (multiplier, base) = (self.dry_multiplier, self.dry_base);
        within("DRY multiplier", multiplier, "0 to 100", (0.0..=100.0).contains(&multiplier))?;
        within("DRY base", base, "1 to 10", (1.0..=10.0).contains(&base))?;
        let whole = |name, value: i64, expected, ok: bool| {
            if ok { Ok(()) } else { Err(Error::Setting { name, expected, found: value.to_string() }) }
        };
        let allowed = self.dry_allowed_length;
        whole(
            "DRY allowed length",
            allowed.into(),
            "1 to 1000",
            (1..=MAX_ALLOWED_LENGTH).contains(&allowed),
        )?;
        for (name, last_n) in
            [("repeat last n", self.repeat_last_n), ("DRY penalty last n", self.dry_penalty_last_n)]
        {
            whole(
                name,
                last_n.into(),
                "-1 for the whole text, 0 for off, or a number of tokens",
                last_n >= -1,
            )?;
        }
        let biases = self.logit_bias.len();
        whole("logit bias", biases as i64, "at most 1024 tokens", biases <= MAX_BIASES)?;
        let breakers = &self.dry_sequence_breakers;
        let fit = breakers.len() <= MAX_BREAKERS && breakers.iter().all(|text| text.len() <= MAX_BREAKER);
        let expected = "at most 32 strings of at most 64 bytes";
        whole("DRY sequence breakers", breakers.len() as i64, expected, fit)
    }
}
