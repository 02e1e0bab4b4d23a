//! Traces: rounds as stored and in files, one JSON document per line, and the statistics computed
//! from them.

use foretoken_engine::trace::{Finish, Round, Summary};
use serde_json::{Value, from_str, json};

use super::{Memory, Target, repository};
use crate::run::files;

const WORDS: &[&str] = &[
    "\"type\":\"round\"",
    "\"drafted\":[]",
    "\"extra\":null",
    "accepted",
    "rejected",
    "discarded",
    "recovered",
    "bonus",
    "model",
    "ngram",
    "recycling",
    "head",
    "parent",
    "draft_probability",
    "target_probability",
    "acceptance",
    "position",
    "index",
    "draft_length",
    "reason",
    "no_match",
    "threshold",
    "staged",
    "times",
    "at_ms",
    "token",
    "text",
    "decision",
];

/// Lines of a trace that are mutated together: short inputs are fast.
const LINES: usize = 2;

pub fn target() -> Target {
    let whole = files(&repository("tests/traces")).into_iter().filter(|file| file.starts_with(b"{\"type\""));
    let lines: Vec<Vec<u8>> = whole
        .flat_map(|file| file.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>())
        .collect();
    Target {
        name: "trace",
        seeds: lines.chunks(LINES).map(|lines| lines.join(&b'\n')).filter(|seed| seed.len() < 8192).collect(),
        words: WORDS,
        head: usize::MAX,
        longest: 8192,
        memory: Memory { each: 256, beside: 1 << 20 },
        run: Box::new(|input| {
            let text = String::from_utf8_lossy(input);
            let rounds: Vec<Round> = text.lines().filter_map(|line| from_str(line).ok()).collect();
            if rounds.is_empty() {
                return Some("No line is a round.".into());
            }
            fold(&rounds);
            None
        }),
    }
}

/// Computes all statistics of rounds; serialised rounds must parse to the same.
fn fold(rounds: &[Round]) {
    let summary = Summary::of(rounds, Finish::Stop, 3, 1, 10.0);
    let emitted: usize = rounds.iter().map(|round| round.emitted().count()).sum();
    assert_eq!(summary.tokens as usize, emitted);
    for round in rounds {
        assert!(round.accepted() <= round.judged() && round.judged() <= round.drafted.len());
        let written: Value = json!(round);
        let again: Round = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(json!(again), written);
    }
}
