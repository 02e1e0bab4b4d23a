//! Reads parts of attached files: lines by their numbers, or those that contain words. A line that
//! is very long counts as several.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::context::{AttachedFile, BuiltinContext, text_argument};
use crate::error::{Error, Result};
use crate::log::printable;

/// Longest line in characters.
const LONGEST_LINE: usize = 500;

/// Most lines that are read at once, and most bytes of them.
const MOST_LINES: usize = 200;
const MOST_BYTES: usize = 16 << 10;

/// Most lines that a search returns.
const MOST_FOUND: usize = 40;

/// Most names of files in an error.
const MOST_NAMES: usize = 20;

pub(super) const DESCRIPTION: &str = "Reads lines of a file that the person attached, or finds the lines with some words. \
     Use it for files that are too long to be shown whole.";

pub(super) fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "file": { "type": "string", "description": "Name of the file" },
            "first_line": { "type": "integer", "minimum": 1, "description": "First line to read" },
            "last_line": { "type": "integer", "minimum": 1, "description": "Last line to read" },
            "words": { "type": "string", "description": "Words that a line must contain, to find lines" },
        },
        "required": ["file"],
        "additionalProperties": false,
    })
}

pub(super) fn read(arguments: &Map<String, Value>, context: &dyn BuiltinContext) -> Result<String> {
    let file = find(text_argument(arguments, "file")?, context.attached()?)?;
    let text = context.attached_text(file.id)?;
    let lines: Vec<&str> = lines(&text).collect();
    let number = |name: &str| arguments.get(name).and_then(Value::as_u64).map(|line| line as usize);
    let first = number("first_line").unwrap_or(1).max(1);
    match arguments.get("words").and_then(Value::as_str).map(str::trim).filter(|words| !words.is_empty()) {
        Some(words) => Ok(found(&file.name, &lines, words, first)),
        None => part(&file.name, &lines, first, number("last_line")),
    }
}

/// Returns the file of this name, or the only one whose name contains it.
fn find(name: &str, files: Vec<AttachedFile>) -> Result<AttachedFile> {
    if files.is_empty() {
        return Err(Error::Builtin("No file is attached to this conversation.".to_owned()));
    }
    let named = |file: &&AttachedFile| file.name == name;
    // The latest file of a name is the one that is meant.
    if let Some(file) = files.iter().rev().find(named) {
        return Ok(file.clone());
    }
    let wanted = name.to_lowercase();
    let mut similar = files.iter().filter(|file| file.name.to_lowercase().contains(&wanted));
    match (similar.next(), similar.next()) {
        (Some(file), None) => Ok(file.clone()),
        _ => {
            let names: Vec<&str> = files.iter().take(MOST_NAMES).map(|file| file.name.as_str()).collect();
            let (name, names) = (printable(name), names.join(", "));
            Err(Error::Builtin(format!("There is no attached file {name}. Attached: {names}")))
        }
    }
}

/// Lines of at most [`LONGEST_LINE`] characters.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let mut rest = Some(line);
        std::iter::from_fn(move || {
            let line = rest.take()?;
            let (end, _) = line.char_indices().nth(LONGEST_LINE).unwrap_or((line.len(), ' '));
            rest = Some(&line[end..]).filter(|rest| !rest.is_empty());
            Some(&line[..end])
        })
    })
}

/// Lines `first` to `last`, counted from 1, as far as they fit.
fn part(name: &str, lines: &[&str], first: usize, last: Option<usize>) -> Result<String> {
    let count = lines.len();
    if first > count {
        return Err(Error::Builtin(format!("{name} has only {count} lines.")));
    }
    let last = last.unwrap_or(usize::MAX).clamp(first, count).min(first + MOST_LINES - 1);
    let mut text = String::new();
    let mut end = first - 1;
    for line in &lines[first - 1..last] {
        if end >= first && text.len() + line.len() > MOST_BYTES {
            break;
        }
        end += 1;
        text.push_str(line);
        text.push('\n');
    }
    Ok(format!("{name}, lines {first} to {end} of {count}:\n{text}"))
}

/// Lines from `first` on that contain all words, whatever their case.
fn found(name: &str, lines: &[&str], words: &str, first: usize) -> String {
    let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
    let has_all = |line: &str| {
        let line = line.to_lowercase();
        words.iter().all(|word| line.contains(word))
    };
    let mut text = String::new();
    let mut count = 0;
    for (index, line) in lines.iter().enumerate().skip(first - 1).filter(|(_, line)| has_all(line)) {
        count += 1;
        if count <= MOST_FOUND {
            let _ = writeln!(text, "{}: {line}", index + 1);
        }
    }
    let more = count.saturating_sub(MOST_FOUND);
    if more > 0 {
        let _ = writeln!(text, "{more} more lines contain these words.");
    }
    match count {
        0 => format!("No line of {name} contains these words."),
        _ => format!("Lines of {name} with these words, by number:\n{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::context::tests::Fixed;

    fn call(arguments: Value, files: &[(&str, &str)]) -> Result<String> {
        let Value::Object(arguments) = arguments else { unreachable!() };
        read(&arguments, &Fixed::with_files(files))
    }

    #[test]
    fn lines_are_read_by_their_numbers_and_found_by_their_words() {
        let text: String = (1..=1000).map(|number| format!("Line {number} of the Fox\n")).collect();
        let files = [("a.txt", "old"), ("a.txt", &text), ("notes.md", "x")];
        let lines = call(json!({ "file": "a.txt", "first_line": 999, "last_line": 2000 }), &files).unwrap();
        assert_eq!(lines, "a.txt, lines 999 to 1000 of 1000:\nLine 999 of the Fox\nLine 1000 of the Fox\n");
        let lines = call(json!({ "file": "A.TX", "first_line": 5, "last_line": 2 }), &files[1..]).unwrap();
        assert!(lines.starts_with("a.txt, lines 5 to 5 of"), "{lines}");
        let all = call(json!({ "file": "a.txt" }), &files).unwrap();
        assert!(all.starts_with("a.txt, lines 1 to 200 of 1000:\n"), "{}", all.len());
        let found = call(json!({ "file": "a.txt", "words": "fox  LINE 99" }), &files).unwrap();
        assert!(found.contains("\n99: Line 99 of the Fox\n199: Line 199 "), "{found}");
        let from = call(json!({ "file": "a.txt", "words": "fox", "first_line": 2 }), &files).unwrap();
        assert!(from.contains(":\n2: Line 2") && from.ends_with("959 more lines contain these words.\n"));
        assert!(call(json!({ "file": "a.txt", "words": "wolf" }), &files).unwrap().starts_with("No line"));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let error = |arguments, files: &[_]| call(arguments, files).unwrap_err().to_string();
        assert!(error(json!({ "file": "a" }), &[]).contains("No file"));
        let files = [("a.txt", "one"), ("ab.txt", "")];
        assert_eq!(
            error(json!({ "file": "c" }), &files),
            "There is no attached file c. Attached: a.txt, ab.txt"
        );
        assert!(error(json!({ "file": "a" }), &files).contains("There is no"), "two files are similar");
        assert!(error(json!({ "file": "a.txt", "first_line": 2 }), &files).contains("only 1 lines"));
        assert!(error(json!({}), &files).contains("\"file\""));
    }

    #[test]
    fn a_line_without_end_is_read_in_parts_of_a_few_kilobytes() {
        let long = "ä".repeat(100_000);
        let text = call(json!({ "file": "a", "last_line": 150 }), &[("a", &long)]).unwrap();
        assert!(text.len() < MOST_BYTES + 100 && text.contains("of 200:\n"), "{}", text.len());
    }
}
