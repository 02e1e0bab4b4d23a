//! Fuzz targets: each has seeds to mutate, and checks the invariants of mutated inputs.

mod calls;
mod contexts;
mod documents;
mod formats;
mod gbnf;
mod gguf;
mod hub;
mod import;
mod ipc;
mod mcp;
mod mmproj;
mod office;
mod picture;
mod remote;
mod server;
mod template;
mod trace;

use std::path::{Path, PathBuf};

use crate::run::files;

/// A fuzz target.
pub struct Target {
    pub name: &'static str,
    /// Valid files.
    pub seeds: Vec<Vec<u8>>,
    /// Words of the format.
    pub words: &'static [&'static str],
    /// Number of leading bytes that are mutated.
    pub head: usize,
    /// Longest input in bytes.
    pub longest: usize,
    pub memory: Memory,
    /// Processes an input.
    pub run: Run,
}

/// Processes an input; returns the message if it was refused.
pub type Run = Box<dyn FnMut(&[u8]) -> Option<String>>;

/// Allowed memory of an execution.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Bytes per byte of input.
    pub each: usize,
    /// Bytes in addition.
    pub beside: usize,
}

impl Memory {
    /// Returns the allowed memory for an input of this length.
    pub fn bytes(self, length: usize) -> usize {
        self.each * length + self.beside
    }
}

/// Constructor of a target.
type Make = fn() -> Target;

/// All targets, each with its share of a hundred executions: fast ones get more.
pub const ALL: [(&str, u64, Make); 23] = [
    ("hub", 13, hub::target),
    ("trace", 14, trace::target),
    ("template", 12, template::target),
    ("server", 6, server::target),
    ("remote", 5, remote::target),
    ("config", 9, documents::config),
    ("added_tokens", 2, documents::added_tokens),
    ("generation", 2, documents::generation),
    ("index", 4, documents::index),
    ("safetensors", 8, documents::safetensors),
    ("gguf", 6, gguf::target),
    ("tokenizer", 4, documents::tokenizer),
    ("formats", 1, formats::target),
    ("vocabulary", 2, gguf::vocabulary),
    ("ipc", 1, ipc::target),
    ("import", 2, import::target),
    ("office", 1, office::target),
    ("contexts", 3, contexts::target),
    ("calls", 1, calls::target),
    ("gbnf", 1, gbnf::target),
    ("mcp", 1, mcp::target),
    ("picture", 1, picture::target),
    ("mmproj", 1, mmproj::target),
];

/// Returns the target of this name.
pub fn target(name: &str) -> Option<Target> {
    ALL.iter().find(|(known, ..)| *known == name).map(|(_, _, make)| make())
}

/// Returns the seeds of a target in the repository.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name))
}

/// Creates a folder in memory if the system has one, because millions of files are written.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// Returns the path of a file or folder of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
