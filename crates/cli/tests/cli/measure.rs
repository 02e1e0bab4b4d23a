//! `bench` and `logits`.

use foretoken_tests::shared_data;
use serde_json::Value;

use crate::program::{PAIR, json, run};
use crate::wrong_models::Folder;

#[test]
fn a_bench_compares_plain_with_speculative_decoding() {
    let ask = ["bench", "--tokens", "24", "--repeats", "2"];
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
fn a_bench_without_a_draft_measures_plain_decoding_alone() {
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
    let draft = report["draft_ms"].as_f64().unwrap();
    assert!(draft > 0.0 && draft < ms(16), "{draft}");
    // No computer of today reads slower than a disk or faster than a cache.
    assert!((0.5..5000.0).contains(&report["read_bandwidth_gb_s"].as_f64().unwrap()));
}

#[test]
fn prompts_come_from_a_file_in_either_form() {
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
fn published_prompts_are_understood() {
    let Some(path) = shared_data("prompts/eagle_gsm8k_question.jsonl") else { return };
    let folder = Folder::new();
    let first: Vec<_> = std::fs::read_to_string(path).unwrap().lines().take(2).map(str::to_owned).collect();
    let file = folder.file("gsm8k.jsonl", first.join("\n"));
    let ask = ["bench", "--target", "starter", "--tokens", "4", "--repeats", "1", "--prompts", &file];
    assert_eq!(json(&ask)[0]["prompts"], 2);
}

#[test]
fn the_scores_are_the_same_whatever_the_chunks() {
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
fn the_likeliest_next_token_is_what_greedy_decoding_writes() {
    let text =
        ["generate", "--target", "starter", "--raw", "--prompt", "Once upon a time", "--max-tokens", "1"];
    let written = json(&text).pop().unwrap()["tokens"][0].clone();
    let ids = json(&["tokenize", "--model", "starter", "--text", "Once upon a time"]).pop().unwrap();
    let ids: Vec<_> = ids["ids"].as_array().unwrap().iter().map(Value::to_string).collect();
    let rows = json(&["logits", "--target", "starter", "--tokens", &ids.join(",")]);
    assert_eq!(rows.last().unwrap()["top"][0][0], written);
}
