//! `generate` and `check`.

use std::time::{Duration, Instant};

use foretoken_tests::nightly_or;
use serde_json::Value;

use crate::broken_models::Folder;
use crate::program::{PAIR, STORY, finished, json, program, run};

fn texts(rounds: &[Value]) -> String {
    let mut text = String::new();
    for round in rounds {
        assert_eq!(round["type"], "round");
        for drafted in round["drafted"].as_array().unwrap() {
            if drafted["outcome"] == "accepted" {
                text += drafted["text"].as_str().unwrap();
            }
        }
        text += round["extra"]["text"].as_str().unwrap_or_default();
    }
    text
}

fn outcomes<'a>(rounds: &'a [Value], outcome: &'a str) -> usize {
    let drafted = rounds.iter().flat_map(|round| round["drafted"].as_array().unwrap());
    drafted.filter(|drafted| drafted["outcome"] == outcome).count()
}

#[test]
fn a_reply_in_json_is_its_rounds_followed_by_their_sums() {
    let ask =
        ["generate", "--prompt", STORY, "--max-tokens", "60", "--draft-length", "4", "--drafter", "model"];
    let lines = json(&[&ask[..], &["--tree", "1"], &PAIR[..]].concat());
    let (done, rounds) = lines.split_last().unwrap();
    assert_eq!(done["type"], "done");
    assert_eq!(done["text"], texts(rounds));
    assert_eq!(done["rounds"], rounds.len());
    assert_eq!(done["tokens"].as_array().unwrap().len(), 60);
    assert_eq!((&done["finish"], &done["seed"]), (&"length".into(), &Value::Null));
    let [accepted, rejected, discarded] =
        ["accepted", "rejected", "discarded"].map(|outcome| outcomes(rounds, outcome));
    assert!(accepted > 0 && rejected > 0 && discarded > 0, "{accepted} {rejected} {discarded}");
    assert_eq!(done["accepted"], accepted);
    assert_eq!(done["judged"], accepted + rejected);
    assert_eq!(done["drafted"], accepted + rejected + discarded);
    let rate = accepted as f64 / (accepted + rejected) as f64;
    assert!((done["acceptance_rate"].as_f64().unwrap() - rate).abs() < 1e-9);
    assert_eq!(done["tokens_per_round"].as_f64().unwrap(), 60.0 / rounds.len() as f64);
    for number in ["ttft_ms", "tokens_per_second", "elapsed_ms"] {
        assert!(done[number].as_f64().unwrap() > 0.0, "{number}");
    }
}

#[test]
fn standard_output_has_only_the_reply_and_standard_error_its_statistics() {
    // On the CPU, since a GPU that this build does not use would be mentioned.
    let ask = ["generate", "--target", "starter", "--device", "cpu", "--prompt", "Count from one to five."];
    let plain = run(&ask);
    let done = json(&ask).pop().unwrap();
    assert_eq!(plain.code, 0);
    assert_eq!(plain.out, format!("{}\n", done["text"].as_str().unwrap()));
    assert_eq!(done["finish"], "stop");
    let tokens = done["tokens"].as_array().unwrap().len();
    assert!(plain.err.starts_with(&format!("{tokens} tokens, ")), "{}", plain.err);
    assert!(plain.err.trim_end().ends_with("ended by the model"), "{}", plain.err);
}

#[test]
fn the_prompt_can_come_from_a_file_or_a_pipe() {
    let ask = ["generate", "--target", "starter", "--max-tokens", "12", "--json"];
    let given = run(&[&ask[..], &["--prompt", STORY]].concat()).json().pop().unwrap();
    let piped = program(&[&ask[..], &["--prompt-file", "-"]].concat());
    let piped = finished(piped, STORY).json().pop().unwrap();
    assert_eq!(piped["text"], given["text"]);
    assert_eq!(piped["prompt_tokens"], given["prompt_tokens"]);
}

