//! Choice of the device by name, and the fallback to the CPU.

use crate::program::{Run, STORY, finished, program, run};

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

/// Sentences on standard error that explain the fallback.
fn remarks(err: &str) -> Vec<&str> {
    err.lines().filter(|line| line.ends_with("Using the CPU instead.")).collect()
}

#[test]
fn an_unavailable_device_is_reported_once_and_the_cpu_writes_the_same_text() {
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
fn a_draft_can_have_its_own_device() {
    if cfg!(any(feature = "cuda", feature = "metal")) {
        return;
    }
    let run = run(&generate(&["--device", "cpu", "--draft-device", "metal"]));
    assert_eq!((run.code, remarks(&run.err).len()), (0, 1), "{}", run.err);
}

#[test]
fn with_keys_and_values_in_8_bits_drafts_change_nothing_and_logits_are_rounded() {
    let int8 = ["--device", "cpu", "--kv-cache-dtype", "int8"];
    let drafted = run(&[&generate(&int8)[..], &["--draft-length", "4"]].concat());
    let plain = run(&[&generate(&int8)[..], &["--draft-length", "0"]].concat());
    assert_eq!((drafted.code, &drafted.out), (0, &plain.out), "{}", drafted.err);
    let logits = ["logits", "--target", "starter", "--tokens", "5,6,7,8,9", "--json"];
    let [f16, rounded] = [&[][..], &int8].map(|more| run(&[&logits[..], more].concat()));
    assert_eq!((f16.code, rounded.code), (0, 0), "{}", rounded.err);
    assert_ne!(f16.out, rounded.out);
}

#[test]
fn a_device_that_does_not_exist_is_wrong_usage() {
    for option in ["--device", "--draft-device"] {
        let run = run(&generate(&[option, "abacus"]));
        assert_eq!((run.code, run.out.as_str()), (2, ""));
        assert!(run.err.contains("expected auto, cpu, gpu"), "{}", run.err);
    }
}

/// Runs on the software renderer, if there is one.
fn on_the_gpu(more: &[&str], environment: &[(&str, &str)]) -> Run {
    let mut command = program(&generate(more));
    command.env_remove("WGPU_BACKEND").envs(environment.iter().copied());
    finished(command, "")
}

#[test]
fn devices_are_listed_by_option_value_and_with_their_rounding() {
    let mut command = program(&["devices", "--json"]);
    command.env_remove("WGPU_BACKEND").envs([SOFTWARE]);
    let lines = finished(command, "").json();
    let of = |name: &str| lines.iter().find(|line| line["name"] == name).unwrap();
    assert_eq!((&of("auto")["usable"], &of("cpu")["usable"]), (&true.into(), &true.into()));
    let gpu = of("gpu:1");
    assert_eq!(gpu["usable"], true, "{gpu}");
    let label = gpu["label"].as_str().unwrap();
    assert!(label.contains("bit-identical to the CPU") || label.contains("rounds in its own way"), "{label}");
    assert!(
        lines.iter().any(|line| line["usable"] == false && line["name"] == "metal")
            || cfg!(target_os = "macos")
    );
}

/// A software renderer is always slower than the CPU it runs on.
#[test]
fn the_automatic_device_choice_prints_its_measurement() {
    let mut command = program(&["chat", "--target", "starter", "--draft", "none"]);
    command.env_remove("WGPU_BACKEND").envs([SOFTWARE]);
    let found = finished(command, "/quit\n");
    assert_eq!(found.code, 0, "{}", found.err);
    assert!(found.err.contains("The GPU (") && found.err.contains(" ms a token, the CPU "), "{}", found.err);
    if found.err.contains("software)") {
        assert!(found.err.contains(": using the CPU."), "{}", found.err);
    }
}

const SOFTWARE: (&str, &str) = ("FORETOKEN_SOFTWARE_GPU", "1");

#[test]
fn the_gpu_writes_the_cpus_text_also_with_a_draft() {
    let expected = run(&generate(&["--device", "cpu"]));
    for more in [&["--device", "gpu"][..], &["--device", "cpu", "--draft-device", "gpu"]] {
        let found = on_the_gpu(more, &[SOFTWARE]);
        assert_eq!((found.code, &found.out), (0, &expected.out), "{}", found.err);
        assert!(remarks(&found.err).is_empty(), "{}", found.err);
    }
}

#[test]
fn a_missing_gpu_is_reported_and_the_cpu_writes_the_same_text() {
    let expected = run(&generate(&["--device", "cpu"]));
    for (device, environment, words) in [
        ("gpu:99", &[SOFTWARE][..], "There is no GPU number 99. This computer has 1: "),
        (
            "gpu",
            &[SOFTWARE, ("WGPU_BACKEND", "abacus")],
            "WGPU_BACKEND is 'abacus', by which no GPU was found",
        ),
    ] {
        let found = on_the_gpu(&["--device", device], environment);
        assert_eq!((found.code, &found.out), (0, &expected.out), "{}", found.err);
        assert!(remarks(&found.err).iter().any(|remark| remark.contains(words)), "{}", found.err);
    }
}
