//! `foretoken-cli`: reads the arguments and returns the exit code; the library has the commands.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::process::ExitCode;

use clap::Parser;
use foretoken_cli::commands::Command;
use foretoken_engine::inspection::serve_untrusted_input;
use foretoken_model::child::Bounded;

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
    if serve_untrusted_input(&[foretoken_senses::picture::TASK, foretoken_documents::TASK]) {
        return ExitCode::SUCCESS;
    }
    let Cli { command } = Cli::parse();
    foretoken_cli::run(command.device(), || command.run())
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