#[test]
fn a_reply_follows_a_schema_a_grammar_or_a_regular_expression_with_drafts_as_without() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let schema = write(
        "fox.json",
        r#"{"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}, "tails": {"type": "integer", "maximum": 9}},
            "required": ["name", "tails"], "additionalProperties": false}"#,
    );
    let grammar = write("fox.lark", "start: (\"fox\" | \"cat\") \" \" /[0-9]/");
    let ask = ["generate", "--prompt", STORY, "--max-tokens", "60"];
    for option in [["--schema", &schema], ["--grammar", &grammar], ["--regex", "(fox|cat) [0-9]"]] {
        let plain = json(&[&ask[..], &["--target", "starter"], &option].concat()).pop().unwrap();
        let drafted = json(&[&ask[..], &PAIR, &option].concat()).pop().unwrap();
        assert_eq!(drafted["tokens"], plain["tokens"]);
        assert_eq!(plain["finish"], "stop");
        let text = plain["text"].as_str().unwrap();
        if option[0] == "--schema" {
            let value: Value = serde_json::from_str(text).unwrap();
            assert!(value["name"].is_string() && value["tails"].is_i64(), "{text}");
        } else {
            assert!(
                ["fox ", "cat "].iter().any(|animal| text.starts_with(animal)) && text.len() == 5,
                "{text}"
            );
        }
    }
    let refused = |option: [&str; 2]| {
        let run = run(&[&ask[..], &["--target", "starter"], &option].concat());
        assert_eq!(run.code, 1);
        run.err
    };
    let deep = write("deep.json", &("{\"not\": ".repeat(10_000) + "{}" + &"}".repeat(10_000)));
    for (option, problem) in [
        (["--schema", &deep], "JSON schema cannot be used: recursion limit exceeded"),
        (["--grammar", &schema], "grammar cannot be used: "),
        (["--regex", "(a|b"], "regular expression cannot be used: "),
    ] {
        let sentence = refused(option);
        assert!(sentence.contains(problem), "{sentence}");
    }
    let start = Instant::now();
    run(&[&ask[..], &["--target", "starter", "--regex", "(.*a.{60}){9}x{100000}"]].concat());
    assert!(start.elapsed() < Duration::from_secs(60), "it takes its time limits at most");
}

#[test]
fn a_raw_prompt_is_used_unchanged() {
    let ask = ["generate", "--target", "starter", "--max-tokens", "8", "--raw", "--prompt"];
    let words = json(&[&ask[..], &["Once upon a time"]].concat()).pop().unwrap();
    let ids = json(&["tokenize", "--model", "starter", "--text", "Once upon a time"]).pop().unwrap();
    assert_eq!(words["prompt_tokens"], ids["ids"].as_array().unwrap().len());
    // The same conversation in the model's format, written by hand.
    let form = format!("<|im_start|>user\n{STORY}<|im_end|>\n<|im_start|>assistant\n");
    let by_hand = json(&[&ask[..], &[&form]].concat()).pop().unwrap();
    let rendered =
        json(&["generate", "--target", "starter", "--max-tokens", "8", "--prompt", STORY]).pop().unwrap();
    assert_eq!(by_hand["tokens"], rendered["tokens"]);
    assert_eq!(by_hand["prompt_tokens"], rendered["prompt_tokens"]);
}

#[test]
fn ignore_eos_continues_after_the_end_token() {
    let ask = ["generate", "--target", "starter", "--prompt", "Hello", "--max-tokens", "80"];
    let ended = json(&ask).pop().unwrap();
    let going_on = json(&[&ask[..], &["--ignore-eos"]].concat()).pop().unwrap();
    assert_eq!((&ended["finish"], &going_on["finish"]), (&"stop".into(), &"length".into()));
    let (ended, all) = (ended["tokens"].as_array().unwrap(), going_on["tokens"].as_array().unwrap());
    assert!(all.starts_with(ended) && all.len() == 80);
}

#[test]
fn the_text_depends_on_the_seed_and_not_on_the_drafter() {
    let write = |draft, seed| {
        let ask = ["generate", "--target", "starter", "--prompt", STORY, "--max-tokens", "40"];
        let settings = ["--temperature", "0.9", "--seed", seed, "--draft", draft];
        let done = json(&[&ask[..], &settings].concat()).pop().unwrap();
        assert_eq!(done["seed"], seed.parse::<u32>().unwrap());
        done["text"].clone()
    };
    let text = write("none", "5");
    assert_eq!(write("starter-draft", "5"), text);
    assert_eq!(write("ngram", "5"), text);
    assert_ne!(write("none", "6"), text);
}

