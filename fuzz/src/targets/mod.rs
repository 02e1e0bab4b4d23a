//! What is fed with damage: each target has whole files to begin with, and says what must hold of damaged ones.

mod documents;
mod formats;
mod gguf;
mod hub;
mod import;
mod ipc;
mod remote;
mod server;
mod template;
mod trace;

use std::path::{Path, PathBuf};

use crate::run::files;

/// One of them.
pub struct Target {
    pub name: &'static str,
    /// Whole files.
    pub seeds: Vec<Vec<u8>>,
    /// Words of the format.
    pub words: &'static [&'static str],
    /// Damage is done to the first so many bytes.
    pub head: usize,
    /// The longest input in bytes.
    pub longest: usize,
    pub memory: Memory,
    /// Uses an input; in what words it was refused, if it was.
    pub run: Run,
}

/// Takes an input; returns in what words it was refused.
pub type Run = Box<dyn FnMut(&[u8]) -> Option<String>>;

/// What an input may take.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Bytes for each of its own.
    pub each: usize,
    /// Bytes beside that.
    pub beside: usize,
}

impl Memory {
    /// What an input of this length may take.
    pub fn bytes(self, length: usize) -> usize {
        self.each * length + self.beside
    }
}

/// How a target is made.
type Make = fn() -> Target;

/// All targets, each with its part of a hundred executions: those that are quick get more.
pub const ALL: [(&str, u64, Make); 14] = [
    ("hub", 21, hub::target),
    ("trace", 15, trace::target),
    ("template", 12, template::target),
    ("server", 6, server::target),
    ("remote", 5, remote::target),
    ("config", 10, documents::config),
    ("index", 7, documents::index),
    ("safetensors", 8, documents::safetensors),
    ("gguf", 6, gguf::target),
    ("tokenizer", 4, documents::tokenizer),
    ("formats", 1, formats::target),
    ("vocabulary", 2, gguf::vocabulary),
    ("ipc", 1, ipc::target),
    ("import", 2, import::target),
];

/// The target of that name.
pub fn target(name: &str) -> Option<Target> {
    ALL.iter().find(|(known, ..)| *known == name).map(|(_, _, make)| make())
}

/// The whole files of a target in the repository.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name))
}

/// A folder in memory where the system has one: millions of files are written.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// A file or folder of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
