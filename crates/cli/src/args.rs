//! Options that several commands share, and what they mean to the engine.

use std::convert::Infallible;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueEnum};
use foretoken_engine::decoder::LONGEST_DRAFT;
use foretoken_engine::device::{self, Device};
use foretoken_engine::model::ModelSource;
use foretoken_engine::sampling::{Mode, Sampling};
use foretoken_engine::trace::TokenId;

use crate::error::{Error, Result};
use crate::{output, session};

/// What computes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Device")]
pub struct DeviceArgs {
    /// What computes; `auto` takes the best this build knows
    #[arg(long, value_enum, default_value = "auto")]
    device: DeviceChoice,
    /// Threads that compute [default: one for each core]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub threads: Option<NonZeroUsize>,
    /// Round weights of 16 and 32 bits to Q8_0 as they are loaded: faster, in less memory, and no longer
    /// exactly those of the file
    #[arg(long)]
    eight_bits: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DeviceChoice {
    Auto,
    Cpu,
}

impl DeviceArgs {
    pub fn device(&self) -> Device {
        match self.device {
            DeviceChoice::Auto => device::default_device(),
            DeviceChoice::Cpu => Device::Cpu,
        }
    }

    /// Opens a model by path or name; reads its header only.
    pub fn open(&self, name: &str) -> Result<ModelSource> {
        Ok(session::open(name)?.in_eight_bits(self.eight_bits))
    }

    /// "CPU, 8 threads, AVX-512"
    pub fn label(&self) -> String {
        device::label(&self.device())
    }
}

/// Who drafts, and how far ahead.
#[derive(Debug, Args)]
#[command(next_help_heading = "Speculation")]
pub struct SpeculationArgs {
    /// Who drafts: a smaller model with the target's vocabulary, `ngram` (repeats what the conversation
    /// already said) or `none`
    #[arg(long, value_name = "MODEL|ngram|none")]
    pub draft: Option<DraftChoice>,
    /// Tokens to draft in a round, 0 to 16; 0 is plain decoding
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "4", value_parser = draft_length)]
    pub draft_length: usize,
}

/// A draft as a person names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftChoice {
    None,
    Ngram,
    Model(String),
}

impl FromStr for DraftChoice {
    type Err = Infallible;

    fn from_str(name: &str) -> std::result::Result<Self, Infallible> {
        Ok(match name {
            "none" => Self::None,
            "ngram" => Self::Ngram,
            model => Self::Model(model.to_owned()),
        })
    }
}

impl fmt::Display for DraftChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Ngram => "ngram",
            Self::Model(name) => name,
        })
    }
}

/// A draft length as a person writes it.
pub fn draft_length(text: &str) -> std::result::Result<usize, String> {
    let length = text.parse().ok().filter(|&length| length <= LONGEST_DRAFT);
    length.ok_or_else(|| format!("expected a number from 0 to {LONGEST_DRAFT}"))
}

/// How the next token is chosen.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
    /// 0 always takes the likeliest token, 1 leaves the target's probabilities alone [default: 0; chat:
    /// 0.7]
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
    /// Make tokens that already occurred less likely (more than 1) or likelier (less than 1)
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    repeat_penalty: Option<f32>,
    /// The same seed gives the same text
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    seed: Option<u32>,
    /// `fastest` keeps the target's distribution, `reproducible` makes the text depend on the seed alone,
    /// whoever drafts [default: reproducible with a seed, else fastest]
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
            repetition_penalty: self.repeat_penalty.unwrap_or(base.repetition_penalty),
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

/// Everything one reply needs: for `generate` and `check`.
#[derive(Debug, Args)]
pub struct ReplyArgs {
    /// The model that writes
    #[arg(long, value_name = "MODEL")]
    pub target: String,
    #[command(flatten)]
    pub prompt: PromptArgs,
    /// Take the prompt as it is: no chat template, only the token that begins a text where the model's
    /// tokenizer asks for one; special tokens written in it are read as such
    #[arg(long)]
    pub raw: bool,
    /// Longest reply in tokens [default: as long as the context allows]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub max_tokens: Option<usize>,
    /// Go on after the model has ended its text
    #[arg(long)]
    pub ignore_eos: bool,
    /// Print JSON, an object a line, and nothing else
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub speculation: SpeculationArgs,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// What to reply to.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct PromptArgs {
    /// What to reply to
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// A file with what to reply to; `-` is standard input
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
}

impl PromptArgs {
    pub fn text(&self) -> Result<String> {
        match (&self.prompt, &self.prompt_file) {
            (None, Some(path)) => read_text(path),
            (prompt, _) => Ok(prompt.clone().unwrap_or_default()),
        }
    }
}

/// The text of a file, or of standard input for `-`.
pub fn read_text(path: &Path) -> Result<String> {
    let text = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    text.map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Numbers of tokens, "1,2,3".
#[derive(Debug, Clone)]
pub struct TokenIds(pub Vec<TokenId>);

impl FromStr for TokenIds {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let number = |part: &str| {
            part.trim().parse().map_err(|_| format!("expected numbers of tokens like 1,2,3, found '{part}'"))
        };
        text.split(',').map(number).collect::<std::result::Result<_, _>>().map(Self)
    }
}
