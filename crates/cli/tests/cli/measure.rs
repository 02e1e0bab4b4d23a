//! `bench` and `logits`.

use candle_core::quantized::GgmlDType;
#[cfg(unix)]
use foretoken_tests::repository;
use foretoken_tests::{family, nightly_or};
use serde_json::{Value, json as value};

use crate::broken_models::Folder;
use crate::program::{PAIR, json, run};

#[test]
fn a_bench_compares_plain_with_speculative_decoding() {
    let ask = ["bench", "--tokens", "24", "--repeats", "2", "--draft-length", "4", "--drafter", "model"];
    let lines = json(&[&ask[..], &PAIR].concat());
    let [report] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(report["type"], "bench");
    let speed = |way: &str| report[way]["tokens_per_second"].as_f64().unwrap();
    let (plain, speculative) = (speed("plain"), speed("speculative"));
    assert!(plain > 0.0 && speculative > 0.0);
    let speedup = report["speedup"].as_f64().unwrap();
    assert!((speedup - speculative / plain).abs() < 1e-9);
    let rate = report["speculative"]["acceptance_rate"].as_f64().unwrap();
    let tokens = report["speculative"]["tokens_per_round"].as_f64().unwrap();
    assert!((0.3..1.0).contains(&rate) && (1.5..=5.0).contains(&tokens), "{rate} {tokens}");
    assert_eq!(report["verify_cost"], Value::Null);
    assert_eq!(report["draft_ms"], Value::Null);
}

#[test]
fn a_sweep_compares_every_draft_length_on_each_workload() {
    for &workload in nightly_or(&["chat", "code", "copy"][..], &["copy"]) {
        let ask = ["bench", "--tokens", "16", "--repeats", "1", "--sweep", "--workload", workload];
        let report = json(&[&ask[..], &PAIR].concat()).pop().unwrap();
        assert_eq!(
            (&report["workload"], &report["speculation"]["length"]["type"]),
            (&workload.into(), &"auto".into())
        );
        let lengths: Vec<_> = report["sweep"]
            .as_array()
            .unwrap()
            .iter()
            .map(|way| way["speculation"]["length"]["tokens"].as_u64().unwrap())
            .collect();
        assert_eq!(lengths, (1..=8).collect::<Vec<_>>());
        let table = run(&[&ask[..], &PAIR].concat()).out;
        assert!(table.contains("\nspeculative ") && table.contains("\nat 8 "), "{table}");
    }
}

#[test]
fn a_sweep_of_ways_has_every_shape_drafter_and_acceptance_rule() {
    let ask = ["bench", "--tokens", "16", "--repeats", "1", "--sweep=ways"];
    let report = json(&[&ask[..], &PAIR].concat()).pop().unwrap();
    let ways = report["sweep"].as_array().unwrap();
    let of = |name: &str| &ways.iter().find(|way| way["name"] == name).expect(name)["speculation"];
    assert_eq!(of("chain")["tree"]["type"], "off");
    assert_eq!(of("tree of 3")["tree"]["guesses"], 3);
    assert_eq!(of("staged")["staged"], "on");
    assert_eq!(of("threshold")["threshold"]["type"], "auto");
    assert_eq!(of("n-gram")["drafter"], "ngram");
    assert_ne!(of("5 by block")["verification"], of("5 by token")["verification"]);
    assert!(ways.iter().all(|way| way["tokens_per_second"].as_f64().unwrap() > 0.0));
}

#[test]
fn a_bench_without_a_draft_measures_only_plain_decoding() {
    let ask = ["bench", "--target", "starter-draft", "--tokens", "8", "--repeats", "1"];
    let report = json(&ask).pop().unwrap();
    assert!(report["plain"]["tokens_per_second"].as_f64().unwrap() > 0.0);
    assert_eq!((&report["speculative"], &report["speedup"]), (&Value::Null, &Value::Null));
    let table = run(&ask).out;
    assert!(table.contains("\nplain ") && !table.contains("\nspeculative"), "{table}");
}