#[test]
fn a_reproducible_text_without_a_seed_prints_the_drawn_seed() {
    let ask = ["generate", "--target", "starter", "--prompt", STORY, "--max-tokens", "5", "--json"];
    let settings = ["--temperature", "1", "--mode", "reproducible"];
    let run = run(&[&ask[..], &settings].concat());
    let done = run.json().pop().unwrap();
    assert!(run.err.contains(&format!("--seed {} ", done["seed"])), "{}", run.err);
}

#[test]
fn the_number_of_threads_changes_nothing_but_the_speed() {
    let ask = ["logits", "--target", "starter", "--tokens", "1,400,9,17,1033,5", "--threads"];
    let one = json(&[&ask[..], &["1"]].concat());
    assert_eq!(one.len(), 6);
    assert_eq!(json(&[&ask[..], &["3"]].concat()), one);
    let three = finished(program(&["chat", "--device", "cpu", "--threads", "3"]), "/quit");
    assert!(three.err.contains("on CPU, 3 threads, "), "{}", three.err);
}

#[test]
fn check_finds_replies_with_and_without_drafts_identical() {
    for draft in ["starter-draft", "ngram"] {
        for settings in [&[][..], &["--temperature", "0.8", "--mode", "reproducible", "--seed", "3"]] {
            let ask = ["check", "--target", "starter", "--draft", draft, "--prompt", STORY];
            let verdict = json(&[&ask[..], &["--max-tokens", "50"], settings].concat()).pop().unwrap();
            assert_eq!(verdict["identical"], true, "{draft} {settings:?}");
            assert_eq!(verdict["first_difference"], Value::Null);
            assert_eq!(verdict["tokens"], 50);
        }
    }
}

#[test]
fn check_finds_every_way_of_drafting_identical() {
    let folder = Folder::new();
    let renamed = folder.with_a_renamed_token();
    let ways = [
        &["--draft", "starter-draft", "--draft-length", "auto"][..],
        &["--draft", "starter-draft", "--draft-length", "5", "--drafter", "model", "--tree", "3"],
        &["--draft", "starter-draft", "--draft-length", "8", "--staged"],
        &["--draft", "starter-draft", "--draft-length", "4", "--staged", "--stage", "starter-draft"],
        &["--draft", "starter-draft", "--draft-length", "16", "--threshold", "auto"],
        &["--draft", "starter-draft", "--threshold", "0.5", "--verification", "token"],
        &["--drafter", "recycling", "--draft-length", "3", "--tree", "2"],
        &["--drafter", "combined", "--draft-length", "6"],
        &["--draft", &renamed, "--draft-length", "4"],
        &["--draft", &renamed, "--draft-length", "4", "--staged", "on", "--tree", "1"],
    ];
    for (index, way) in ways.into_iter().enumerate() {
        let settings = [&[][..], &["--temperature", "0.8", "--seed", "3"]];
        // Outside of nightly runs each way has one of the settings, in turns.
        for settings in settings.iter().skip(nightly_or(0, index % 2)).step_by(nightly_or(1, 2)) {
            let ask = ["check", "--target", "starter", "--prompt", STORY, "--max-tokens", "40"];
            let verdict = json(&[&ask[..], way, settings].concat()).pop().unwrap();
            assert_eq!(verdict["identical"], true, "{way:?} {settings:?}: {verdict}");
        }
    }
}

