//! The built `foretoken-bench`, on small models.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use foretoken_tests::{Run, alone, finished, repository};
use serde_json::Value;
#[cfg(unix)]
use serde_json::json as value;
use tempfile::TempDir;

fn program(arguments: &[String]) -> Command {
    let mut command = alone(env!("CARGO_BIN_EXE_foretoken-bench"), env!("CARGO_TARGET_TMPDIR"));
    command.args(arguments);
    command
}

fn run(arguments: &[String]) -> Run {
    finished(program(arguments), "")
}

/// A short benchmark of a small model with random weights, generated in `folder`.
fn random(folder: &TempDir, more: &[&str]) -> Vec<String> {
    let files = folder.path().join("models").display().to_string();
    let ask = ["random", "--tokens", "8", "--repeats", "1", "--threads", "1", "--folder", &files];
    ask.iter().chain(more).map(ToString::to_string).collect()
}

#[test]
fn kernels_are_timed_on_a_gpu_alone() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().display().to_string();
    let ask = ["gpu-kernels", "tiny:Q4_K_M", "--rows", "1,3", "--positions", "40", "--folder", &files];
    let on = |device: &str| {
        ask.iter().chain(&["--device", device, "--json"]).map(ToString::to_string).collect::<Vec<_>>()
    };
    let refused = run(&on("cpu"));
    assert!(refused.err.contains("expected a GPU, found CPU"), "{}", refused.err);
    let mut on_gpu = program(&on("gpu"));
    on_gpu.env("FORETOKEN_SOFTWARE_GPU", "1").env_remove("WGPU_BACKEND");
    let reports = finished(on_gpu, "").json();
    let rows: Vec<_> = reports.iter().map(|report| report["rows"].as_u64().unwrap()).collect();
    assert_eq!(rows, [1, 3]);
    for report in &reports {
        let kernels = report["kernels"].as_array().unwrap();
        let of = |kernel: &str| {
            kernels.iter().find(|found| found["kernel"].as_str().unwrap().starts_with(kernel)).unwrap()
        };
        assert_eq!(of("Attend")["dispatches"], 6, "{report}");
        assert!(of("Norm")["micros"].as_f64().unwrap() > 0.0, "{report}");
        assert!(report["ms"].as_f64().unwrap() > 0.0 && report["kernels_ms"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn loading_is_timed_and_its_memory_measured() {
    let file = repository().join("starter/starter-target-Q8_0.gguf");
    let ask = ["loading", file.to_str().unwrap(), "--repeats", "2"].map(str::to_owned);
    let report = run(&[&ask[..], &["--json".to_owned()]].concat()).json().pop().unwrap();
    let bytes = std::fs::metadata(&file).unwrap().len();
    assert_eq!((&report["type"], &report["bytes"]), (&"bench_loading".into(), &bytes.into()));
    let [fastest, seconds, slowest] =
        ["fastest", "seconds", "slowest"].map(|name| report[name].as_f64().unwrap());
    assert!(0.0 < fastest && fastest <= seconds && seconds <= slowest, "{report}");
    if cfg!(target_os = "linux") {
        assert!(report["peak_over_file_bytes"].as_i64().unwrap() > 0, "{report}");
    }
    assert!(run(&ask).out.contains(" GB/s, peak "));
}

#[test]
fn sampling_is_timed_for_every_setting() {
    let ask = "sampling --vocabulary 100,2000 --temperature 1,2 --top-p 1 --rounds 3 --json";
    let reports = run(&ask.split(' ').map(ToString::to_string).collect::<Vec<_>>()).json();
    assert_eq!(reports.len(), 12);
    for report in &reports {
        assert!(
            report["row"].as_f64().unwrap() > 0.0 && report["verify"].as_f64().unwrap() > 0.0,
            "{report}"
        );
        assert!(report["accepted"].as_f64().unwrap() <= 4.0, "{report}");
    }
}

#[test]
fn documents_are_indexed_and_questions_find_their_place() {
    let ask = "documents --pages 2,40 --questions 20 --json";
    let reports = run(&ask.split(' ').map(ToString::to_string).collect::<Vec<_>>()).json();
    assert_eq!(reports.len(), 2);
    for report in &reports {
        let [indexing, search, longest, right] =
            ["indexing", "search", "longest", "right"].map(|name| report[name].as_f64().unwrap());
        assert!(indexing > 0.0 && 0.0 < search && search <= longest, "{report}");
        assert!(right > 0.9, "{report}");
    }
}

#[test]
fn a_bench_with_random_weights_generates_its_models_and_measures_everything() {
    let folder = tempfile::tempdir().unwrap();
    let ask = random(&folder, &["tiny:Q4_K_M,tiny:Q8_0", "--verify-cost", "--json"]);
    let reports = run(&ask).json();
    let [first, second] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!((&first["model"], &second["model"]), (&"tiny:Q4_K_M".into(), &"tiny:Q8_0".into()));
    for report in &reports {
        let number = |value: &Value| value.as_f64().filter(|number| *number > 0.0).unwrap();
        assert_eq!(report["type"], "bench_random");
        assert_eq!((&report["tokens"], &report["repeats"]), (&8.into(), &1.into()));
        assert!(report["device"].as_str().unwrap().starts_with("CPU"));
        for file in ["target", "draft"] {
            assert!(std::fs::exists(report[file].as_str().unwrap()).unwrap());
        }
        let plain = number(&report["plain"]["tokens_per_second"]);
        number(&report["prompt_tokens_per_second"]);
        let lengths = report["speculative"].as_array().unwrap();
        assert_eq!(lengths.len(), 6);
        for (length, drafted) in (2..).zip(lengths) {
            assert_eq!(drafted["draft_length"], length);
            let speedup = number(&drafted["tokens_per_second"]) / plain;
            assert!((number(&drafted["speedup"]) - speedup).abs() < 1e-9);
            let [judged, drafted, tokens] = ["acceptance_rate", "accepted_of_drafted", "tokens_per_round"]
                .map(|figure| number(&drafted[figure]));
            assert!(drafted <= judged && judged <= 1.0 && (1.0..=f64::from(length) + 1.0).contains(&tokens));
        }
        let rows = report["verify_cost"].as_array().unwrap();
        assert_eq!((rows.len(), &rows[0]["ratio"]), (17, &1.0.into()));
        number(&report["draft_ms"]);
        let (bytes, bandwidth) =
            (number(&report["weight_bytes_per_token"]), number(&report["read_bandwidth_gb_s"]));
        assert!((0.5..5000.0).contains(&bandwidth));
        // A model that fits into a cache reads as fast as it computes, which is slower than only
        // reading.
        assert!((0.001..1.5).contains(&number(&report["bandwidth_share"])));
        let file = number(&report["file_bytes"]);
        assert_eq!(file as u64, std::fs::metadata(report["target"].as_str().unwrap()).unwrap().len());
        assert!(bytes < file, "the embedding is not read");
        if cfg!(target_os = "linux") {
            let whole = file + number(&report["cache_bytes"]);
            assert!(
                (number(&report["resident_ratio"]) - number(&report["resident_bytes"]) / whole).abs() < 1e-9
            );
        }
        assert_eq!(report["llama_cpp"], Value::Null);
    }
}

/// Runs `ask` with llama.cpp's programs in `folder`.
fn beside_llama_cpp(ask: &[String], folder: &str) -> Run {
    let mut command = program(ask);
    command.env("LLAMA_CPP_BIN", folder);
    finished(command, "")
}

/// The path of `folder` with fake llama.cpp programs, which append their arguments to its file
/// `asked`.
#[cfg(unix)]
fn fake_llama_cpp(folder: &TempDir) -> String {
    use std::os::unix::fs::PermissionsExt;

    // Passes over n rows take n milliseconds; 1000 tokens/s in a prompt, 100 plain.
    const BENCH: &str = r#"#!/bin/sh
echo "$*" >> "$(dirname "$0")/asked"
test_of() { echo "{\"n_prompt\": $1, \"n_gen\": $2, \"samples_ns\": [$3, $3, 1]}"; }
case "$*" in
*"-n 0"*) echo "[$(test_of 1 0 1000000), $(test_of 8 0 8000000)]" ;;
*) echo "[$(test_of 512 0 512000000), $(test_of 0 8 80000000)]" | sed 's/, 1\]/]/g' ;;
esac
"#;
    // 10 tokens/s per token of the draft, and 1 more if drafts may end early.
    const SPECULATIVE: &str = r#"#!/bin/sh
echo "$*" >> "$(dirname "$0")/asked"
length=$(echo "$*" | tr '\n' ' ' | sed 's/.*n-max \([0-9]*\).*/\1/')
case "$*" in *"p-min 0.75"*) more=1 ;; *) more=0 ;; esac
echo "decoded   9 tokens in 1.0 seconds, speed:  ${length}${more}.000 t/s" >&2
echo "accept    = 79.000%" >&2
"#;
    for (name, script) in [("llama-bench", BENCH), ("llama-speculative-simple", SPECULATIVE)] {
        let path = folder.path().join(name);
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::write(folder.path().join("asked"), "").unwrap();
    folder.path().display().to_string()
}