#[test]
fn the_cost_of_a_pass_is_measured_for_every_number_of_rows() {
    let ask = ["bench", "--tokens", "4", "--repeats", "1", "--verify-cost"];
    let report = json(&[&ask[..], &PAIR].concat()).pop().unwrap();
    let costs = report["verify_cost"].as_array().unwrap();
    let rows: Vec<_> = costs.iter().map(|cost| cost["rows"].as_u64().unwrap()).collect();
    assert_eq!(rows, (1..=17).collect::<Vec<_>>());
    let ms = |row: usize| costs[row]["ms"].as_f64().unwrap();
    assert!(ms(0) > 0.0 && ms(16) > ms(0), "seventeen rows cost more than one");
    assert_eq!(costs[0]["ratio"], 1.0);
    assert!((costs[16]["ratio"].as_f64().unwrap() - ms(16) / ms(0)).abs() < 1e-9);
    let draft = report["draft_ms"].as_f64().unwrap();
    assert!(draft > 0.0 && draft < ms(16), "{draft}");
    assert!(costs[0]["after_draft_ms"].is_null(), "a round of one row follows no draft");
    assert!(costs[16]["after_draft_ms"].as_f64().unwrap() > 0.0);
    // Slower than any memory and faster than any cache would be a wrong measurement.
    assert!((0.5..5000.0).contains(&report["read_bandwidth_gb_s"].as_f64().unwrap()));
}

#[test]
fn the_rounds_of_replies_are_grouped_by_rows_and_drafters() {
    let ask = ["bench", "--tokens", "24", "--repeats", "2", "--draft-length", "4", "--drafter", "model"];
    let ask = [&ask[..], &PAIR].concat();
    let report = json(&ask).pop().unwrap();
    let groups = |way: &str| report[way]["rounds"].as_array().unwrap().clone();
    let count = |groups: &[Value]| groups.iter().map(|group| group["rounds"].as_u64().unwrap()).sum::<u64>();
    let [plain] = &groups("plain")[..] else { panic!("plain rounds have one row: {report}") };
    assert_eq!(
        (&plain["rows"], &plain["drafters"], &plain["draft_ms"]),
        (&1.into(), &value!([]), &value!(0.0))
    );
    let drafted = groups("speculative");
    assert!(count(&drafted) > 0 && count(&drafted) < plain["rounds"].as_u64().unwrap());
    let five = drafted.iter().find(|group| group["rows"] == 5).unwrap();
    assert_eq!(five["drafters"], value!(["model"]));
    for time in ["draft_ms", "verify_ms", "sample_ms", "position"] {
        assert!(five[time].as_f64().unwrap() > 0.0, "{time}: {five}");
    }
    let table = run(&ask).out;
    let line = table.lines().find(|line| line.starts_with("speculative ") && line.contains(" model "));
    assert!(line.is_some(), "{table}");
}

#[test]
fn a_bench_beside_busy_programs_reports_both_speeds_on_all_threads_and_on_one() {
    let ask = ["bench", "--target", "starter-draft", "--beside", "2", "--tokens", "8", "--repeats", "1"];
    let report = json(&ask).pop().unwrap();
    assert_eq!((&report["type"], &report["busy"]), (&"bench_beside".into(), &2.into()));
    for side in ["all_threads", "one_thread"] {
        let speed = |when: &str| report[side][when].as_f64().unwrap();
        assert!(speed("idle") > 0.0 && speed("beside") > 0.0);
        assert!((speed("ratio") - speed("beside") / speed("idle")).abs() < 1e-9);
    }
}

