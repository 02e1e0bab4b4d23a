//! `foretoken-bench`: measurements for developers, which no package contains. Models with random
//! weights, and models of a folder beside llama.cpp. The examples measure the window and the local
//! server.
//!
//! - `meaning`: passages found by words and by embeddings
//! - `measure`: measures a model with random weights; `report`: its figures
//! - `contexts`: a text put aside, written, read and resumed
//! - `documents`: indexing and searching documents
//! - `kernels`: times of the GPU engine's kernels
//! - `kv_cache`: a KV cache in 8 bits beside one in 16
//! - `loading`: times and memory of loading a model
//! - `masks`: times of masks of grammars
//! - `pictures`: times of a vision model, and drafts after a picture
//! - `quotes`: drafts of replies that quote documents
//! - `replay`: drafting policies on recorded drafts
//! - `llama_cpp`: llama.cpp's programs on the same files
//! - `resident`: memory of this program
//! - `sampling`: times of sampling on the host

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod contexts;
mod documents;
mod kernels;
mod kv_cache;
mod llama_cpp;
mod loading;
mod masks;
mod meaning;
mod measure;
mod pictures;
mod quotes;
mod replay;
mod report;
mod resident;
mod sampling;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use foretoken_cli::args::{DeviceArgs, PairDeviceArgs};
use foretoken_cli::commands::bench::RunArgs;
use foretoken_cli::commands::bench::real::{self, Other};
use foretoken_cli::error::Result;
use foretoken_cli::output;
use foretoken_cli::random::{FolderArgs, RandomModel, file};
use foretoken_engine::inspection::serve_untrusted_input;
use foretoken_model::child::Bounded;

use self::contexts::ContextsArgs;
use self::documents::DocumentsArgs;
use self::kernels::KernelArgs;
use self::kv_cache::KvCacheArgs;
use self::llama_cpp::LlamaCpp;
use self::loading::LoadingArgs;
use self::masks::MasksArgs;
use self::meaning::MeaningArgs;
use self::pictures::PicturesArgs;
use self::quotes::QuotesArgs;
use self::replay::ReplayArgs;
use self::replay::record::RecordArgs;
use self::sampling::SamplingArgs;

/// Measures Foretoken's engine, for developers. If LLAMA_CPP_BIN names the folder of llama.cpp's
/// programs, these run on the same files in turn.
#[derive(Debug, Parser)]
#[command(name = "foretoken-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure models with random weights, each with its first layers as a draft
    Random(RandomArgs),
    /// Measure every model among the .gguf files of a folder, as `foretoken-cli bench --models`
    /// does, and llama.cpp on the same files
    Models(ModelsArgs),
    /// Time every kernel in passes of the GPU engine, by the device's clock
    GpuKernels(KernelArgs),
    /// Compare keys and values in 8 bits with 16 bits over texts: memory, time, predictions
    KvCache(KvCacheArgs),
    /// Put a text aside, write it, read it and go on with it; write replies beside a thread that
    /// writes
    Contexts(ContextsArgs),
    /// Load models from the page cache: time, speed, and peak memory beside the file's size
    Loading(LoadingArgs),
    /// Time sampling and verification on the host, over synthetic logits
    Sampling(SamplingArgs),
    /// Index and search documents of made-up words
    Documents(DocumentsArgs),
    /// Write replies that quote a document, with and without its excerpts as n-grams, and beside a
    /// thread that indexes documents
    Quotes(QuotesArgs),
    /// Time a vision model of SmolVLM's size, and compare drafts after a picture with drafts
    /// without one
    Pictures(PicturesArgs),
    /// Search this project's documents for questions in other words than theirs, with an embedding
    /// model and without
    Meaning(MeaningArgs),
    /// Time the masks of grammars over a model's vocabulary
    Masks(MasksArgs),
    /// Record texts of a target and the drafts at each of their positions, for `replay`
    Record(RecordArgs),
    /// Compare drafting policies on recorded drafts, without a model
    Replay(ReplayArgs),
}