#[cfg(unix)]
#[test]
fn llama_cpps_programs_run_on_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let programs = fake_llama_cpp(&folder);
    let ask = random(&folder, &["tiny:Q8_0", "--verify-cost", "--json"]);
    let report = beside_llama_cpp(&ask, &programs).json().pop().unwrap();
    let theirs = &report["llama_cpp"];
    assert_eq!((&theirs["folder"], &theirs["failures"]), (&programs.as_str().into(), &value!([])));
    assert_eq!(theirs["prompt_tokens_per_second"], 1000.0);
    assert_eq!(theirs["plain_tokens_per_second"], 100.0);
    let rows = value!([{"rows": 1, "ms": 1.0, "ratio": 1.0}, {"rows": 8, "ms": 8.0, "ratio": 8.0}]);
    assert_eq!(theirs["verify_cost"], rows);
    let settings = theirs["speculative"].as_array().unwrap();
    assert_eq!(settings.len(), 12);
    let last = value!({"draft_length": 7, "least_probability": 0.75, "tokens_per_second": 71.0,
        "accepted_of_drafted": 0.79});
    assert_eq!(settings[11], last);
    let speed = |value: &Value| value["tokens_per_second"].as_f64().unwrap();
    let ratio = |name: &str| theirs["ratios"][name].as_f64().unwrap();
    assert!((ratio("plain") - speed(&report["plain"]) / 100.0).abs() < 1e-9);
    let best = report["speculative"].as_array().unwrap().iter().map(speed).fold(0.0, f64::max);
    assert!((ratio("speculative") - best / 71.0).abs() < 1e-9);
    assert!((ratio("prompt") - report["prompt_tokens_per_second"].as_f64().unwrap() / 1000.0).abs() < 1e-9);
    let asked = std::fs::read_to_string(format!("{programs}/asked")).unwrap();
    for part in ["-t 1 ", "-p 512 -n 8 -r 1", "-p 1,2,4,8,16 -n 0 -d 256", "--ignore-eos", "-draft.gguf"] {
        assert!(asked.contains(part), "'{part}' is not in: {asked}");
    }
    let table = beside_llama_cpp(&ask[..ask.len() - 1], &programs).out;
    assert!(table.contains("llama.cpp  ratio") && table.contains("llama.cpp ms"), "{table}");
}

