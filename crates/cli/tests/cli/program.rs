//! Runs `foretoken-cli` and returns its output. Only asserts that it ends.

use std::process::Command;

pub use foretoken_tests::{Run, finished};
use serde_json::Value;

/// The embedded pair as options.
pub const PAIR: [&str; 4] = ["--target", "starter", "--draft", "starter-draft"];

pub const STORY: &str = "Tell me a story about a fox";

pub fn program(arguments: &[&str]) -> Command {
    let mut command =
        foretoken_tests::alone(env!("CARGO_BIN_EXE_foretoken-cli"), env!("CARGO_TARGET_TMPDIR"));
    command.args(arguments);
    command
}

pub fn run(arguments: &[&str]) -> Run {
    finished(program(arguments), "")
}

/// Runs with `--json` and returns the lines.
#[track_caller]
pub fn json(arguments: &[&str]) -> Vec<Value> {
    run(&[arguments, &["--json"]].concat()).json()
}
