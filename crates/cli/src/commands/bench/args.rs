//! What `bench` is asked for.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::prompts::Workload;
use super::random::RandomModel;
use super::sweep::Sweep;
use crate::args::{PairDeviceArgs, SamplingArgs, SpeculationArgs};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The model that writes
    #[arg(long, value_name = "MODEL", required_unless_present_any = ["random", "models"])]
    pub target: Option<String>,
    /// Instead of --target: every model among the .gguf files of a folder, plain and with each drafter, those
    /// of the folder's models included that can draft for it; what passes cost and how fast memory is read
    /// for them. Beside llama.cpp as with --random
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["target", "random", "folder", "sweep", "SpeculationArgs"])]
    pub models: Option<PathBuf>,
    /// Instead of --target: models with random weights, which are made for it, each with a draft of its
    /// first layers. Shapes: tiny, 0.5B, 1.1B, 8B, with experts qwen3moe-4, gpt-oss-3 and glm-flash-4, and
    /// with recurrent layers and a block for MTP, which drafts, qwen35-0.8B and qwen35-2B; weights: Q4_K_M, or
    /// all in Q8_0, F16 or another format of GGUF. Where LLAMA_CPP_BIN names a folder with llama.cpp's
    /// programs, these run on the same files in turns with this one
    #[arg(
        long,
        value_name = "SHAPE:WEIGHTS",
        value_delimiter = ',',
        conflicts_with_all = ["target", "prompts", "workload", "sweep", "raw", "SpeculationArgs", "SamplingArgs"]
    )]
    pub random: Vec<RandomModel>,
    /// Where the files with random weights are, or are made [default: foretoken-bench in the system's
    /// folder for temporary files]
    #[arg(long, value_name = "FOLDER", conflicts_with = "target")]
    pub folder: Option<PathBuf>,
    /// A file with a JSON object a line: {"prompt": "..."}, or {"turns": ["...", ...]}, of which the
    /// first is used
    #[arg(long, value_name = "FILE")]
    pub prompts: Option<PathBuf>,
    /// Instead of --prompts, a few built-in ones; all but the last suit the starter [default: chat; with
    /// --models tasks]
    #[arg(long, value_enum, conflicts_with = "prompts")]
    pub workload: Option<Workload>,
    /// Besides, the same in other ways: with draft lengths of 1 to 8 that stay what they are, by each drafter
    /// alone, or one by one with chains, trees, stages, a threshold, each drafter alone, and either rule of
    /// acceptance
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "lengths")]
    pub sweep: Option<Sweep>,
    /// Longest reply in tokens
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "128", value_parser = clap::value_parser!(u32).range(2..))]
    pub tokens: u32,
    /// How often to go through all prompts, with --random through one of them; the medians are over these
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "3", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: u32,
    /// Instead of comparing with drafts: the target alone, idle and beside N programs that never pause, in
    /// turns; and on one thread, which no other has to wait for
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        conflicts_with_all = ["random", "sweep", "verify_cost", "SpeculationArgs"]
    )]
    pub beside: Option<NonZeroUsize>,
    /// Measure what a pass over 1 to 17 tokens costs, what drafting a token costs, and how fast this
    /// computer reads memory
    #[arg(long)]
    pub verify_cost: bool,
    /// Take the prompts as they are, without the chat template
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