#[cfg(unix)]
#[test]
fn models_of_a_folder_are_measured_beside_llama_cpp() {
    let folder = tempfile::tempdir().unwrap();
    let programs = fake_llama_cpp(&folder);
    let models = tempfile::tempdir().unwrap();
    for file in ["starter-target-Q8_0.gguf", "starter-draft-Q8_0.gguf"] {
        std::os::unix::fs::symlink(repository().join("starter").join(file), models.path().join(file))
            .unwrap();
    }
    let ask = ["models", models.path().to_str().unwrap(), "--workload", "chat", "--json"];
    let ask = [&ask[..], &["--tokens", "8", "--repeats", "1", "--threads", "1"]].concat();
    let ask: Vec<String> = ask.iter().map(ToString::to_string).collect();
    let theirs = |report: &Value| -> Vec<f64> {
        let speeds = report["llama_cpp"].as_array().unwrap().iter();
        speeds.map(|theirs| theirs["tokens_per_second"].as_f64().unwrap()).collect()
    };
    let reports = beside_llama_cpp(&ask, &programs).json();
    let [small, large] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!((theirs(small), theirs(large)), (vec![100.0], vec![100.0, 20.0, 40.0, 80.0]));
}

#[test]
fn a_missing_llama_cpp_program_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().display().to_string();
    let nothing = format!("{empty}/nothing");
    std::fs::write(&nothing, "").unwrap();
    let ask = random(&folder, &["tiny:Q8_0", "--json"]);
    let run = beside_llama_cpp(&ask, &empty);
    let report = run.json().pop().unwrap();
    let failures = report["llama_cpp"]["failures"].as_array().unwrap();
    for (failure, name) in failures.iter().zip(["llama-bench", "llama-speculative-simple"]) {
        let sentence = failure.as_str().unwrap();
        assert!(sentence.starts_with(name) && sentence.contains("cannot be run"), "{sentence}");
        assert_eq!(run.err.matches(sentence).count(), 1, "{}", run.err);
    }
    assert_eq!((failures.len(), &report["llama_cpp"]["ratios"]["plain"]), (2, &Value::Null));
    assert!(report["plain"]["tokens_per_second"].as_f64().unwrap() > 0.0);
    assert_eq!(report.get("verify_cost"), None);
    let file = beside_llama_cpp(&ask, &nothing);
    assert_eq!((file.code, file.out.as_str()), (2, ""));
    assert!(file.err.contains("LLAMA_CPP_BIN: expected a folder"), "{}", file.err);
}