#[cfg(unix)]
#[test]
fn every_model_of_a_folder_is_measured_plain_and_with_every_fitting_draft() {
    let models = tempfile::tempdir().unwrap();
    for file in ["starter-target-Q8_0.gguf", "starter-draft-Q8_0.gguf"] {
        std::os::unix::fs::symlink(repository().join("starter").join(file), models.path().join(file))
            .unwrap();
    }
    std::fs::write(models.path().join("broken.gguf"), "no model").unwrap();
    let ask = ["bench", "--models", models.path().to_str().unwrap(), "--workload", "chat"];
    let ask =
        ask.iter().chain(&["--tokens", "8", "--repeats", "1", "--threads", "1"]).map(ToString::to_string);
    let mut ask: Vec<String> = ask.collect();
    let table = run(&ask.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(table.err.contains("broken.gguf is skipped: "), "{}", table.err);
    assert!(table.out.contains("starter-target-Q8_0 with starter-draft-Q8_0, CPU"), "{}", table.out);
    ask.push("--json".to_owned());
    let reports = run(&ask.iter().map(String::as_str).collect::<Vec<_>>()).json();
    let [small, large] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!((&small["target"], &small["draft"]), (&"starter-draft-Q8_0".into(), &Value::Null));
    assert_eq!(
        (&large["target"], &large["draft"]),
        (&"starter-target-Q8_0".into(), &"starter-draft-Q8_0".into())
    );
    let names = |report: &Value| -> Vec<String> {
        let ways = report["ways"].as_array().unwrap();
        ways.iter().map(|way| way["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(small), ["plain", "n-gram", "recycling", "combined"]);
    assert_eq!(names(large), ["plain", "n-gram", "recycling", "model", "combined"]);
    let speed = |value: &Value| value["tokens_per_second"].as_f64().unwrap();
    for report in &reports {
        let ways = report["ways"].as_array().unwrap();
        for way in ways {
            assert!((way["speedup"].as_f64().unwrap() - speed(way) / speed(&ways[0])).abs() < 1e-9, "{way}");
        }
        assert_eq!(report["verify_cost"].as_array().unwrap().len(), 17);
    }
}

#[test]
fn a_model_of_a_folder_is_measured_with_its_mtp_block() {
    let models = tempfile::tempdir().unwrap();
    family("qwen35")
        .with_template("{{ messages[0].content }}")
        .with_mtp()
        .gguf(models.path(), GgmlDType::Q8_0);
    let ask = ["bench", "--models", models.path().to_str().unwrap(), "--workload", "chat", "--json"];
    let reports = run(&[&ask[..], &["--tokens", "8", "--repeats", "1", "--threads", "1"]].concat()).json();
    let [report] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!(report["draft"], "MTP");
    assert!(report["draft_ms"].as_f64().unwrap() > 0.0);
    let ways = report["ways"].as_array().unwrap();
    let model = ways.iter().find(|way| way["name"] == "model").unwrap();
    assert!(model["tokens_per_round"].as_f64().unwrap() >= 1.0, "{model}");
}

#[test]
fn a_folder_without_models_is_rejected() {
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    let refused = run(&["bench", "--models", empty]);
    assert_eq!((refused.code, refused.out.as_str()), (2, ""));
    assert!(refused.err.contains("found none in") && refused.err.contains(empty), "{}", refused.err);
    let missing = run(&["bench", "--models", "/nowhere/at/all"]);
    assert_eq!((missing.code, missing.out.as_str()), (1, ""));
    assert!(missing.err.contains("/nowhere/at/all"), "{}", missing.err);
}

#[test]
fn prompts_are_read_from_either_file_format() {
    let folder = Folder::new();
    let both =
        "{\"prompt\": \"Hello\", \"id\": 1}\n\n{\"turns\": [\"Count from one to five.\", \"And on\"]}\n";
    let file = folder.file("prompts.jsonl", both);
    let ask = ["bench", "--target", "starter", "--tokens", "6", "--repeats", "1", "--prompts"];
    assert_eq!(json(&[&ask[..], &[&file]].concat())[0]["prompts"], 2);
    for (content, found) in
        [("", "an empty file"), ("{\"prompt\": \"a\"}\n{}", "line 2"), ("hello", "line 1")]
    {
        let run = run(&[&ask[..], &[&folder.file("bad.jsonl", content)]].concat());
        assert_eq!((run.code, run.out.as_str()), (1, ""));
        assert!(run.err.contains("bad.jsonl: expected") && run.err.contains(found), "{}", run.err);
    }
}

#[test]
fn prompts_in_the_format_of_spec_bench_are_read() {
    let folder = Folder::new();
    let line = |id: u32| {
        let (turns, reference) = (["A dozen eggs and half a dozen: how many?"], ["18"]);
        value!({ "question_id": id, "category": "math", "turns": turns, "reference": reference }).to_string()
    };
    let file = folder.file("questions.jsonl", [line(0), line(1)].join("\n"));
    let ask = ["bench", "--target", "starter", "--tokens", "4", "--repeats", "1", "--prompts", &file];
    assert_eq!(json(&ask)[0]["prompts"], 2);
}

#[test]
fn the_logits_do_not_depend_on_the_chunks() {
    let ask = ["logits", "--target", "starter", "--tokens", "1,400,9,17,1033,5,77,78,79,2048"];
    let whole = json(&ask);
    assert_eq!(whole.len(), 10);
    for (position, row) in whole.iter().enumerate() {
        assert_eq!(row["position"], position);
        let top = row["top"].as_array().unwrap();
        assert_eq!(top.len(), 20);
        assert!(top.is_sorted_by(|a, b| a[1].as_f64() >= b[1].as_f64()), "best first");
    }
    assert_eq!((&whole[4]["token"], &whole[9]["token"]), (&1033.into(), &2048.into()));
    let mut hashes: Vec<_> = whole.iter().map(|row| row["hash"].to_string()).collect();
    hashes.dedup();
    assert_eq!(hashes.len(), 10, "every row has its own scores");
    for chunks in ["1", "1,2", "10", "3,1,4", "900"] {
        assert_eq!(json(&[&ask[..], &["--chunks", chunks]].concat()), whole, "{chunks}");
    }
}

#[test]
fn greedy_decoding_writes_the_most_likely_token() {
    let text =
        ["generate", "--target", "starter", "--raw", "--prompt", "Once upon a time", "--max-tokens", "1"];
    let written = json(&text).pop().unwrap()["tokens"][0].clone();
    let ids = json(&["tokenize", "--model", "starter", "--text", "Once upon a time"]).pop().unwrap();
    let ids: Vec<_> = ids["ids"].as_array().unwrap().iter().map(Value::to_string).collect();
    let rows = json(&["logits", "--target", "starter", "--tokens", &ids.join(",")]);
    assert_eq!(rows.last().unwrap()["top"][0][0], written);
}

#[test]
fn a_quick_gpu_check_finds_no_mistakes_and_reports_its_measurements() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let found = json(&["gpu-check", "--device", "cpu", "--quick", "--folder", folder]);
    let report = &found[0];
    assert_eq!(report["type"], "gpu_check");
    let number = |value: &Value| value.as_u64().unwrap();
    for text in report["texts"].as_array().unwrap() {
        assert_eq!(number(&text["same"]) + number(&text["near_ties"]), number(&text["replies"]), "{text}");
    }
    // Both engines round activations; a model in half precision needs no rounding.
    let error = |model: &str| {
        let rows = report["accuracy"].as_array().unwrap();
        rows.iter().find(|row| row["model"] == model).unwrap()["device"].as_f64().unwrap()
    };
    assert!(error("tiny:F16") < 1e-4 && (1e-3..6e-2).contains(&error("tiny:Q8_0")), "{report}");
    let speed = &report["speed"][0];
    assert_eq!(speed["verify_cost"].as_array().unwrap().len(), 17);
    assert!(speed["prompt_tokens_per_second"].as_f64().unwrap() > 0.0, "{speed}");
    // Tensors are not this engine's own kernels, and round differently.
    assert!(speed["pass_work"].is_null() && report["software"] == false, "{report}");
    assert!(report["accuracy"].as_array().unwrap().iter().all(|row| row["cpu_bits"] == false), "{report}");
    assert!(speed["host_ms"].as_f64().unwrap() > 0.0 && report["memory_gb_s"].as_f64().unwrap() > 0.0);
}
