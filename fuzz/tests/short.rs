//! A short run of every target, and all inputs that ever failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use foretoken_fuzz::run::{Folders, execute, files, run};
use foretoken_fuzz::targets::{ALL, Target, target};

/// Executions of each target.
const EXECUTIONS: u32 = 2_000;

/// Runs `target` in a process of its own, as `make fuzz` does.
fn run_short(target: &str) {
    let keep = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fuzz"));
    command.args(["--target", target, "--runs", &EXECUTIONS.to_string(), "--keep"]).arg(keep.path());
    let output = command.output().unwrap();
    let output_text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(
        output.status.success() && output_text.contains(&format!("{target}: {EXECUTIONS} executions")),
        "{output_text}"
    );
}

macro_rules! targets {
    ($($name:ident),*) => {
        mod a_damaged_input_is_used_or_refused_in_a_sentence_by {
            $(#[test]
            fn $name() {
                super::run_short(stringify!($name));
            })*
        }

        const SHORT: &[&str] = &[$(stringify!($name)),*];
    };
}

targets! {
    hub, trace, template, server, remote, config, added_tokens, generation, index, safetensors, gguf, tokenizer, formats, vocabulary, ipc, import, office, contexts, calls, gbnf, mcp, picture, mmproj
}

#[test]
fn every_target_has_a_short_run_and_seeds() {
    assert_eq!(ALL.map(|(name, ..)| name), SHORT);
    for (name, _, make) in ALL.iter().filter(|(name, ..)| *name != "ipc") {
        let mut target = make();
        assert!(!target.seeds.is_empty(), "{name} has none");
        let panic_message = Mutex::default();
        for seed in target.seeds.clone() {
            execute(&mut target, &seed, &panic_message).unwrap();
        }
    }
}

/// A list whose elements are compared with each other takes time with the square of its length,
/// here several times, so that the fastest computers are too slow for it as well.
#[test]
fn a_quadratic_step_is_detected() {
    const TIMES: usize = 4;
    let compare = |input: &[u8]| {
        let mut known: Vec<&[u8]> = Vec::new();
        for element in input.split(|byte| *byte == b',') {
            if (0..TIMES).all(|_| !black_box(&known).contains(&element)) {
                known.push(element);
            }
        }
        None
    };
    let mut target =
        Target { seeds: vec![b"[1,2,3]".to_vec()], run: Box::new(compare), ..target("generation").unwrap() };
    let keep = tempfile::tempdir().unwrap();
    let report = run(&mut target, 800, 1, &Folders { found: None, failures: keep.path() });
    assert!(report.failures.iter().any(|failure| failure.contains(" ms for ")), "{report:?}");
}

/// Inputs in `failures/TARGET/` failed once.
#[test]
fn inputs_that_failed_once_do_not_fail_again() {
    let failures = Path::new(env!("CARGO_MANIFEST_DIR")).join("failures");
    for (name, ..) in ALL {
        let inputs = files(&failures.join(name));
        let mut target = target(name).unwrap();
        for input in inputs {
            execute(&mut target, &input, &Mutex::default()).unwrap();
        }
    }
}