#[test]
fn unknown_shapes_and_formats_and_folders_that_cannot_be_written_are_rejected() {
    for model in ["7B:Q8_0", "0.5B", "0.5B:Q5_K_M", ":"] {
        let refused = run(&["random".to_owned(), model.to_owned()]);
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{}", refused.err);
        for known in ["tiny, 0.5B, 1.1B, 8B", "Q4_K_M, Q8_0, F16"] {
            assert!(refused.err.contains(known), "{}", refused.err);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let below_a_file = file.join("models").display().to_string();
    let refused = run(&["random", "tiny:Q8_0", "--folder", &below_a_file].map(str::to_owned));
    assert_eq!((refused.code, refused.out.as_str()), (1, ""), "{}", refused.err);
    assert!(refused.err.contains("models cannot be written"), "{}", refused.err);
}

/// Arguments of `replay` over all recorded sets.
fn replay(more: &[&str]) -> Vec<String> {
    let folder = repository().join("tests/replays");
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut sets: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "gz")).collect();
    sets.sort();
    let sets = sets.iter().map(|path| path.display().to_string());
    let costs = folder.join("costs.json").display().to_string();
    let options = ["--costs".to_owned(), costs].into_iter().chain(more.iter().map(ToString::to_string));
    std::iter::once("replay".to_owned()).chain(sets).chain(options).collect()
}

#[test]
fn a_policy_loses_on_no_recorded_set() {
    let folder = tempfile::tempdir().unwrap();
    let before = repository().join("tests/replays/speedups.json");
    let reports = run(&replay(&["--json", "--against", before.to_str().unwrap()])).json();
    assert!(reports.len() >= 10, "{reports:?}");
    for report in &reports {
        assert!(report["speedup"].as_f64().unwrap() > 0.99, "slower than plain decoding: {report}");
        assert!(report["tokens_per_round"].as_f64().unwrap() >= 1.0, "{report}");
    }
    let better = std::fs::read_to_string(&before).unwrap();
    let mut better: serde_json::Map<String, Value> = serde_json::from_str(&better).unwrap();
    assert_eq!(better.len(), reports.len());
    let (key, speedup) = better.iter_mut().next().unwrap();
    *speedup = (speedup.as_f64().unwrap() * 1.03).into();
    let key = key.clone();
    let file = folder.path().join("better.json");
    std::fs::write(&file, serde_json::to_string(&better).unwrap()).unwrap();
    let lost = run(&replay(&["--against", file.to_str().unwrap()]));
    assert!(lost.err.contains(&format!("{key} lost")), "{}", lost.err);
}

#[test]
fn drafting_costs_at_most_two_percent_even_in_the_first_text_of_an_unknown_computer() {
    let reports = run(&replay(&["--json", "--cold", "--policy", "auto,model"])).json();
    assert!(reports.iter().any(|report| report["computer"] == "scalar"), "{reports:?}");
    for report in &reports {
        assert!(report["speedup"].as_f64().unwrap() > 0.98, "{report}");
        assert!(report["first_rounds"].as_f64().unwrap() > 0.96, "{report}");
        let ratio = report["over_first"]["ratio"].as_f64();
        assert_eq!(ratio.is_some(), report["policy"] == "model", "{report}");
        let [low, high] = ["low", "high"].map(|end| report["over_first"][end].as_f64());
        assert!(ratio.is_none_or(|ratio| low.unwrap() <= ratio && ratio <= high.unwrap()), "{report}");
    }
    let printed = run(&replay(&["--calibration"])).out;
    assert!(printed.contains(" expected, ") && printed.contains(" accepted\n"), "{printed}");
}

#[test]
fn a_set_that_is_no_recording_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("smollm2-head-x.jsonl.gz");
    let costs = repository().join("tests/replays/costs.json").display().to_string();
    let refused = |policy: &str| {
        let path = path.display().to_string();
        run(&["replay", &path, "--costs", &costs, "--policy", policy].map(str::to_owned)).err
    };
    std::fs::write(&path, "no gzip").unwrap();
    assert!(refused("auto").contains("cannot be read"), "{}", refused("auto"));
    assert!(refused("17").contains("cannot be read"));
}
