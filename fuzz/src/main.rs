//! `make fuzz`: runs every target in a process of its own, so that a killed one affects no other.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::print_stderr)]

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use clap::Parser;
use foretoken_fuzz::run::{Folders, run};
use foretoken_fuzz::targets::{ALL, target};

#[derive(Parser)]
struct Arguments {
    /// Executions over all targets.
    #[arg(long, default_value_t = 100_000)]
    runs: u64,
    /// Only this target.
    #[arg(long)]
    target: Option<String>,
    /// Seed of the mutations.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for inputs with new coverage, and for failing ones.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Runs in this process.
    #[arg(long, hide = true)]
    here: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let passed = match &arguments.target {
        Some(name) if arguments.here => run_here(name, &arguments),
        Some(name) => run_apart(name, arguments.runs, &arguments),
        None => run_all(&arguments),
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs as many targets at a time as there are processors.
fn run_all(arguments: &Arguments) -> bool {
    let begin = Instant::now();
    let all: u64 = ALL.iter().map(|(_, part, _)| part).sum();
    let parts = ALL.map(|(name, part, _)| (name, arguments.runs * part / all));
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let lane = || {
        while let Some((name, runs)) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            if !run_apart(name, *runs, arguments) {
                failed.store(true, Ordering::Relaxed);
            }
        }
    };
    let lanes = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| (0..lanes).for_each(|_| drop(scope.spawn(lane))));
    let passed = !failed.into_inner();
    let executions: u64 = parts.iter().map(|(_, runs)| runs).sum();
    let end = if passed { "without a failure" } else { "with failures, see above" };
    println!("{executions} executions in {} s, {end}", begin.elapsed().as_secs());
    passed
}

/// Runs a target in a process of its own, without the user's data: no home folder, hub or models.
fn run_apart(name: &str, runs: u64, arguments: &Arguments) -> bool {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--here",
        "--target",
        name,
        "--runs",
        &runs.to_string(),
        "--seed",
        &arguments.seed.to_string(),
    ]);
    if let Some(keep) = &arguments.keep {
        command.arg("--keep").arg(keep);
    }
    for variable in
        ["HOME", "HF_HOME", "FORETOKEN_DATA_DIR", "FORETOKEN_STARTER_DIR", "FORETOKEN_SMOLLM2_DIR"]
    {
        command.env(variable, home.path());
    }
    command.env("HF_ENDPOINT", "nowhere").env_remove("HF_HUB_CACHE").env_remove("XDG_CONFIG_HOME");
    let status = command.status().unwrap();
    if !status.success() {
        println!(
            "{name}: failed ({status}); if the process was killed, {name}.present is the input that caused it"
        );
    }
    status.success()
}

fn run_here(name: &str, arguments: &Arguments) -> bool {
    let Some(mut target) = target(name) else {
        let names = ALL.map(|(name, ..)| name).join(", ");
        println!("Unknown target '{name}'. Choose one of {names}.");
        return false;
    };
    let begin = Instant::now();
    let keep = arguments.keep.clone().unwrap_or_else(std::env::temp_dir);
    let found = arguments.keep.as_deref().map(|keep| keep.join(name));
    let folders = Folders { found: found.as_deref(), failures: Path::new(&keep) };
    let report = run(&mut target, arguments.runs, arguments.seed, &folders);
    println!(
        "{name}: {} executions in {} s, {} refused, {} inputs kept, {} of {} edges, {} failures",
        report.executions,
        begin.elapsed().as_secs(),
        report.refused,
        report.kept,
        report.taken,
        report.edges,
        report.failures.len(),
    );
    report.failures.is_empty()
}
