//! Pieces of text that every form of arguments needs.

use serde_json::Value;

use crate::tools::mark::unmarked;

/// Position of a key in Gemma's sorted objects.
pub fn sort_key(name: &str) -> String {
    name.to_lowercase()
}

/// Appends text to the inside of a JSON string.
pub(super) fn push_escaped(json: &mut String, text: &str) {
    let quoted = Value::from(unmarked(text)).to_string();
    json.push_str(&quoted[1..quoted.len() - 1]);
}

/// Takes the first `length` bytes of `held`.
pub(super) fn take(held: &mut String, length: usize) -> String {
    let rest = held.split_off(length);
    std::mem::replace(held, rest)
}
