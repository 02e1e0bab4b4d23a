//! Options of `bench`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::prompts::Workload;
use super::random::RandomModel;
use super::sweep::Sweep;
use crate::args::{PairDeviceArgs, SamplingArgs, SpeculationArgs};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Target model
    #[arg(long, value_name = "MODEL", required_unless_present_any = ["random", "models"])]
    pub target: Option<String>,
    /// Measure every model among the .gguf files of a folder, instead of --target: plain, with each
    /// drafter and with each draft model of the folder that fits, plus cost of passes and memory
    /// bandwidth. Also runs llama.cpp as with --random
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["target", "random", "folder", "sweep", "SpeculationArgs"])]
    pub models: Option<PathBuf>,
    /// Measure generated models with random weights, instead of --target, each with its first
    /// layers as a draft. Shapes: tiny, 0.5B, 1.1B, 8B; mixtures of experts qwen3moe-4, gpt-oss-3
    /// and glm-flash-4; recurrent qwen35-0.8B and qwen35-2B, which draft with an MTP block.
    /// Weights: Q4_K_M, or all in Q8_0, F16 or another GGUF format. If LLAMA_CPP_BIN names the
    /// folder of llama.cpp's programs, these run on the same files in turn
    #[arg(
        long,
        value_name = "SHAPE:WEIGHTS",
        value_delimiter = ',',
        conflicts_with_all = ["target", "prompts", "workload", "sweep", "raw", "SpeculationArgs", "SamplingArgs"]
    )]
    pub random: Vec<RandomModel>,
    /// Folder of the files with random weights [default: foretoken-bench in the system's temporary
    /// folder]
    #[arg(long, value_name = "FOLDER", conflicts_with = "target")]
    pub folder: Option<PathBuf>,
    /// File with one JSON object per line: {"prompt": "..."}, or {"turns": ["...", ...]}, whose
    /// first turn is used
    #[arg(long, value_name = "FILE")]
    pub prompts: Option<PathBuf>,
    /// Built-in prompts to use instead of --prompts; all but `tasks` suit the starter [default:
    /// chat; with --models: tasks]
    #[arg(long, value_enum, conflicts_with = "prompts")]
    pub workload: Option<Workload>,
    /// Also measure other settings: `lengths` fixes the draft length at 1 to 8, `drafters` uses
    /// each drafter alone, `ways` tries chains, trees, staged drafts, a threshold, each drafter
    /// alone and both acceptance rules
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "lengths")]
    pub sweep: Option<Sweep>,
    /// Maximum length of a reply in tokens
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "128", value_parser = clap::value_parser!(u32).range(2..))]
    pub tokens: u32,
    /// Repeats over all prompts, or with --random over one prompt each; results are medians of
    /// these
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "3", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: u32,
    /// Measure the target without drafts, idle and while N busy programs run; on all threads and on
    /// one
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        conflicts_with_all = ["random", "sweep", "verify_cost", "SpeculationArgs"]
    )]
    pub beside: Option<NonZeroUsize>,
    /// Also measure the cost of passes over 1 to 17 tokens, of drafting a token, and the memory
    /// bandwidth
    #[arg(long)]
    pub verify_cost: bool,
    /// Use the prompts as they are, without the chat template
    #[arg(long)]
    pub raw: bool,
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
