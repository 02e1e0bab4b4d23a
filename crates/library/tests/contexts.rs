//! Contexts of two programs in one folder at once.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::ErrorKind;
use std::process::{Command, Stdio};

use foretoken_library::{Contexts, Folders};

const MODEL: [u8; 32] = [7; 32];
const ROUNDS: u8 = 60;

fn page(number: u8) -> Vec<u8> {
    vec![number; 2000]
}

fn contexts(folder: impl Into<std::path::PathBuf>) -> Contexts {
    Contexts::new(&Folders::at(folder))
}

/// Runs in a process of its own: writes a text again and again and reads it back, and removes
/// another one, with pages of both that no text names any more.
#[test]
fn writes_removes_and_reads_its_own_texts() {
    let Ok(folder) = std::env::var("FORETOKEN_TEST_CONTEXTS") else { return };
    let name = std::env::var("FORETOKEN_TEST_NAME").unwrap();
    let (contexts, first) = (contexts(folder), name.as_bytes()[0]);
    let model = contexts.of_model(MODEL);
    for round in 0..ROUNDS {
        let pages = [1, first, first + round % 3];
        let hashes = pages.map(|page| [page; 32]);
        let mut bytes_of = |number: usize| page(pages[number]);
        model.save(&name, &hashes, &mut bytes_of, &[round; 100]).unwrap();
        let (named, text) = model.text(&name).unwrap();
        assert_eq!((named, text), (hashes.to_vec(), vec![round; 100]));
        for number in pages {
            assert_eq!(model.page(&[number; 32], 2000).unwrap(), page(number), "round {round}");
        }
        let short = format!("{name}-short");
        model.save(&short, &[[first + 9; 32]], &mut |_| page(first + 9), b"x").unwrap();
        contexts.remove(&short).unwrap();
        contexts.tidy(u64::MAX).unwrap();
    }
}

#[test]
fn two_programs_write_and_remove_contexts_in_one_folder_without_losing_any() {
    let folder = tempfile::tempdir().unwrap();
    let start = |name: &str| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writes_removes_and_reads_its_own_texts"])
            .env("FORETOKEN_TEST_CONTEXTS", folder.path())
            .env("FORETOKEN_TEST_NAME", name)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut programs = ["A", "Q"].map(start);
    let contexts = contexts(folder.path());
    let model = contexts.of_model(MODEL);
    // Whoever reads meanwhile finds whole files or none.
    while programs.iter_mut().any(|program| program.try_wait().unwrap().is_none()) {
        for name in ["A", "Q", "A-short"] {
            let pages = model.text(name).map_or_else(
                |error| {
                    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
                    Vec::new()
                },
                |(pages, _)| pages,
            );
            for hash in pages {
                match model.page(&hash, 2000) {
                    Ok(bytes) => assert_eq!(bytes, page(hash[0])),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
                }
            }
        }
    }
    for program in programs {
        let output = program.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    contexts.tidy(u64::MAX).unwrap();
    for name in ["A", "Q"] {
        let (pages, text) = model.text(name).unwrap();
        assert_eq!(text, [ROUNDS - 1; 100]);
        assert!(pages.iter().all(|hash| model.page(hash, 2000).is_ok_and(|bytes| bytes == page(hash[0]))));
    }
}
