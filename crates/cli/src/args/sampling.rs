//! Options of sampling.

use clap::{Args, ValueEnum};
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;

use crate::error::Result;
use crate::output;

/// Options of sampling.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
    /// Temperature: 0 always takes the most likely token, 1 uses the target's probabilities
    /// unchanged [default: 0; chat: 0.7; serve: 1]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    temperature: Option<f32>,
    /// Keep the K most likely tokens; 0 keeps all
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    top_k: Option<u32>,
    /// Keep the most likely tokens whose probabilities add up to P [default: 1; chat: 0.95]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    top_p: Option<f32>,
    /// Drop tokens whose probability is below P times that of the most likely token
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    min_p: Option<f32>,
    /// Make tokens that already occurred less likely (above 1) or more likely (below 1); 1 is off
    /// [default: the value recommended for the model]
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    repeat_penalty: Option<f32>,
    /// Number of latest tokens that --repeat-penalty looks at; -1 for all [default: 64]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    repeat_last_n: Option<i32>,
    /// Make tokens that occur in the reply less likely (above 0) or more likely (below 0), -2 to 2
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    presence_penalty: Option<f32>,
    /// Make tokens less or more likely for each time that they occur in the reply, -2 to 2
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    frequency_penalty: Option<f32>,
    /// Add BIAS, -100 to 100, to the logit of the token with this id; can be given several times
    #[arg(long, value_name = "ID=BIAS", value_parser = bias)]
    logit_bias: Vec<(TokenId, f32)>,
    /// Make tokens less likely that would continue a repeated sequence (DRY), by
    /// X * base^(length - allowed length); 0 is off [default: the value
    /// recommended for the model]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    dry_multiplier: Option<f32>,
    /// Base of the DRY penalty [default: 1.75]
    #[arg(long, value_name = "B", allow_negative_numbers = true)]
    dry_base: Option<f32>,
    /// Shortest repeated sequence that DRY penalises, in tokens [default: 2]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    dry_allowed_length: Option<u32>,
    /// Number of latest tokens that DRY looks at; -1 for all [default: -1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    dry_penalty_last_n: Option<i32>,
    /// Text that ends a DRY sequence, replacing the default ones (newline, colon, quote, star); can
    /// be given several times, `none` for none
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    dry_sequence_breaker: Vec<String>,
    /// Do not end a reply in which the model keeps repeating itself
    #[arg(long)]
    keep_loops: bool,
    /// Random seed; the same seed gives the same text
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    seed: Option<u32>,
    /// `fastest` keeps the target's distribution; `reproducible` gives the same text for the same
    /// seed with any draft or none [default: reproducible with a seed, else fastest]
    #[arg(long, value_enum)]
    mode: Option<ModeChoice>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModeChoice {
    Fastest,
    Reproducible,
}

impl From<ModeChoice> for Mode {
    fn from(choice: ModeChoice) -> Self {
        match choice {
            ModeChoice::Fastest => Self::Fastest,
            ModeChoice::Reproducible => Self::Reproducible,
        }
    }
}

/// Reads `ID=BIAS`.
fn bias(text: &str) -> std::result::Result<(TokenId, f32), String> {
    let parsed = text.split_once('=').and_then(|(id, bias)| Some((id.parse().ok()?, bias.parse().ok()?)));
    parsed.ok_or_else(|| "expected ID=BIAS, for example 42=-100".to_owned())
}

impl SamplingArgs {
    /// Returns these settings, completed from `base`. Without --mode, the mode is reproducible if a
    /// seed is given, and that of `base` otherwise.
    ///
    /// In reproducible mode without a seed, a seed is drawn and printed.
    ///
    /// # Errors
    /// `Error::Setting` for a value out of its range.
    pub fn over(&self, base: Sampling) -> Result<Sampling> {
        let unsaid = if self.seed.is_some() { Mode::Reproducible } else { base.mode };
        let mut sampling = Sampling {
            temperature: self.temperature.unwrap_or(base.temperature),
            top_k: self.top_k.unwrap_or(base.top_k),
            top_p: self.top_p.unwrap_or(base.top_p),
            min_p: self.min_p.unwrap_or(base.min_p),
            // An explicit penalty turns the automatic ones off.
            automatic_penalties: base.automatic_penalties
                && self.repeat_penalty.is_none()
                && self.dry_multiplier.is_none(),
            repetition_penalty: self.repeat_penalty.unwrap_or(base.repetition_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(base.presence_penalty),
            frequency_penalty: self.frequency_penalty.unwrap_or(base.frequency_penalty),
            logit_bias: if self.logit_bias.is_empty() { base.logit_bias } else { self.logit_bias.clone() },
            repeat_last_n: self.repeat_last_n.unwrap_or(base.repeat_last_n),
            dry_multiplier: self.dry_multiplier.unwrap_or(base.dry_multiplier),
            dry_base: self.dry_base.unwrap_or(base.dry_base),
            dry_allowed_length: self.dry_allowed_length.unwrap_or(base.dry_allowed_length),
            dry_penalty_last_n: self.dry_penalty_last_n.unwrap_or(base.dry_penalty_last_n),
            dry_sequence_breakers: match &self.dry_sequence_breaker[..] {
                [] => base.dry_sequence_breakers,
                [none] if none == "none" => Vec::new(),
                breakers => breakers.to_vec(),
            },
            stop_loops: base.stop_loops && !self.keep_loops,
            seed: self.seed,
            mode: self.mode.map_or(unsaid, Mode::from),
        };
        sampling.validate()?;
        if sampling.mode == Mode::Reproducible && sampling.seed.is_none() && !sampling.is_greedy() {
            let seed = rand::random();
            output::note(format_args!(
                "reproducible mode with a new seed: --seed {seed} gives this text again"
            ));
            sampling.seed = Some(seed);
        }
        Ok(sampling)
    }
}
