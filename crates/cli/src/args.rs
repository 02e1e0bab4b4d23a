//! Options that several commands share, and what they mean to the engine.

use std::convert::Infallible;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueEnum};
use foretoken_engine::accept::Verification;
use foretoken_engine::device::DeviceChoice;
use foretoken_engine::model::ModelSource;
use foretoken_engine::sampling::{Mode, Sampling};
use foretoken_engine::speculation::{
    DraftLength, DrafterChoice, LONGEST_DRAFT, Speculation, Staged, Threshold, Tree, WIDEST_TREE,
};
use foretoken_engine::trace::TokenId;

use crate::error::{Error, Result};
use crate::{output, session};

/// What computes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Device")]
pub struct DeviceArgs {
    /// What computes; `auto` takes a GPU where this build can use one. Where the device cannot be had, the CPU
    /// computes, and standard error says why
    #[arg(long, value_enum, default_value = "auto")]
    device: DeviceName,
    /// Threads that compute on the CPU [default: one for each core]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub threads: Option<NonZeroUsize>,
    /// Round weights of 16 and 32 bits to Q8_0 as they are loaded: faster, in less memory, and no longer
    /// exactly those of the file
    #[arg(long)]
    eight_bits: bool,
}

/// What computes for a target and its draft.
#[derive(Debug, Args)]
#[command(next_help_heading = "Device")]
pub struct PairDeviceArgs {
    #[command(flatten)]
    pub target: DeviceArgs,
    /// What computes for the draft [default: what computes for the target]
    #[arg(long, value_enum)]
    draft_device: Option<DeviceName>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DeviceName {
    Auto,
    Cpu,
    Cuda,
    Metal,
}

impl From<DeviceName> for DeviceChoice {
    fn from(name: DeviceName) -> Self {
        match name {
            DeviceName::Auto => Self::Auto,
            DeviceName::Cpu => Self::Cpu,
            DeviceName::Cuda => Self::Cuda,
            DeviceName::Metal => Self::Metal,
        }
    }
}

impl DeviceArgs {
    pub fn device(&self) -> DeviceChoice {
        self.device.into()
    }

