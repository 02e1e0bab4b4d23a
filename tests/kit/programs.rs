//! Programs that tests start, and their output: those that this test was built beside, or the ones
//! named by variables.

use std::env::consts::EXE_SUFFIX;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// The application that FORETOKEN_APPLICATION names, else the one beside this test.
pub fn application() -> PathBuf {
    if let Some(path) = std::env::var_os("FORETOKEN_APPLICATION") {
        return path.into();
    }
    let test = std::env::current_exe().unwrap();
    let binary = test.ancestors().nth(2).unwrap().join(format!("foretoken{EXE_SUFFIX}"));
    assert!(binary.exists(), "{} is missing: build it with `cargo build --workspace`", binary.display());
    binary
}

/// The terminal program, which is beside the application.
pub fn cli() -> PathBuf {
    application().with_file_name(format!("foretoken-cli{EXE_SUFFIX}"))
}

/// The server of tools for tests, an example of `crates/tools`.
pub fn mcp_server() -> PathBuf {
    let name = format!("examples/mcp_server{EXE_SUFFIX}");
    let test = std::env::current_exe().unwrap();
    let server = test.ancestors().nth(2).unwrap().join(name);
    assert!(server.exists(), "{} is missing: build it with `cargo test --workspace`", server.display());
    server
}

/// Output of a program.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// The program at `path` with an empty data folder below `folder`, without SmolLM2, colours and
/// llama.cpp, and, since tests run in parallel, on one thread.
pub fn alone(path: &str, folder: &str) -> Command {
    let mut command = Command::new(path);
    // A folder per run, since statistics are saved in it.
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let own = format!("no-data-{}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
    let nowhere = Path::new(folder).join(own);
    command.env("FORETOKEN_DATA_DIR", &nowhere).env("HF_HUB_CACHE", &nowhere);
    command.env("FORETOKEN_PROGRAMS_HOME", &nowhere);
    command.env_remove("CLICOLOR_FORCE").env("NO_COLOR", "1").env_remove("RUST_LOG");
    command.env("FORETOKEN_SMOLLM2_DIR", &nowhere).env_remove("LLAMA_CPP_BIN");
    command.env("CANDLE_NUM_THREADS", "1").env("RAYON_NUM_THREADS", "1");
    // These tests do not depend on whether this computer's GPU is faster.
    command.env("WGPU_BACKEND", "noop");
    command
}

/// Feeds `input` to a program's standard input and waits for its end.
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
