//! Options that several commands share. This file has the options of drafting; devices, sampling,
//! prompts and pictures have files of their own.

mod device;
mod embedding;
mod grammar;
mod picture;
mod reply;
mod sampling;
mod talk;
mod thinking;
mod tokens;
mod tools;

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use foretoken_engine::speculation::{
    DraftLength, DrafterChoice, MAX_DRAFT_LENGTH, MAX_TREE_WIDTH, Speculation, Staged, Threshold, Tree,
    Verification,
};

pub use self::device::{DeviceArgs, PairDeviceArgs};
pub use self::embedding::EmbeddingArgs;
pub use self::grammar::GrammarArgs;
pub use self::picture::VisionArgs;
pub use self::reply::{ReplyArgs, read_text};
pub use self::sampling::SamplingArgs;
pub use self::talk::TalkArgs;
pub use self::thinking::ThinkingArgs;
pub use self::tokens::TokenIds;
pub use self::tools::{McpArgs, ToolArgs};
use crate::error::{Error, Result};

/// Options of drafting.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Speculation")]
pub struct SpeculationArgs {
    /// Draft with a smaller model or a draft head; `mtp` uses the draft head in the target's own
    /// file, `ngram` only repeats earlier text, `none` turns drafting off
    #[arg(long, value_name = "MODEL|mtp|ngram|none")]
    pub draft: Option<DraftChoice>,
    /// Drafters to use: `model` (the draft model or head), `ngram` (repeats earlier text of the
    /// conversation), `recycling` (reuses the target's earlier predictions after the same token),
    /// or `combined` (in each round the one expected to save the most time) [default: ngram with
    /// `--draft ngram`, else combined]
    #[arg(long, value_enum)]
    drafter: Option<DrafterName>,
    /// Tokens to draft in a round: 1 to 16, `auto` (as many as are worth their time in this round,
    /// which may be none), or 0 for no drafts
    #[arg(long, value_name = "auto|N", allow_negative_numbers = true, default_value = "auto", value_parser = draft_length)]
    draft_length: DraftLength,
    /// End a draft when the probability that all of it is accepted falls below X, 0 to 1; with a
    /// fixed length `auto` ends it where more tokens are not worth their time
    #[arg(long, value_name = "off|auto|X", allow_negative_numbers = true, default_value = "off", value_parser = threshold)]
    threshold: Threshold,
    /// Alternatives to draft at one position, 1 to 4; 1 drafts a single sequence, `auto` drafts
    /// more where they are worth it and tokens are not sampled at random
    #[arg(long, value_name = "auto|W", allow_negative_numbers = true, default_value = "auto", value_parser = tree)]
    tree: Tree,
    /// Speed up the draft model with drafts of its own, from earlier text or from the model of
    /// --stage
    #[arg(long, value_enum, num_args = 0..=1, default_value = "auto", default_missing_value = "on")]
    staged: StagedChoice,
    /// An even smaller model that drafts for the draft model; it gained nothing in measurements
    #[arg(long, value_name = "MODEL", requires = "draft")]
    pub stage: Option<String>,
    /// Acceptance rule above temperature 0: `block` judges a draft as a whole and accepts at least
    /// as many tokens, `token` judges each token by itself
    #[arg(long, value_enum, default_value = "block")]
    verification: VerificationChoice,
    /// Ignore the acceptance statistics of earlier runs and save none; with `bench`, also forget
    /// those of earlier replies
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
    /// `Error::Setting` for a value out of range, `Error::Usage` for `--drafter model` without a
    /// draft model.
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
        let without_model = !matches!(self.draft, Some(DraftChoice::Mtp | DraftChoice::Model(_)));
        if self.drafter == Some(DrafterName::Model) && without_model {
            return Err(Error::Usage(
                "--drafter model needs a draft model: name one with --draft, or choose another drafter."
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

    /// These options for another target, whose draft is its own unless drafts without a model were
    /// named.
    #[must_use]
    pub fn without_models(&self) -> Self {
        let without = |draft: &DraftChoice| matches!(draft, DraftChoice::None | DraftChoice::Ngram);
        Self { draft: self.draft.clone().filter(without), stage: None, ..self.clone() }
    }

    /// The draft that was named. Without one: `otherwise`, or no model if a drafter was named.
    pub fn draft_or(&self, otherwise: DraftChoice) -> DraftChoice {
        match (&self.draft, self.drafter) {
            (Some(draft), _) => draft.clone(),
            (None, None) => otherwise,
            (None, Some(_)) => DraftChoice::Ngram,
        }
    }
}

/// A draft as the options name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftChoice {
    None,
    /// No model; repeats earlier text.
    Ngram,
    /// The draft head in the target's own file.
    Mtp,
    Model(String),
}

impl FromStr for DraftChoice {
    type Err = Infallible;

    fn from_str(name: &str) -> std::result::Result<Self, Infallible> {
        Ok(match name {
            "none" => Self::None,
            "ngram" => Self::Ngram,
            "mtp" => Self::Mtp,
            model => Self::Model(model.to_owned()),
        })
    }
}

impl fmt::Display for DraftChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Ngram => "ngram",
            Self::Mtp => "mtp",
            Self::Model(name) => name,
        })
    }
}

/// Parses a draft length.
pub fn draft_length(text: &str) -> std::result::Result<DraftLength, String> {
    if text == "auto" {
        return Ok(DraftLength::Auto);
    }
    let length = text.parse().ok().filter(|&length| length as usize <= MAX_DRAFT_LENGTH);
    let expected = || format!("expected auto or a number from 0 to {MAX_DRAFT_LENGTH}");
    length.map(DraftLength::tokens).ok_or_else(expected)
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
            let width = number.parse().ok().filter(|&width| (2..=MAX_TREE_WIDTH).contains(&(width as usize)));
            let expected = || format!("expected auto or a number from 1 to {MAX_TREE_WIDTH}");
            width.map(Tree::Width).ok_or_else(expected)
        }
    }
}
