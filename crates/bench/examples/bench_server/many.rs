//! Many clients at once, each with consecutive requests.

use std::collections::BTreeMap;
use std::time::Instant;

use foretoken_tests::client::post;
use foretoken_tests::served::Served;
use foretoken_tests::spread::Spread;
use serde_json::json;

const CLIENTS: usize = 32;
const REQUESTS: usize = 50;

/// Prints the number of responses of each status and their times. Every second request is streamed,
/// every third has a question of its own.
pub fn clients(served: &Served) {
    let begun = Instant::now();
    let answers: Vec<(u16, f64)> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || ask(served, client))).collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    let mut counts = BTreeMap::<u16, usize>::new();
    let mut times = Spread::default();
    for (status, milliseconds) in answers {
        *counts.entry(status).or_default() += 1;
        times.add(milliseconds);
    }
    let took = begun.elapsed().as_secs_f64();
    println!(
        "  {CLIENTS} clients with {REQUESTS} requests each: statuses {counts:?} in {took:.1} s; a request, ms: {times}"
    );
}

fn ask(served: &Served, client: usize) -> Vec<(u16, f64)> {
    (0..REQUESTS)
        .map(|turn| {
            let question = if turn % 3 == 0 { format!("Question {client}, {turn}: what is a fox?") } else { "What is a fox?".into() };
            let body = json!({
                "messages": [{ "role": "user", "content": question }], "max_tokens": 16, "stream": turn % 2 == 0,
            });
            let begun = Instant::now();
            let answer = post(&served.at, "/v1/chat/completions", &body.to_string());
            let whole = match (answer.status, turn % 2 == 0) {
                (200, true) => answer.events().last() == Some(&"[DONE]"),
                (200, false) => answer.json()["choices"][0]["finish_reason"].is_string(),
                (429, _) => answer.header("retry-after").is_some(),
                _ => false,
            };
            assert!(whole, "{}: {}", answer.status, answer.body);
            (answer.status, begun.elapsed().as_secs_f64() * 1000.0)
        })
        .collect()
}
