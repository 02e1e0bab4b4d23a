//! Starts the window.
#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

use std::process::ExitCode;

use foretoken_engine::inspection::serve_untrusted_input;
use foretoken_model::child::Bounded;

/// Limits this program's memory as a child process for untrusted input, and only then.
#[global_allocator]
static MEMORY: Bounded = Bounded;

fn main() -> ExitCode {
    if serve_untrusted_input(&[foretoken_senses::picture::TASK, foretoken_documents::TASK]) {
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
