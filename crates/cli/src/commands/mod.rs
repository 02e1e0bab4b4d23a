//! The commands, one a file: its options, what it does, what it prints.

mod bench;
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
    /// Talk with a model and see what became of every drafted token
    Chat(chat::Args),
    /// Reply to other programs by OpenAI's protocol
    Serve(serve::Args),
    /// Write one reply
    Generate(generate::Args),
    /// Write a reply with and without drafts and compare: exit code 1 when the two differ
    Check(check::Args),
    /// Measure plain against speculative decoding
    Bench(bench::Args),
    /// Find out whether a device computes what the CPU does, and how fast: exit code 1 when a text is wrong
    GpuCheck(gpu_check::Args),
    /// List what could compute on this computer: what `--device` takes, and why something cannot be used
    Devices(devices::Args),
    /// Print the target's scores after every token of a text
    Logits(logits::Args),
    /// Describe a model without loading it
    Inspect(inspect::Args),
    /// Turn text into tokens
    Tokenize(tokenize::TokenizeArgs),
    /// Turn tokens into text
    Detokenize(tokenize::DetokenizeArgs),
    /// Put a conversation into a model's form with its chat template
    Render(render::Args),
    /// Say whether one model can draft for another
    Compat(compat::Args),
    /// The models on this computer and on the hub
    #[command(subcommand)]
    Models(models::Models),
}

impl Command {
    /// What computes, for commands that compute.
    pub fn device(&self) -> Option<&DeviceArgs> {
        match self {
            Self::Chat(args) => Some(&args.talk.device.target),
            Self::Serve(args) => Some(&args.talk.device.target),
            Self::Generate(args) => Some(&args.reply.device.target),
            Self::Check(args) => Some(&args.reply.device.target),
            Self::Bench(args) => Some(&args.device.target),
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
