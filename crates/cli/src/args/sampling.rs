//! How the next token is chosen.

use clap::{Args, ValueEnum};
use foretoken_engine::sampling::{Mode, Sampling};

use crate::error::Result;
use crate::output;

/// How the next token is chosen.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
    /// 0 always takes the likeliest token, 1 leaves the target's probabilities alone [default: 0; chat:
    /// 0.7; serve: 1]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    temperature: Option<f32>,
    /// Keep the K likeliest tokens; 0 keeps all
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    top_k: Option<u32>,
    /// Keep the likeliest tokens that together hold the share P of the probability [default: 1; chat:
    /// 0.95]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    top_p: Option<f32>,
    /// Drop tokens less likely than the share P of the likeliest
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    min_p: Option<f32>,
    /// Make tokens that already occurred less likely (more than 1) or likelier (less than 1); 1 is off
    /// [default: what the model needs]
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    repeat_penalty: Option<f32>,
    /// Tokens at the end of the text that --repeat-penalty looks at; -1 for all of them [default: 64]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    repeat_last_n: Option<i32>,
    /// Make tokens less likely that would continue a repeated sequence (DRY), by
    /// X * base^(length - allowed length); 0 is off [default: what the model needs]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    dry_multiplier: Option<f32>,
    /// The base of --dry-multiplier's penalty [default: 1.75]
    #[arg(long, value_name = "B", allow_negative_numbers = true)]
    dry_base: Option<f32>,
    /// The shortest repeated sequence that DRY penalises, in tokens [default: 2]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    dry_allowed_length: Option<u32>,
    /// Tokens at the end of the text that DRY looks at; -1 for all of them [default: -1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    dry_penalty_last_n: Option<i32>,
    /// A text at which DRY's sequences end, instead of the usual ones (newline, colon, quote, star); can be given
    /// several times, `none` for none
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    dry_sequence_breaker: Vec<String>,
    /// Go on where the model repeats itself without end, which ends a reply otherwise
    #[arg(long)]
    keep_loops: bool,
    /// The same seed gives the same text
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    seed: Option<u32>,
    /// `fastest` keeps the target's distribution, `reproducible` gives the same text for the same seed with any
    /// draft, or none [default: reproducible with a seed, else fastest]
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

impl SamplingArgs {
    /// These settings, and those of `base` where nothing was said. Without a word on the mode it is
    /// reproducible when a seed is given and that of `base` when not.
    ///
    /// A reproducible text needs a seed to be reproduced: one is drawn where none was given, and said.
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
            // Who names one value says what the penalties are.
            automatic_penalties: base.automatic_penalties
                && self.repeat_penalty.is_none()
                && self.dry_multiplier.is_none(),
            repetition_penalty: self.repeat_penalty.unwrap_or(base.repetition_penalty),
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
                "reproducible mode with a fresh seed: --seed {seed} gives this text again"
            ));
            sampling.seed = Some(seed);
        }
        Ok(sampling)
    }
}
