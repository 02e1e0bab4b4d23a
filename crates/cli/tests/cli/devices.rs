//! What computes: by name, and the CPU in the place of what cannot be had.

use crate::program::{STORY, run};

fn generate<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let always = [
        "generate",
        "--target",
        "starter",
        "--draft",
        "starter-draft",
        "--prompt",
        STORY,
        "--max-tokens",
        "8",
    ];
    [&always, more].concat()
}

/// The sentences on standard error that say why something else computes.
fn remarks(err: &str) -> Vec<&str> {
    err.lines().filter(|line| line.ends_with("Using the CPU instead.")).collect()
}

#[test]
fn a_device_that_cannot_be_had_is_said_once_and_the_cpu_writes_the_same_text() {
    let plain = run(&generate(&["--device", "cpu"]));
    assert_eq!((plain.code, remarks(&plain.err)), (0, vec![]), "{}", plain.err);
    for (device, word) in [("cuda", "CUDA"), ("metal", "Metal")] {
        if cfg!(feature = "cuda") || cfg!(feature = "metal") {
            continue;
        }
        let instead = run(&generate(&["--device", device]));
        assert_eq!((instead.code, &instead.out), (0, &plain.out), "{}", instead.err);
        let remarks = remarks(&instead.err);
        assert!(remarks.len() == 1, "{}", instead.err);
        assert!(remarks[0].contains(word) || remarks[0].contains("NVIDIA"), "{}", remarks[0]);
    }
}

#[test]
fn a_draft_may_have_a_device_of_its_own() {
    if cfg!(any(feature = "cuda", feature = "metal")) {
        return;
    }
    let run = run(&generate(&["--device", "cpu", "--draft-device", "metal"]));
    assert_eq!((run.code, remarks(&run.err).len()), (0, 1), "{}", run.err);
}

#[test]
fn a_device_that_does_not_exist_is_wrong_usage() {
    for option in ["--device", "--draft-device"] {
        let run = run(&generate(&[option, "abacus"]));
        assert_eq!((run.code, run.out.as_str()), (2, ""));
        assert!(run.err.contains("expected auto, cpu, gpu"), "{}", run.err);
    }
}
