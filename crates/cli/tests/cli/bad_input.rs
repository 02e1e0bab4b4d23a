//! Input that cannot work: each case gives one sentence on standard error, nothing on standard
//! output, and the right exit code.

use candle_core::quantized::gguf_file::Value;

use crate::broken_models::{Folder, starter_draft};
use crate::program::{STORY, run};

const FAILED: i32 = 1;
const WRONG_USAGE: i32 = 2;

#[track_caller]
fn refused(arguments: &[&str], code: i32, parts: &[&str]) {
    let run = run(arguments);
    assert_eq!((run.code, run.out.as_str()), (code, ""), "{arguments:?}: {}", run.err);
    assert!(!run.err.contains("panicked"), "{}", run.err);
    if code == FAILED {
        assert_eq!(run.err.lines().count(), 1, "{}", run.err);
        assert!(run.err.starts_with("error: "), "{}", run.err);
    }
    for part in parts {
        assert!(run.err.contains(part), "'{part}' is not in: {}", run.err);
    }
}

fn generate<'a>(target: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["generate", "--json", "--target", target, "--max-tokens", "4"], more].concat()
}

#[test]
fn a_file_that_is_not_a_model() {
    let folder = Folder::new();
    let text = folder.file("notes.txt", "hello");
    let named_like_one = folder.file("notes.gguf", "hello, this is no model");
    refused(&generate(&text, &["--prompt", "a"]), FAILED, &["notes.txt is not a model", ".gguf"]);
    refused(&generate(&named_like_one, &["--prompt", "a"]), FAILED, &["notes.gguf", "expected", "found"]);
    refused(&["inspect", &folder.file("empty.gguf", "")], FAILED, &["empty.gguf"]);
}

#[test]
fn a_truncated_model() {
    let folder = Folder::new();
    let whole = std::fs::read(starter_draft()).unwrap();
    for (length, reason) in [
        (16, "cut short"),
        (500, "cut short"),
        (60_000, "cut short"),
        (whole.len() / 2, "is incomplete"),
        (whole.len() - 1, "is incomplete"),
    ] {
        let cut = folder.file("cut.gguf", &whole[..length]);
        let parts = ["cut.gguf", reason, "Download it again"];
        refused(&generate(&cut, &["--prompt", "a"]), FAILED, &parts);
    }
}

#[test]
fn a_model_without_a_template() {
    let folder = Folder::new();
    let base = folder.without_template();
    refused(&generate(&base, &["--prompt", "a"]), FAILED, &["has no chat template", "--raw"]);
    refused(&["chat", "--target", &base], FAILED, &["has no chat template"]);
    refused(&["bench", "--target", &base], FAILED, &["has no chat template", "--raw"]);
    let raw = run(&generate(&base, &["--prompt", "Once", "--raw"]));
    assert_eq!(raw.code, 0, "{}", raw.err);
}

#[test]
fn an_unsupported_architecture() {
    let folder = Folder::new();
    let other = folder.model("mamba.gguf", |values| {
        values.insert("general.architecture".into(), Value::String("mamba".into()));
    });
    let parts = ["architecture 'mamba'", "It supports llama", "Choose another model."];
    refused(&generate(&other, &["--prompt", "a"]), FAILED, &parts);
    refused(&["inspect", &other, "--json"], FAILED, &parts);
}

#[test]
fn an_empty_prompt() {
    let folder = Folder::new();
    for prompt in ["", "  \n"] {
        refused(&generate("starter", &["--prompt", prompt]), FAILED, &["the prompt is empty"]);
    }
    let file = folder.file("empty.txt", "");
    refused(&generate("starter", &["--prompt-file", &file]), FAILED, &["the prompt is empty"]);
    refused(&generate("starter", &["--prompt", "", "--raw"]), FAILED, &["the prompt is empty"]);
    refused(&["check", "--target", "starter", "--draft", "ngram", "--prompt", ""], FAILED, &["empty"]);
}

#[test]
fn a_prompt_longer_than_the_context() {
    let long = "a story ".repeat(1500);
    let parts = ["the prompt is too long", "context window holds 1024", "Shorten it"];
    refused(&generate("starter", &["--prompt", &long]), FAILED, &parts);
    let parts = ["the prompt is too long", "context window holds 15"];
    refused(&generate("starter", &["--prompt", STORY, "--context", "15"]), FAILED, &parts);
    let tokens = vec!["5"; 1025].join(",");
    refused(&["logits", "--target", "starter", "--tokens", &tokens, "--json"], FAILED, &["1025 tokens"]);
}

#[test]
fn a_draft_with_another_vocabulary() {
    let folder = Folder::new();
    let other = folder.with_another_vocabulary();
    for command in ["generate", "check"] {
        let ask = [command, "--target", "starter", "--draft", &other, "--prompt", STORY];
        refused(&ask, FAILED, &["the draft cannot be used", "differ at token 0"]);
    }
    refused(&["bench", "--target", "starter", "--draft", &other], FAILED, &["differ at token 0"]);
}

