//! Runs `foretoken-cli` and returns its output. Only asserts that it ends.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// The embedded pair as options.
pub const PAIR: [&str; 4] = ["--target", "starter", "--draft", "starter-draft"];

pub const STORY: &str = "Tell me a story about a fox";

/// Output of a run.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// The program with an empty data folder, without SmolLM2, colours and llama.cpp, and, since tests
/// run in parallel, on one thread.
pub fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foretoken-cli"));
    // A folder per run, since statistics are saved in it.
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let own = format!("no-data-{}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
    let nowhere = Path::new(env!("CARGO_TARGET_TMPDIR")).join(own);
    command.args(arguments).env("FORETOKEN_DATA_DIR", &nowhere).env("HF_HUB_CACHE", &nowhere);
    command.env_remove("CLICOLOR_FORCE").env("NO_COLOR", "1").env_remove("RUST_LOG");
    command.env("FORETOKEN_SMOLLM2_DIR", &nowhere).env_remove("LLAMA_CPP_BIN");
    command.env("CANDLE_NUM_THREADS", "1").env("RAYON_NUM_THREADS", "1");
    // These tests do not depend on whether this computer's GPU is faster.
    command.env("WGPU_BACKEND", "noop");
    command
}

pub fn run(arguments: &[&str]) -> Run {
    finished(program(arguments), "")
}

/// Feeds `input` to the program's standard input.
pub fn finished(mut command: Command, input: &str) -> Run {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program that rejects its arguments closes its input early.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: status.code().unwrap(), out: text(stdout), err: text(stderr) }
}

impl Run {
    /// The lines of the output as JSON; panics if the run failed.
    #[track_caller]
    pub fn json(&self) -> Vec<Value> {
        assert_eq!(self.code, 0, "{}", self.err);
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Runs with `--json` and returns the lines.
#[track_caller]
pub fn json(arguments: &[&str]) -> Vec<Value> {
    run(&[arguments, &["--json"]].concat()).json()
}