#[test]
fn a_round_in_json_shows_how_it_was_drafted() {
    let ask = ["generate", "--prompt", STORY, "--max-tokens", "40"];
    let rounds = |more: &[&str]| json(&[&ask[..], &PAIR, more].concat());
    let tree = rounds(&["--draft-length", "4", "--drafter", "model", "--tree", "3"]);
    let siblings = tree[0]["drafted"].as_array().unwrap().iter().filter(|d| d["parent"].is_null()).count();
    assert!(siblings > 1, "no tree: {}", tree[0]);
    let staged = rounds(&[
        "--draft-length",
        "4",
        "--drafter",
        "model",
        "--staged",
        "--threshold",
        "0.2",
        "--tree",
        "1",
    ]);
    assert_eq!((&staged[0]["staged"], &staged[0]["threshold"]), (&true.into(), &0.2.into()));
    let auto = rounds(&["--drafter", "model"]);
    let decision = auto.iter().map(|round| &round["decision"]).find(|decision| !decision.is_null()).unwrap();
    assert_eq!(decision["tokens_per_second"].as_array().unwrap().len(), 17);
    assert_eq!(decision["verify_ms"].as_array().unwrap().len(), 17);
}

#[test]
fn check_at_a_temperature_is_reproducible_by_default_and_prints_its_seed() {
    let ask = ["check", "--prompt", STORY, "--max-tokens", "20", "--temperature", "0.8"];
    let run = run(&[&ask[..], &PAIR].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    // The seed differs every time, so a text may end early.
    let tokens = run.out.strip_prefix("identical: all ").and_then(|rest| rest.split_once(' ')).unwrap();
    assert!((1..=20).contains(&tokens.0.parse().unwrap()), "{}", run.out);
    assert_eq!(tokens.1, "tokens are the same with and without drafts\n");
    assert!(run.err.contains("reproducible mode with a new seed: --seed "), "{}", run.err);
}

#[test]
fn check_rejects_the_fastest_mode_and_a_missing_draft() {
    let ask = ["check", "--target", "starter", "--prompt", STORY];
    for (settings, sentence) in [
        (
            &["--draft", "ngram", "--temperature", "1", "--mode", "fastest"][..],
            "error: mode: expected temperature 0",
        ),
        (&[], "error: check compares a reply with drafts to one without"),
        (&["--draft", "none"], "error: check compares"),
        (&["--draft", "ngram", "--draft-length", "0"], "error: check compares"),
    ] {
        let run = run(&[&ask[..], settings].concat());
        assert_eq!((run.code, run.out.as_str()), (2, ""));
        assert!(run.err.contains(sentence), "{}", run.err);
    }
}

#[test]
fn a_closed_output_pipe_ends_the_program_quietly() {
    let mut command =
        program(&[&["generate", "--prompt", STORY, "--json", "--device", "cpu"], &PAIR[..]].concat());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert!(output.status.success());
}

#[cfg(unix)]
#[test]
fn an_interrupt_stops_the_reply_and_keeps_what_was_written() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};
    let ask = ["generate", "--target", "starter", "--prompt", STORY, "--ignore-eos", "--json"];
    let mut child = program(&ask).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    let done: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!((&done["type"], &done["finish"]), (&"done".into(), &"cancelled".into()));
    assert_eq!(done["rounds"], rest.lines().count(), "the first line and the last make up for each other");
}

#[test]
fn statistics_are_saved_for_the_next_run_unless_cold_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("learned.json");
    let ask = ["generate", "--prompt", STORY, "--max-tokens", "30", "--json"];
    let reply = |more: &[&str]| {
        let mut command = program(&[&ask[..], &PAIR[..], more].concat());
        command.env("FORETOKEN_DATA_DIR", folder.path());
        finished(command, "").json().pop().unwrap()["text"].clone()
    };
    let pairs = || -> Vec<Value> { serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap() };
    let text = reply(&["--cold"]);
    assert!(!file.exists());
    assert_eq!(reply(&[]), text);
    let first = pairs();
    assert_eq!(first.len(), 1);
    assert_eq!(reply(&[]), text);
    assert!(pairs().len() == 1 && pairs() != first, "the same pair knows more");
    assert_eq!(reply(&["--threads", "2"]), text);
    assert_eq!(pairs().len(), 2, "other threads, other costs");
    std::fs::write(&file, "[{\"pair\":").unwrap();
    assert_eq!(reply(&[]), text);
    assert_eq!(pairs().len(), 1, "a damaged file is as none");
}
