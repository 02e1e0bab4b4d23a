//! `foretoken-cli`: Foretoken's engine without a window, for servers, scripts, benchmarks and
//! tests. The program is a thin `main`; `foretoken-bench` uses the parts that measure.
//!
//! A map:
//! - [`commands`]: the commands, one per file
//! - [`args`]: options that several commands share
//! - [`session`]: opens the models that a command names; `ready`: loads the pair for conversations
//! - [`random`]: models with random weights, for measurements
//! - [`output`], `colour`: writes results and messages, coloured on a terminal
//! - `kept_chat`: the conversation that `chat --resume` continues
//! - `chat_tools`: tools of MCP servers in `chat`
//! - `server_contents`: prompts and resources of MCP servers in `chat`
//! - `files`, `pictures`: files that questions name
//! - `interrupt`, [`error`]: Ctrl-C and errors

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod args;
mod chat_tools;
mod colour;
pub mod commands;
pub mod error;
mod files;
mod interrupt;
mod kept_chat;
pub mod output;
mod pictures;
pub mod random;
mod ready;
mod server_contents;
pub mod session;

use std::process::ExitCode;

use foretoken_forward::device;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use self::args::DeviceArgs;
use self::error::Result;

/// Starts the log, sets the threads of the device options, runs a command and prints its error.
pub fn run(options: Option<&DeviceArgs>, command: impl FnOnce() -> Result<ExitCode>) -> ExitCode {
    // hf-hub logs its retries as errors; this program reports them in its own words.
    let wanted =
        std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_else(|_| "warn,hf_hub::retry=off".to_owned());
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::WARN.into()).parse_lossy(wanted);
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time().init();
    if let Some(args) = options {
        args.threads.into_iter().for_each(device::use_threads);
    }
    command().unwrap_or_else(|error| {
        if !error.is_closed_pipe() {
            output::failure(&error);
        }
        error.exit_code()
    })
}
