//! Free space of a disk.

use std::path::Path;

/// Returns the free bytes at `path`, which need not exist yet; `None` if the disk does not report
/// them.
pub(crate) fn free_at(path: &Path) -> Option<u64> {
    let existing = path.ancestors().find(|folder| folder.is_dir());
    existing.and_then(|folder| fs4::available_space(folder).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_has_the_free_space_of_its_parent() {
        let folder = tempfile::tempdir().unwrap();
        assert!(free_at(&folder.path().join("not/there/yet")).is_some_and(|bytes| bytes > 0));
    }
}
