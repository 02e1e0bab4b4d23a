//! `generate --file`: the text of files stands before the prompt; files without text are named.

use std::path::Path;

use crate::program::{Run, json, run};

const PAGE: &str = "<!DOCTYPE html><html><body><h1>Foxes</h1><p>A fox found a lantern.</p></body></html>";

fn prompt_tokens(more: &[&str]) -> u64 {
    let ask =
        ["generate", "--target", "starter", "--prompt", "what?", "--max-tokens", "1", "--temperature", "0"];
    json(&[&ask[..], more].concat()).pop().unwrap()["prompt_tokens"].as_u64().unwrap()
}

#[test]
fn the_text_of_files_stands_before_the_prompt() {
    let folder = tempfile::tempdir().unwrap();
    let [page, notes] = ["page", "notes.txt"].map(|name| folder.path().join(name));
    std::fs::write(&page, PAGE).unwrap();
    std::fs::write(&notes, "The hen saw it.").unwrap();
    let [page, notes] = [&page, &notes].map(|path| path.to_str().unwrap());
    let (none, one) = (prompt_tokens(&[]), prompt_tokens(&["--file", page]));
    let both = prompt_tokens(&["--file", page, "--file", notes]);
    assert!(none < one && one < both, "{none} {one} {both}");
}

#[test]
fn files_without_text_are_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let files: [(&str, &[u8], &str); 4] = [
        ("a.docx", b"PK\x03\x04 cut", "damaged or cut short"),
        ("b.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old versions of Office"),
        ("c.bin", b"\0\xff", "neither text nor"),
        ("d.txt", b" \n", "no text"),
    ];
    for (name, bytes, expected) in files {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        assert_refused(&path, expected);
    }
    assert_refused(&folder.path().join("gone.txt"), "gone.txt");
}

fn assert_refused(path: &Path, expected: &str) {
    let ask = ["generate", "--target", "starter", "--prompt", "what?", "--file", path.to_str().unwrap()];
    let Run { code, err, .. } = run(&ask);
    assert!(code != 0 && err.contains(expected), "{}: {err}", path.display());
}
