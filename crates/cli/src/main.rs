//! `foretoken-cli`: Foretoken's engine without a window, for servers, scripts, benchmarks and
//! tests. This file only reads the arguments, starts the log and returns the exit code.
//!
//! A map:
//! - [`commands`]: the commands, one per file
//! - [`args`]: options that several commands share
//! - [`session`]: opens the models that a command names; [`ready`]: loads the pair for
//!   conversations
//! - [`output`], [`colour`]: writes results and messages, coloured on a terminal
//! - [`interrupt`], [`error`]: Ctrl-C and errors

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod args;
mod colour;
mod commands;
mod error;
mod interrupt;
mod output;
mod ready;
mod session;

use std::process::ExitCode;

use clap::Parser;
use foretoken_engine::inspection::serve_untrusted_input;
use foretoken_forward::device;
use foretoken_model::child::Bounded;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use commands::Command;

/// Runs language models on this computer with speculative decoding: a small draft model proposes
/// tokens, the target model checks them all in one pass, and the output is exactly the target's
/// own.
///
/// A model is the path of a .gguf file or of a folder with safetensors, or the name of an installed
/// model; `smollm2`, `starter` and `starter-draft` come with this program. With --json, every line
/// on standard output is one JSON object; messages go to standard error. Exit codes: 0 success, 1
/// failure, 2 wrong usage.
#[derive(Debug, Parser)]
#[command(name = "foretoken-cli", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Limits this program's memory as a child process for untrusted input, and only then.
#[global_allocator]
static MEMORY: Bounded = Bounded;

fn main() -> ExitCode {
    if serve_untrusted_input() {
        return ExitCode::SUCCESS;
    }
    let cli = Cli::parse();
    // hf-hub logs its retries as errors; this program reports them in its own words.
    let wanted = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_else(|_| "hf_hub::retry=off".to_owned());
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::WARN.into()).parse_lossy(wanted);
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time().init();
    if let Some(args) = cli.command.device() {
        args.threads.into_iter().for_each(device::use_threads);
    }
    cli.command.run().unwrap_or_else(|error| {
        if !error.is_closed_pipe() {
            output::failure(&error);
        }
        error.exit_code()
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_manual_page_names_every_command() {
        let page = include_str!("../../../src-tauri/linux/foretoken-cli.1");
        let described: Vec<_> = page.lines().filter_map(|line| line.strip_prefix(".It Cm ")).collect();
        let commands = Cli::command();
        let commands: Vec<_> = commands.get_subcommands().map(clap::Command::get_name).collect();
        assert_eq!(described, commands);
    }
}
