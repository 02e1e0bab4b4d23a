//! What a person may set about sampling, and whether the values make sense. The arithmetic is in
//! `distribution.rs`.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::error::{Error, Result};

/// How random choices are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Mode {
    /// Rejection sampling: the most tokens a round; another draft gives another text of the same
    /// distribution.
    #[default]
    Fastest,
    /// Gumbel-coupled: the text depends on the seed alone, whatever drafts.
    Reproducible,
}

/// Sampling settings. The defaults are greedy-free and filter the unlikely tail.
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
    /// Divide (positive) or multiply (negative) the logits of tokens already in the context; 1 is off.
    pub repetition_penalty: f32,
    /// A fixed seed; `None` draws a fresh one for every reply.
    pub seed: Option<u32>,
    pub mode: Mode,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.7,
            top_k: 0,
            top_p: 0.95,
            min_p: 0.0,
            repetition_penalty: 1.0,
            seed: None,
            mode: Mode::Fastest,
        }
    }
}

impl Sampling {
    /// Always the likeliest token.
    pub fn greedy() -> Self {
        Self { temperature: 0.0, top_p: 1.0, ..Self::default() }
    }

    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }

    /// Whether the same settings give the same text again, whatever drafts.
    pub fn is_repeatable(&self) -> bool {
        self.is_greedy() || self.mode == Mode::Reproducible && self.seed.is_some()
    }

    /// With a seed drawn where one would decide the text, so that it can be known afterwards.
    pub fn seeded(&self) -> Self {
        let wanted = !self.is_greedy() && self.mode == Mode::Reproducible;
        Self { seed: self.seed.or_else(|| wanted.then(rand::random)), ..self.clone() }
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
        within("repetition penalty", penalty, "0.1 to 10", (0.1..=10.0).contains(&penalty))
    }
}
