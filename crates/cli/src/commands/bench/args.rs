//! Options of `bench`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::prompts::Workload;
use super::sweep::Sweep;
use crate::args::{PairDeviceArgs, SamplingArgs, SpeculationArgs};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Target model
    #[arg(long, value_name = "MODEL", required_unless_present = "models")]
    pub target: Option<String>,
    /// Measure every model among the .gguf files of a folder, instead of --target: plain, with each
    /// drafter and with each draft model of the folder that fits, plus cost of passes and memory
    /// bandwidth
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["target", "sweep", "SpeculationArgs"])]
    pub models: Option<PathBuf>,
    /// Also measure other settings: `lengths` fixes the draft length at 1 to 8, `drafters` uses
    /// each drafter alone, `ways` tries chains, trees, staged drafts, a threshold, each drafter
    /// alone and both acceptance rules
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "lengths")]
    pub sweep: Option<Sweep>,
    /// Measure plain decoding alone and while N other programs keep one core busy each; on all
    /// threads and on one
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        conflicts_with_all = ["sweep", "verify_cost", "SpeculationArgs"]
    )]
    pub beside: Option<NonZeroUsize>,
    /// Also measure the cost of passes over 1 to 17 tokens, of drafting a token, and the memory
    /// bandwidth
    #[arg(long)]
    pub verify_cost: bool,
    #[command(flatten)]
    pub speculation: SpeculationArgs,
    #[command(flatten)]
    pub run: RunArgs,
}

/// Options of the measured replies.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// File with one JSON object per line: {"prompt": "..."}, or {"turns": ["...", ...]}, whose
    /// first turn is used
    #[arg(long, value_name = "FILE")]
    pub prompts: Option<PathBuf>,
    /// Built-in prompts to use instead of --prompts; all but `tasks` suit the starter [default:
    /// chat; with --models: tasks]
    #[arg(long, value_enum, conflicts_with = "prompts")]
    pub workload: Option<Workload>,
    /// Maximum length of a reply in tokens
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "128", value_parser = clap::value_parser!(u32).range(2..))]
    pub tokens: u32,
    /// Repeats over all prompts; results are medians over the repeats
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "3", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: u32,
    /// Use the prompts as they are, without the chat template
    #[arg(long)]
    pub raw: bool,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    #[command(flatten)]
    pub device: PairDeviceArgs,
}
