//! What one reply needs.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{PairDeviceArgs, SamplingArgs, SpeculationArgs, ThinkingArgs};
use crate::error::{Error, Result};

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
    /// Continue after the model has ended its text
    #[arg(long)]
    pub ignore_eos: bool,
    #[command(flatten)]
    pub thinking: ThinkingArgs,
    /// Print JSON, one object per line, and nothing else
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
