//! Setting aside an unusable database: the file and SQLite's files beside it are renamed, never
//! deleted.

use std::path::{Path, PathBuf};

use crate::{Error, Result, Store};

/// Suffixes of a database's files. The write-ahead log is renamed first: without its database it
/// would be lost when a new database is created in its place.
const FILES: [&str; 4] = ["-wal", "-shm", "-journal", ""];

impl Store {
    /// Renames the database at `path`, which must not be open here, after `date`; returns its new
    /// path. Existing files are never overwritten.
    ///
    /// # Errors
    /// Returns [`Error::SetAside`] if a file cannot be renamed.
    pub fn set_aside(path: &Path, date: &str) -> Result<PathBuf> {
        let to = free(path, date);
        for file in FILES {
            let (from, to) = (with(path, file), with(&to, file));
            if exists(&from) {
                std::fs::rename(&from, &to).map_err(|source| Error::SetAside { path: from, source })?;
            }
        }
        Ok(to)
    }
}

/// Refuses a write-ahead log whose database is missing or empty: SQLite would delete the log.
pub(crate) fn refuse_log_alone(path: &Path) -> Result<()> {
    let bytes = |path: &Path| path.metadata().map_or(0, |file| file.len());
    if bytes(path) > 0 || bytes(&with(path, "-wal")) == 0 {
        return Ok(());
    }
    let found = "the file is missing or empty, but its write-ahead log is still there".to_owned();
    Err(Error::Open { path: path.to_path_buf(), source: Box::new(Error::Damaged(found)) })
}

/// Returns the first name under which none of the files exists yet.
fn free(path: &Path, date: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map_or(String::new(), |end| format!(".{}", end.to_string_lossy()));
    let taken = |to: &PathBuf| FILES.iter().any(|end| exists(&with(path, end)) && exists(&with(to, end)));
    let mut to = path.with_file_name(format!("{stem}-set-aside-{date}{extension}"));
    let mut number = 2;
    while taken(&to) {
        to = path.with_file_name(format!("{stem}-set-aside-{date}-{number}{extension}"));
        number += 1;
    }
    to
}

fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Returns whether `path` exists; a broken link counts as existing.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_set_aside_with_its_log_and_overwrites_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("foretoken.db");
        for (number, name) in
            [(1, "foretoken-set-aside-2026-11-23.db"), (2, "foretoken-set-aside-2026-11-23-2.db")]
        {
            for end in ["", "-wal", "-shm"] {
                std::fs::write(with(&path, end), format!("{number}{end}")).unwrap();
            }
            let aside = Store::set_aside(&path, "2026-11-23").unwrap();
            assert_eq!(aside, folder.path().join(name));
            assert!(FILES.iter().all(|end| !exists(&with(&path, end))));
        }
        let mut kept: Vec<_> = folder.path().read_dir().unwrap().map(|file| file.unwrap().path()).collect();
        kept.sort();
        let kept: Vec<_> = kept.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
        assert_eq!(kept, ["2", "2-shm", "2-wal", "1", "1-shm", "1-wal"]);
    }

    #[test]
    fn a_database_that_was_set_aside_still_has_the_changes_in_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("foretoken.db");
        let store = Store::open(&path).unwrap();
        store.create_conversation("kept").unwrap();
        // A kill leaves the log like this: not yet checkpointed.
        let copied = folder.path().join("killed.db");
        for end in ["", "-wal"] {
            std::fs::copy(with(&path, end), with(&copied, end)).unwrap();
        }
        let aside = Store::set_aside(&copied, "2026-11-23").unwrap();
        assert_eq!(Store::open(&aside).unwrap().conversations().unwrap()[0].title, "kept");
        assert!(Store::open(&copied).unwrap().conversations().unwrap().is_empty());
    }

    #[test]
    fn a_log_without_its_database_is_neither_reused_nor_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("foretoken.db");
        let store = Store::open(&path).unwrap();
        store.create_conversation("kept").unwrap();
        let log = std::fs::read(with(&path, "-wal")).unwrap();
        let alone = folder.path().join("alone.db");
        for database in [None, Some("")] {
            std::fs::write(with(&alone, "-wal"), &log).unwrap();
            database.inspect(|bytes| std::fs::write(&alone, bytes).unwrap());
            let error = Store::open(&alone).err().unwrap();
            assert!(
                matches!(&error, Error::Open { source, .. } if matches!(**source, Error::Damaged(_))),
                "{error}"
            );
            assert_eq!(std::fs::read(with(&alone, "-wal")).unwrap(), log);
            let aside = Store::set_aside(&alone, "2026-11-23").unwrap();
            assert_eq!(std::fs::read(with(&aside, "-wal")).unwrap(), log);
        }
    }
}