#[test]
fn an_unknown_name() {
    refused(&generate("startr", &["--prompt", "a"]), FAILED, &["'startr'", "Did you mean 'starter'?"]);
    let draft = ["--prompt", "a", "--draft", "nothing-like-it"];
    refused(&generate("starter", &draft), FAILED, &["no model called 'nothing-like-it'"]);
    refused(
        &generate("starter", &["--prompt-file", "/no/such/file"]),
        FAILED,
        &["/no/such/file cannot be read"],
    );
}

#[test]
fn tokens_that_do_not_exist() {
    let parts = ["token 4096 does not exist", "4096 tokens"];
    refused(&["logits", "--target", "starter", "--tokens", "4096", "--json"], FAILED, &parts);
    refused(&["detokenize", "--model", "starter", "--ids", "5,4096", "--json"], FAILED, &parts);
}

#[test]
fn numbers_that_make_no_sense() {
    for (option, value, part) in [
        ("--temperature", "-1", "temperature: expected 0 to 5, found -1"),
        ("--temperature", "warm", "invalid value 'warm'"),
        ("--temperature", "NaN", "temperature: expected 0 to 5, found NaN"),
        ("--top-p", "0", "top-p: expected more than 0"),
        ("--min-p", "1", "min-p: expected"),
        ("--repeat-penalty", "0", "repetition penalty: expected"),
        ("--draft-length", "17", "expected auto or a number from 0 to 16"),
        ("--draft-length", "10000", "expected auto or a number from 0 to 16"),
        ("--draft-length", "-1", "expected auto or a number from 0 to 16"),
        ("--tree", "0", "expected auto or a number from 1 to 4"),
        ("--tree", "5", "expected auto or a number from 1 to 4"),
        ("--threshold", "1.5", "expected off, auto or a number from 0 to 1"),
        ("--threshold", "-0.1", "expected off, auto or a number from 0 to 1"),
        ("--threshold", "NaN", "expected off, auto or a number from 0 to 1"),
        ("--drafter", "me", "[possible values: model, ngram, recycling, combined]"),
        ("--drafter", "model", "--drafter model needs a draft model"),
        ("--staged", "yes", "[possible values: auto, on, off]"),
        ("--verification", "all", "[possible values: block, token]"),
        ("--max-tokens", "-3", "invalid value '-3'"),
        ("--seed", "x", "invalid value 'x'"),
        ("--threads", "0", "invalid value '0'"),
        ("--context", "0", "invalid value '0'"),
        ("--context", "-1", "invalid value '-1'"),
        ("--context", "1025", "--context: expected at most 1024 tokens, which the model was trained with"),
        ("--device", "abacus", "expected auto, cpu, gpu, gpu:N with N from 1 on, gpu:NAME, cuda or metal"),
        ("--device", "gpu:0", "expected auto, cpu, gpu, gpu:N with N from 1 on"),
        ("--draft-device", "gpu:0", "expected auto, cpu, gpu, gpu:N with N from 1 on"),
        ("--kv-cache-dtype", "q4_0", "expected f16 or int8, found q4_0"),
        ("--mode", "best", "[possible values: fastest, reproducible]"),
    ] {
        let ask = ["generate", "--json", "--target", "starter", "--prompt", "a", option, value];
        refused(&ask, WRONG_USAGE, &[part]);
    }
    for (option, value) in [("--tokens", "1,x"), ("--tokens", ""), ("--chunks", "0"), ("--chunks", "1,,2")] {
        let tokens = if option == "--chunks" { &["--tokens", "1,2"][..] } else { &[] };
        refused(
            &[&["logits", "--target", "starter", option, value], tokens].concat(),
            WRONG_USAGE,
            &[option],
        );
    }
}

#[test]
fn gpu_check_without_the_requested_gpu() {
    refused(&["gpu-check", "--device", "metal", "--quick"], FAILED, &["Metal", "--device cpu"]);
}

#[test]
fn beside_excludes_drafts_and_needs_at_least_one_program() {
    let beside = ["bench", "--target", "starter", "--beside"];
    for more in [["1", "--draft", "ngram"], ["1", "--verify-cost", "--json"]] {
        refused(&[&beside[..], &more].concat(), WRONG_USAGE, &["cannot be used with", more[1]]);
    }
    refused(&[&beside[..], &["0"]].concat(), WRONG_USAGE, &["--beside"]);
}

#[test]
fn wrong_usage() {
    refused(&[], WRONG_USAGE, &["Usage"]);
    refused(&["sing"], WRONG_USAGE, &["unrecognized subcommand 'sing'"]);
    refused(&["generate", "--prompt", "a"], WRONG_USAGE, &["--target"]);
    refused(&["generate", "--target", "starter"], WRONG_USAGE, &["--prompt"]);
    let both = ["generate", "--target", "starter", "--prompt", "a", "--prompt-file", "b"];
    refused(&both, WRONG_USAGE, &["cannot be used with"]);
    refused(&["render", "--messages", "m.json"], WRONG_USAGE, &["--model"]);
}