#[derive(Debug, clap::Args)]
struct RandomArgs {
    /// Models to generate. Shapes: tiny, 0.5B, 1.1B, 8B; mixtures of experts qwen3moe-4, gpt-oss-3
    /// and glm-flash-4; recurrent qwen35-0.8B and qwen35-2B, which draft with an MTP block.
    /// Weights: Q4_K_M, or all in Q8_0, F16 or another GGUF format
    #[arg(value_name = "SHAPE:WEIGHTS", value_delimiter = ',', required = true)]
    models: Vec<RandomModel>,
    #[command(flatten)]
    folder: FolderArgs,
    /// Length of a reply in tokens
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "128", value_parser = clap::value_parser!(u32).range(2..))]
    tokens: u32,
    /// Repeats, each over another prompt; results are medians of these
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "3", value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Also measure the cost of passes over 1 to 17 tokens, of drafting a token, and the memory
    /// bandwidth
    #[arg(long)]
    verify_cost: bool,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: PairDeviceArgs,
}

#[derive(Debug, clap::Args)]
struct ModelsArgs {
    /// Folder with .gguf files
    folder: PathBuf,
    #[command(flatten)]
    run: RunArgs,
}

/// Limits this program's memory as a child process for untrusted input, and only then.
#[global_allocator]
static MEMORY: Bounded = Bounded;

fn main() -> ExitCode {
    if serve_untrusted_input(&[]) {
        return ExitCode::SUCCESS;
    }
    let Cli { command } = Cli::parse();
    foretoken_cli::run(command.device(), || command.run())
}

impl Command {
    fn device(&self) -> Option<&DeviceArgs> {
        match self {
            Self::Random(args) => Some(&args.device.target),
            Self::Models(args) => Some(&args.run.device.target),
            Self::GpuKernels(args) => Some(&args.device),
            Self::Contexts(args) => Some(&args.device.target),
            Self::Loading(args) => Some(&args.device),
            Self::Pictures(args) => Some(&args.device.target),
            Self::Quotes(args) => Some(&args.device.target),
            Self::Record(args) => Some(&args.device.target),
            Self::KvCache(_)
            | Self::Documents(_)
            | Self::Meaning(_)
            | Self::Sampling(_)
            | Self::Masks(_)
            | Self::Replay(_) => None,
        }
    }

    fn run(&self) -> Result<ExitCode> {
        let mut llama_cpp = LlamaCpp::find()?;
        match self {
            Self::Random(args) => args.run(llama_cpp)?,
            Self::Models(args) => {
                let other = llama_cpp.as_mut().map(|program| program as Other<'_>);
                real::run(&args.folder, &args.run, other)?;
            }
            Self::GpuKernels(args) => args.run()?,
            Self::KvCache(args) => args.run()?,
            Self::Contexts(args) => args.run()?,
            Self::Loading(args) => args.run()?,
            Self::Documents(args) => args.run()?,
            Self::Pictures(args) => args.run()?,
            Self::Quotes(args) => args.run()?,
            Self::Sampling(args) => args.run()?,
            Self::Masks(args) => args.run()?,
            Self::Meaning(args) => args.run()?,
            Self::Record(args) => args.run()?,
            Self::Replay(args) => args.run()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl RandomArgs {
    /// Measures one model after the other and prints each report as soon as it is done.
    fn run(&self, mut llama_cpp: Option<LlamaCpp>) -> Result<()> {
        let folder = self.folder.path();
        for (index, &model) in self.models.iter().enumerate() {
            let pair = file::make(model, &folder)?;
            let report = measure::measure(model, &pair, self, llama_cpp.as_mut())?;
            if self.json {
                output::json(&report)?;
            } else {
                output::text(&format!("{}{}", if index > 0 { "\n" } else { "" }, report.table()))?;
            }
        }
        Ok(())
    }
}
