//! The commands, one per file: its options, its work and its output.

pub mod bench;
mod chat;
mod check;
mod compat;
mod devices;
mod generate;
mod gpu_check;
mod inspect;
mod logits;
mod models;
mod pull;
mod render;
mod serve;
mod tokenize;

use std::process::ExitCode;

use clap::Subcommand;

use crate::args::DeviceArgs;
use crate::error::Result;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Chat with a model and see which drafted tokens are accepted
    Chat(chat::Args),
    /// Serve the APIs of OpenAI and Anthropic to other programs
    Serve(serve::Args),
    /// Write one reply
    Generate(generate::Args),
    /// Write a reply with and without drafts and compare them: exit code 1 if they differ
    Check(check::Args),
    /// Compare the speed of plain and speculative decoding
    Bench(bench::Args),
    /// Compare a device with the CPU: texts, accuracy and speed; exit code 1 if a text differs by
    /// more than rounding explains
    GpuCheck(gpu_check::Args),
    /// List this computer's devices, their values for `--device`, and why a device cannot be used
    Devices(devices::Args),
    /// Print the target's logits after every token of a text
    Logits(logits::Args),
    /// Describe a model without loading it
    Inspect(inspect::Args),
    /// Convert text to tokens
    Tokenize(tokenize::TokenizeArgs),
    /// Convert tokens to text
    Detokenize(tokenize::DetokenizeArgs),
    /// Apply a model's chat template to a conversation
    Render(render::Args),
    /// Check whether one model can draft for another
    Compat(compat::Args),
    /// Manage the models on this computer and find others
    #[command(subcommand)]
    Models(models::Models),
}

impl Command {
    /// Device options of commands that run a model.
    pub fn device(&self) -> Option<&DeviceArgs> {
        match self {
            Self::Chat(args) => Some(&args.talk.device.target),
            Self::Serve(args) => Some(&args.talk.device.target),
            Self::Generate(args) => Some(&args.reply.device.target),
            Self::Check(args) => Some(&args.reply.device.target),
            Self::Bench(args) => Some(&args.run.device.target),
            Self::GpuCheck(args) => Some(&args.device),
            Self::Logits(args) => Some(&args.device),
            _ => None,
        }
    }

    pub fn run(&self) -> Result<ExitCode> {
        match self {
            Self::Chat(args) => chat::run(args)?,
            Self::Serve(args) => serve::run(args)?,
            Self::Generate(args) => generate::run(args)?,
            Self::Check(args) => return check::run(args),
            Self::Bench(args) => bench::run(args)?,
            Self::GpuCheck(args) => return gpu_check::run(args),
            Self::Devices(args) => devices::run(args)?,
            Self::Logits(args) => logits::run(args)?,
            Self::Inspect(args) => inspect::run(args)?,
            Self::Tokenize(args) => tokenize::tokenize(args)?,
            Self::Detokenize(args) => tokenize::detokenize(args)?,
            Self::Render(args) => render::run(args)?,
            Self::Compat(args) => compat::run(args)?,
            Self::Models(command) => return models::run(command),
        }
        Ok(ExitCode::SUCCESS)
    }
}
