//! Starts the window.
#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

use std::process::ExitCode;

use foretoken_model::template::{Bounded, serve_if_asked};

/// Limits this program's memory while it renders chat templates, and only then.
#[global_allocator]
static MEMORY: Bounded = Bounded;

fn main() -> ExitCode {
    if serve_if_asked() {
        return ExitCode::SUCCESS;
    }
    match foretoken::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[allow(clippy::print_stderr, reason = "there is no window to say it in")]
            {
                eprintln!("Foretoken cannot start: {error}");
            }
            ExitCode::FAILURE
        }
    }
}
