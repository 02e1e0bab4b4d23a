//! Responses of the hub: a repository, the tree of its files, and the headers of a file.

use foretoken_library::fuzzing::{self, Answers};

use super::{Memory, Target, corpus};

const WORDS: &[&str] = &[
    "\"type\":\"file\"",
    "\"type\":\"directory\"",
    "path",
    "size",
    "oid",
    "lfs",
    "sha",
    "gated",
    "tags",
    "license:mit",
    "siblings",
    "rfilename",
    "model-00001-of-00002.gguf",
    "model-00002-of-00002.gguf",
    "model.safetensors",
    "config.json",
    "mmproj",
    "-00001-of-99999.gguf",
    "../",
    "C:",
    "\\\\",
    "etag:",
    "x-linked-etag:",
    "x-linked-size:",
    "content-length:",
    "content-range:",
    "bytes 5-9/10",
    "location:",
    "//elsewhere",
    "W/\"",
    "con.gguf",
    "\\u202e",
    "xetHash",
    "lastCommit",
];

/// Separator of the three responses in an input.
const BETWEEN: &str = "\n---\n";

pub fn target() -> Target {
    Target {
        name: "hub",
        seeds: corpus("hub"),
        words: WORDS,
        head: usize::MAX,
        longest: 4096,
        memory: Memory { each: 256, beside: 1 << 20 },
        run: Box::new(|input| {
            let text = String::from_utf8_lossy(input);
            let mut parts = text.splitn(3, BETWEEN);
            let mut part = || parts.next().unwrap_or_default();
            let answers = Answers { repository: part(), tree: part(), headers: part() };
            let read = fuzzing::read(&answers);
            for path in &read.paths {
                assert!(path.split('/').all(|part| !["", ".", ".."].contains(&part)), "{path:?}");
                assert!(!path.contains(['\\', ':']) && !path.contains(char::is_control), "{path:?}");
            }
            assert!(read.etag.is_none_or(|etag| etag.chars().all(|sign| sign.is_ascii_hexdigit())));
            read.refusal
        }),
    }
}
