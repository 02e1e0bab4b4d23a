//! Options of a single reply.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{
    EmbeddingArgs, GrammarArgs, PairDeviceArgs, SamplingArgs, SpeculationArgs, ThinkingArgs, VisionArgs,
};
use crate::error::{Error, Result};

/// Options of a single reply, for `generate` and `check`.
#[derive(Debug, Args)]
pub struct ReplyArgs {
    /// Target model, which writes the reply
    #[arg(long, value_name = "MODEL")]
    pub target: String,
    #[command(flatten)]
    pub prompt: PromptArgs,
    /// File before the prompt: text, .docx, .pptx, .xlsx, .ods, .epub or .html; several are given
    /// by several options. Of files that take more than half of the context, the beginning and the
    /// passages that match the prompt
    #[arg(long, value_name = "FILE", conflicts_with = "raw")]
    pub file: Vec<PathBuf>,
    #[command(flatten)]
    pub embedding: EmbeddingArgs,
    /// Picture before the prompt: PNG, JPEG, WebP, GIF or BMP; several are given by several options
    #[arg(long, value_name = "FILE")]
    pub picture: Vec<PathBuf>,
    /// Use the prompt as it is, without the chat template: only the model's begin-of-text token is
    /// added, if its tokenizer asks for one, and special tokens in the prompt are recognised
    #[arg(long)]
    pub raw: bool,
    /// Maximum length of the reply in tokens [default: as long as the context allows]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub max_tokens: Option<usize>,
    /// Continue after the model's end-of-text token
    #[arg(long)]
    pub ignore_eos: bool,
    #[command(flatten)]
    pub grammar: GrammarArgs,
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
    pub vision: VisionArgs,
    #[command(flatten)]
    pub device: PairDeviceArgs,
}

/// Options for the prompt.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct PromptArgs {
    /// Prompt
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// File with the prompt; `-` is standard input
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
