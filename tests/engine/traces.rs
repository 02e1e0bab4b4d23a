//! Stored traces of `traces/`, folded here and by the page (`ui/src/trace/shared.test.ts`). Both
//! are compared with the same expectations, which are beside each trace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use foretoken_engine::trace::{Finish, Outcome, Round, Speedup, Summary};
use foretoken_tests::repository;
use serde_json::{Map, Value, json};

/// Relative difference of sums in single and double precision.
const RELATIVE: f64 = 1e-5;

#[test]
fn the_engine_and_the_page_fold_stored_traces_equally() {
    let traces = traces();
    assert!(traces.len() >= 5, "{traces:?}");
    for trace in traces {
        let expected = std::fs::read_to_string(trace.with_extension("expected.json")).unwrap();
        let expected: Value = serde_json::from_str(&expected).unwrap();
        same(&fold(&rounds(&trace)), &expected, &trace.display().to_string());
    }
}

fn traces() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(repository().join("tests/traces")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect()
}

/// Rounds of a trace, up to a line that is cut off.
fn rounds(trace: &Path) -> Vec<Round> {
    let text = std::fs::read_to_string(trace).unwrap();
    let whole = text.lines().map_while(|line| serde_json::from_str::<Value>(line).ok());
    let rounds = whole.filter(|line| line["type"] == "round");
    rounds.map(|round| serde_json::from_value(round).unwrap()).collect()
}

fn fold(rounds: &[Round]) -> Value {
    let elapsed_ms = rounds.last().map_or(0.0, |round| f64::from(round.at_ms));
    let summary = Summary::of(rounds, Finish::Stop, 0, 0, elapsed_ms);
    let text: String = rounds.iter().flat_map(Round::emitted).map(|(_, text)| text).collect();
    json!({
        "wasted": summary.drafted - summary.accepted,
        "summary": summary,
        "outcomes": outcomes(rounds),
        "text": text,
        "speedups": speedups(rounds),
    })
}

/// Times behind the speedup after half of the rounds and after all. The page computes none.
fn speedups(rounds: &[Round]) -> Value {
    let after_each = Speedup::after_each(rounds);
    let times = |speedup: &Speedup| json!({ "plain_ms": speedup.plain_ms, "elapsed_ms": speedup.elapsed_ms });
    let at = |index: usize| after_each.get(index).copied().flatten().as_ref().map(times);
    json!({ "half": at(rounds.len() / 2), "whole": at(rounds.len().saturating_sub(1)) })
}

/// Drafted tokens by drafter and outcome.
fn outcomes(rounds: &[Round]) -> Value {
    let mut counts: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
    for drafted in rounds.iter().flat_map(|round| &round.drafted) {
        let of = counts.entry(word(&json!(drafted.drafter))).or_default();
        for outcome in [Outcome::Accepted, Outcome::Rejected, Outcome::Discarded] {
            *of.entry(word(&json!(outcome))).or_default() += u32::from(outcome == drafted.outcome);
        }
    }
    json!(counts)
}

fn word(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Returns whether `found` has everything that is expected, up to rounding.
fn same(found: &Value, expected: &Value, place: &str) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            let nothing = Value::Null;
            let part = |key: &str, of: &Map<String, Value>| of.get(key).unwrap_or(&nothing).clone();
            for key in expected.keys() {
                same(&part(key, found), &expected[key], &format!("{place}, {key}"));
            }
        }
        (Value::Number(found), Value::Number(expected)) => {
            let (found, expected) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
            let tolerance = RELATIVE * expected.abs().max(1e-3);
            assert!((found - expected).abs() <= tolerance, "{place}: expected {expected}, found {found}");
        }
        _ => assert_eq!(found, expected, "{place}"),
    }
}
