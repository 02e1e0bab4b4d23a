//! Mechanical rules for the language of sources: first words of doc comments, the length of comment
//! lines, and retired words.
//!
//! A plain text search, line by line. It judges the folders in CLEAN, to which a folder is added
//! once it keeps the rules.

use std::fs;
use std::path::{Path, PathBuf};

use foretoken_tests::repository;

/// Folders and files that keep the rules.
const CLEAN: &[&str] = &[
    "crates/app",
    "crates/bench",
    "crates/cli",
    "crates/engine",
    "crates/forward",
    "crates/library",
    "crates/json",
    "crates/model",
    "crates/persistence",
    "crates/remote",
    "crates/server",
    "crates/store",
    "crates/testkit",
    "fuzz",
    "src-tauri",
    "tests",
    "training/head",
];

/// First words of a doc comment that leave its subject open.
const OPENINGS: &[&str] = &["What", "Of", "Those", "That", "Whether", "The same", "So", "They", "It"];

/// Longest line that is only a comment, in characters.
const LONGEST: usize = 100;

/// Retired words, each with its successor. They are found in comments and as words of a name:
/// `let_hear` and `LetHear` contain "hear".
const RETIRED: &[(&str, &str)] = &[
    ("anew", "again"),
    ("deaf", "missing features"),
    ("hear", "observe"),
    ("hearing", "catching up"),
    ("lasting", "checkpoint"),
    ("manieth", "n-th"),
    ("pollution", "cache eviction cost"),
    ("reckon", "estimate"),
    ("sights", "masks"),
    ("unheard", "missing"),
    ("unturned", "without RoPE"),
];

/// Broken rules of a source: line number, from 1, and the rule.
fn violations(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut doc_before = false;
    for (number, line) in (1..).zip(text.lines()) {
        let comment = line.trim_start();
        let doc = ["/// ", "//! "].iter().find_map(|mark| comment.strip_prefix(mark));
        if let Some(doc) = doc.filter(|_| !doc_before) {
            let opens = |opening: &&&str| {
                let rest = doc.strip_prefix(**opening);
                rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
            };
            if let Some(opening) = OPENINGS.iter().find(opens) {
                found
                    .push((number, format!("a doc comment begins with its subject, not with \"{opening}\"")));
            }
        }
        doc_before = comment.starts_with("///") || comment.starts_with("//!");
        let length = line.chars().count();
        if comment.starts_with("//") && length > LONGEST {
            found.push((number, format!("a comment line has at most {LONGEST} characters, not {length}")));
        }
        let words = words(line);
        for (retired, successor) in RETIRED.iter().filter(|(retired, _)| words.iter().any(|w| w == retired)) {
            found.push((number, format!("\"{retired}\" was retired for \"{successor}\"")));
        }
    }
    found
}

/// Words of a line outside of quotation marks, in lower case. Names are split at `_` and capitals.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in line.split('"').step_by(2).flat_map(|part| part.chars().chain([' '])) {
        if !letter.is_alphabetic() || (letter.is_uppercase() && !before.is_uppercase()) {
            words.push(String::new());
        }
        if letter.is_alphabetic() {
            words.last_mut().unwrap().extend(letter.to_lowercase());
        }
        before = letter;
    }
    words
}

/// Rust and WGSL files at or under `path`.
fn sources(path: PathBuf) -> Vec<PathBuf> {
    if path.is_dir() {
        let entries = fs::read_dir(&path).unwrap();
        return entries.flat_map(|entry| sources(entry.unwrap().path())).collect();
    }
    let is_source = path.extension().is_some_and(|extension| extension == "rs" || extension == "wgsl");
    assert!(is_source || path.is_file(), "{} does not exist", path.display());
    if is_source { vec![path] } else { Vec::new() }
}

#[test]
fn comments_and_names_of_clean_folders_keep_the_rules() {
    let mut broken = Vec::new();
    let files = CLEAN.iter().flat_map(|clean| sources(repository().join(clean)));
    // This file has to contain the retired words.
    for path in files.filter(|path| !path.ends_with("tests/repository/language.rs")) {
        let name = path.strip_prefix(repository()).unwrap_or(Path::new("")).display().to_string();
        for (line, rule) in violations(&fs::read_to_string(&path).unwrap()) {
            broken.push(format!("{name}:{line}: {rule}"));
        }
    }
    assert!(broken.is_empty(), "{} broken rules:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn each_rule_finds_its_violations_and_nothing_else() {
    let lines = |text: &str| violations(text).iter().map(|(line, _)| *line).collect::<Vec<_>>();
    assert_eq!(lines("/// What runs.\n/// Of rows.\nfn a() {}\n    //! The same.\n"), [1, 4]);
    assert_eq!(lines("/// Italic\n\n/// Theirs\n\n/// `What`\n\n// That is all.\n//// Those.\n"), [0; 0]);
    let long = "ü".repeat(LONGEST - 3);
    assert_eq!(lines(&format!("// {long}\n/// {long}\n  // {long}\nlet a = 1; // {long}\n")), [2, 3]);
    assert_eq!(
        lines("fn let_hear(a: LetHear) {}\n// Hear, `deaf`.\nlet a = \"hear\"; deaf();\n"),
        [1, 2, 2, 3]
    );
    assert_eq!(lines("fn heard() {}\n// They hearken: \"hear\".\nlet a = \"hear\";\n"), [0; 0]);
}
