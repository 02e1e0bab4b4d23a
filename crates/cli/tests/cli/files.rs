//! `generate --file`: the text of files stands before the prompt, of long ones what matches it.
//! Files without text are named.

use std::path::Path;

use foretoken_tests::RandomEmbedder;

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
fn of_a_long_file_the_beginning_and_what_matches_the_prompt_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("towns.md");
    let town = |number| format!("## Town {number}\nIt rained in town {number}. The river rose.\n");
    let keeper = "## Lighthouse\nThe keeper of the lighthouse is called Ines.\n";
    std::fs::write(&path, (0..500).map(town).collect::<String>() + keeper).unwrap();
    let read = |question: &str, more: &[&str]| {
        let ask = ["generate", "--target", "starter", "--max-tokens", "1", "--temperature", "0", "--prompt"];
        let file = ["--file", path.to_str().unwrap()];
        json(&[&ask[..], &[question], &file, more].concat()).pop().unwrap()["prompt_tokens"].as_u64().unwrap()
    };
    let (none, one) = (read("Zebra?", &[]), read("Keeper?", &[]));
    assert!(none + 40 < one && one < 1_024, "{none} {one}");
    // With embeddings something is always similar.
    let model = RandomEmbedder::new("bert").write_folder(folder.path());
    assert!(none + 40 < read("Zebra?", &["--embedding-model", model.to_str().unwrap()]));
}

#[test]
fn files_without_text_are_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let files: [(&str, &[u8], &str); 5] = [
        ("a.docx", b"PK\x03\x04 cut", "damaged or cut short"),
        ("b.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old versions of Office"),
        ("c.bin", b"\0\xff", "neither text nor"),
        ("d.txt", b" \n", "no text"),
        ("e.pdf", b"%PDF-1.4\n", "read in the window only"),
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
