//! Files of other programs, read with limits.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::model_path::Found;

/// Most models of one program.
pub(super) const MOST: usize = 1_000;

/// Largest file that describes a model or holds a program's settings, in bytes.
const LARGEST_TEXT: u64 = 1 << 20;

/// Returns a path below `root` with slashes.
pub(super) fn name_below(root: &Path, path: &Path) -> Option<String> {
    Some(path.strip_prefix(root).ok()?.to_str()?.replace('\\', "/")).filter(|name| !name.is_empty())
}

/// Returns whether a path leads to something below `root`, links followed. The root itself may be
/// a link.
pub(super) fn is_inside(root: &Path, path: &Path) -> bool {
    let Ok(root) = fs::canonicalize(root) else { return false };
    fs::canonicalize(path).is_ok_and(|path| path.starts_with(root))
}

/// Reads a text file of at most [`LARGEST_TEXT`] bytes; `None` for what is no such file.
pub(super) fn read_text(path: &Path) -> Option<String> {
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    let read = File::open(path).ok()?.take(LARGEST_TEXT + 1).read_to_string(&mut text).ok()?;
    (read as u64 <= LARGEST_TEXT).then_some(text)
}

/// A file of weights, whatever its name.
pub(super) fn weights(path: PathBuf) -> Option<Found> {
    let metadata = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
    Some(Found { size_bytes: metadata.len(), path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_large_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, " ".repeat(LARGEST_TEXT as usize)).unwrap();
        assert!(read_text(&path).is_some());
        std::fs::write(&path, " ".repeat(LARGEST_TEXT as usize + 1)).unwrap();
        assert!(read_text(&path).is_none());
        assert!(read_text(folder.path()).is_none());
    }
}