    /// Opens a model by path or name; reads its header only.
    pub fn open(&self, name: &str) -> Result<ModelSource> {
        Ok(session::open(name)?.in_eight_bits(self.eight_bits))
    }
}

impl PairDeviceArgs {
    /// `None` for what computes for the target.
    pub fn draft_device(&self) -> Option<DeviceChoice> {
        self.draft_device.map(Into::into)
    }
}

/// Who drafts, how far ahead, and in what shape.
#[derive(Debug, Args)]
#[command(next_help_heading = "Speculation")]
pub struct SpeculationArgs {
    /// A smaller model that drafts; `ngram` for repetitions alone, `none` for no drafts at all
    #[arg(long, value_name = "MODEL|ngram|none")]
    pub draft: Option<DraftChoice>,
    /// Who may draft: the draft model, `ngram` (repeats what the conversation already said), `recycling`
    /// (repeats what the target thought of the same token before), or in every round who promises most
    /// [default: combined with a draft model, else none]
    #[arg(long, value_enum)]
    drafter: Option<DrafterName>,
    /// Tokens to draft in a round, 0 to 16, 0 being plain decoding; `auto` takes as many as promise most
    /// tokens per second on this device, which may be none
    #[arg(long, value_name = "auto|N", allow_negative_numbers = true, default_value = "auto", value_parser = draft_length)]
    draft_length: DraftLength,
    /// End a draft where the chance that all of it is accepted falls below X, 0 to 1; `auto` moves X with
    /// what the target accepts
    #[arg(long, value_name = "off|auto|X", allow_negative_numbers = true, default_value = "off", value_parser = threshold)]
    threshold: Threshold,
    /// Up to W guesses in one place, 1 to 4, 1 being a chain; `auto` where that promises more
    #[arg(long, value_name = "auto|W", allow_negative_numbers = true, default_value = "auto", value_parser = tree)]
    tree: Tree,
    /// Let the draft model be drafted for, by repetition or by --stage
    #[arg(long, value_enum, num_args = 0..=1, default_value = "auto", default_missing_value = "on")]
    staged: StagedChoice,
    /// A yet smaller model that drafts for the draft model
    #[arg(long, value_name = "MODEL", requires = "draft")]
    pub stage: Option<String>,
    /// How drawn tokens are judged: the draft as a whole, which accepts more, or token by token
    #[arg(long, value_enum, default_value = "block")]
    verification: VerificationChoice,
    /// Draft as if for the first time: use and keep nothing of what was learned about these models in earlier
    /// runs; with `bench`, in earlier replies
    #[arg(long)]
    pub cold: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DrafterName {
    Model,
    Ngram,
    Recycling,
    Combined,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StagedChoice {
    Auto,
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum VerificationChoice {
    Block,
    Token,
}

impl SpeculationArgs {
    /// # Errors
    /// `Error::Setting` for a value out of its range, `Error::Usage` for a draft that the drafter cannot
    /// have or lacks.
    pub fn speculation(&self) -> Result<Speculation> {
        let speculation = Speculation {
            drafter: self.drafter(),
            length: self.draft_length,
            threshold: self.threshold,
            tree: self.tree,
            staged: match self.staged {
                StagedChoice::Auto => Staged::Auto,
                StagedChoice::On => Staged::On,
                StagedChoice::Off => Staged::Off,
            },
            verification: match self.verification {
                VerificationChoice::Block => Verification::Block,
                VerificationChoice::Token => Verification::Token,
            },
        };
        speculation.validate()?;
        let without_model = !matches!(self.draft, Some(DraftChoice::Model(_)));
        if self.drafter == Some(DrafterName::Model) && without_model {
            return Err(Error::Usage(
                "--drafter model: expected --draft with a model, found none. Name one, or choose another drafter."
                    .to_owned(),
            ));
        }
        Ok(speculation)
    }

    fn drafter(&self) -> DrafterChoice {
        match self.drafter {
            Some(DrafterName::Model) => DrafterChoice::Model,
            Some(DrafterName::Ngram) => DrafterChoice::Ngram,
            Some(DrafterName::Recycling) => DrafterChoice::Recycling,
            Some(DrafterName::Combined) => DrafterChoice::Combined,
            None if self.draft == Some(DraftChoice::Ngram) => DrafterChoice::Ngram,
            None => DrafterChoice::Combined,
        }
    }

    /// The draft that was named; without one `otherwise`, or what needs no model where a drafter was named.
    pub fn draft_or(&self, otherwise: DraftChoice) -> DraftChoice {
        match (&self.draft, self.drafter) {
            (Some(draft), _) => draft.clone(),
            (None, None) => otherwise,
            (None, Some(_)) => DraftChoice::Ngram,
        }
    }
}

/// A draft as a person names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftChoice {
    None,
    /// No model: what was said before is repeated.
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
pub fn draft_length(text: &str) -> std::result::Result<DraftLength, String> {
    if text == "auto" {
        return Ok(DraftLength::Auto);
    }
    let length = text.parse().ok().filter(|&length| length as usize <= LONGEST_DRAFT);
    let expected = || format!("expected auto or a number from 0 to {LONGEST_DRAFT}");
    length.map(DraftLength::Fixed).ok_or_else(expected)
}

fn threshold(text: &str) -> std::result::Result<Threshold, String> {
    match text {
        "off" => Ok(Threshold::Off),
        "auto" => Ok(Threshold::Auto),
        number => {
            let least = number.parse().ok().filter(|least| (0.0..=1.0).contains(least));
            least.map(Threshold::Fixed).ok_or_else(|| "expected off, auto or a number from 0 to 1".to_owned())
        }
    }
}

fn tree(text: &str) -> std::result::Result<Tree, String> {
    match text {
        "auto" => Ok(Tree::Auto),
        "1" => Ok(Tree::Off),
        number => {
            let width = number.parse().ok().filter(|&width| (2..=WIDEST_TREE).contains(&(width as usize)));
            let expected = || format!("expected auto or a number from 1 to {WIDEST_TREE}");
            width.map(Tree::Width).ok_or_else(expected)
        }
    }
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
    pub device: PairDeviceArgs,
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
