//! Speed of the local server against the terminal, and under many clients at once: `make
//! bench-server`. Uses programs of the release build, named by FORETOKEN_APPLICATION. `bench_server
//! TARGET DRAFT` measures another pair.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

mod many;

use std::io::{BufRead, BufReader};
use std::process::Command;
use std::time::Instant;

use foretoken_tests::cli;
use foretoken_tests::client::asked;
use foretoken_tests::served::Served;
use foretoken_tests::spread::Spread;
use serde_json::{Value, json};

/// Replies by the server and the terminal in turn.
const REPLIES: usize = 6;
const TOKENS: u32 = 256;
const FIRST_BYTES: usize = 30;
const PROMPT: &str = "Tell me a story about a fox who finds a lantern.";

fn main() {
    let named: Vec<String> = std::env::args().skip(1).collect();
    if let [target, draft] = &named[..] {
        return compare(&serve(&["--target", target, "--draft", draft]), target, draft);
    }
    let starter = serve(&["--target", "starter", "--draft", "starter-draft"]);
    compare(&starter, "starter", "starter-draft");
    many::clients(&starter);
    drop(starter);
    if !foretoken_tests::without_smollm2() {
        compare(&serve(&[]), "smollm2", "smollm2-head");
    }
}

fn serve(arguments: &[&str]) -> Served {
    let mut command = Command::new(cli());
    command.args(["serve", "--port", "0"]).args(arguments);
    Served::start(command)
}

fn compare(served: &Served, target: &str, draft: &str) {
    println!("{target} and {draft}:");
    speed(served, target, draft);
    first_bytes(served);
}

/// Prints tokens/s of server and terminal by their own clocks and, for the server, by the client's:
/// from the first piece to the last.
fn speed(served: &Served, target: &str, draft: &str) {
    let (mut ratios, mut seen) = (Spread::default(), Spread::default());
    for turn in 0..REPLIES {
        let there = (turn % 2 == 0).then(|| terminal(target, draft, turn));
        let streamed = Streamed::of(served, &request(turn, TOKENS));
        let there = there.unwrap_or_else(|| terminal(target, draft, turn));
        println!(
            "  server {:7.1} tokens/s, {:7.1} as the client sees it; terminal {there:7.1}",
            streamed.tokens_per_second, streamed.seen_per_second
        );
        ratios.add(streamed.tokens_per_second / there * 100.0);
        seen.add(streamed.seen_per_second / there * 100.0);
    }
    println!("  of the terminal's speed, %: {ratios}; as the client sees it, %: {seen}");
}

/// Prints the time from a request to the first piece of a reply, for a prompt that was just
/// prefilled.
fn first_bytes(served: &Served) {
    Streamed::of(served, &request(0, 8));
    let mut times = Spread::default();
    for _ in 0..FIRST_BYTES {
        times.add(Streamed::of(served, &request(0, 8)).first_byte_ms);
    }
    println!("  first byte of a reply to a warm prompt, ms: {times}");
}

fn request(seed: usize, tokens: u32) -> Value {
    json!({
        "messages": [{ "role": "user", "content": PROMPT }], "temperature": 0.7, "seed": seed, "max_tokens": tokens,
        "ignore_eos": true, "stream": true, "stream_options": { "include_usage": true },
    })
}

/// A reply as received by its client.
struct Streamed {
    first_byte_ms: f64,
    /// Speed that the server reports.
    tokens_per_second: f64,
    /// Speed from the first piece to the last, without the first piece's token.
    seen_per_second: f64,
}

impl Streamed {
    fn of(served: &Served, body: &Value) -> Self {
        let begun = Instant::now();
        let lines = BufReader::new(asked(&served.at, "/v1/chat/completions", &body.to_string())).lines();
        let (mut first, mut last, mut end) = (None, begun, Value::Null);
        for line in lines {
            let line = line.unwrap();
            let Some(event) = line.strip_prefix("data: ").filter(|event| *event != "[DONE]") else {
                continue;
            };
            let event: Value = serde_json::from_str(event).unwrap();
            if event["choices"][0]["delta"]["content"].as_str().is_some_and(|text| !text.is_empty()) {
                last = Instant::now();
                first.get_or_insert(last);
            }
            if !event["timings"].is_null() {
                end = event;
            }
        }
        let first = first.expect("a piece");
        let tokens = end["usage"]["completion_tokens"].as_f64().unwrap();
        Self {
            first_byte_ms: (first - begun).as_secs_f64() * 1000.0,
            tokens_per_second: end["timings"]["predicted_per_second"].as_f64().unwrap(),
            seen_per_second: (tokens - 1.0) / (last - first).as_secs_f64(),
        }
    }
}

/// Tokens/s of the same reply by `generate`.
fn terminal(target: &str, draft: &str, seed: usize) -> f64 {
    let output = Command::new(cli())
        .args([
            "generate",
            "--json",
            "--target",
            target,
            "--draft",
            draft,
            "--prompt",
            PROMPT,
            "--ignore-eos",
        ])
        .args(["--temperature", "0.7", "--seed", &seed.to_string(), "--max-tokens", &TOKENS.to_string()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let done: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    done["tokens_per_second"].as_f64().unwrap()
}
