//! Setting aside a database that cannot be used: it is renamed, never deleted, with all that SQLite wrote beside it.

use std::path::{Path, PathBuf};

use crate::{Error, Result, Store};

/// What follows a database's name in the names of its files. The log comes first: a database that is gone takes its
/// log with it when a new one is made in its place.
const FILES: [&str; 4] = ["-wal", "-shm", "-journal", ""];

impl Store {
    /// Renames the database at `path`, which must not be open here, after `date`; returns its new path. Nothing is
    /// ever overwritten.
    ///
    /// # Errors
    /// [`Error::SetAside`] where a file cannot be renamed.
    pub fn set_aside(path: &Path, date: &str) -> Result<PathBuf> {
        let to = free(path, date);
        for file in FILES {
            let (from, to) = (with(path, file), with(&to, file));
            if is_there(&from) {
                std::fs::rename(&from, &to).map_err(|source| Error::SetAside { path: from, source })?;
            }
        }
        Ok(to)
    }
}

/// Refuses a log whose database is gone or empty: SQLite would delete it.
pub(crate) fn refuse_log_alone(path: &Path) -> Result<()> {
    let bytes = |path: &Path| path.metadata().map_or(0, |file| file.len());
    if bytes(path) > 0 || bytes(&with(path, "-wal")) == 0 {
        return Ok(());
    }
    let found = "the file is missing or empty, while what was written last is beside it".to_owned();
    Err(Error::Open { path: path.to_path_buf(), source: Box::new(Error::Damaged(found)) })
}

/// The first name of its kind to which all the files can go.
fn free(path: &Path, date: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map_or(String::new(), |end| format!(".{}", end.to_string_lossy()));
    let taken = |to: &PathBuf| FILES.iter().any(|end| is_there(&with(path, end)) && is_there(&with(to, end)));
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

/// Also a link that leads nowhere.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_set_aside_with_its_log_and_never_over_another() {
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
            assert!(FILES.iter().all(|end| !is_there(&with(&path, end))));
        }
        let mut kept: Vec<_> = folder.path().read_dir().unwrap().map(|file| file.unwrap().path()).collect();
        kept.sort();
        let kept: Vec<_> = kept.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
        assert_eq!(kept, ["2", "2-shm", "2-wal", "1", "1-shm", "1-wal"]);
    }

    #[test]
    fn what_was_set_aside_can_be_opened_again_with_what_only_its_log_had() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("foretoken.db");
        let store = Store::open(&path).unwrap();
        store.create_conversation("kept").unwrap();
        // As after a kill: the log is not folded in.
        let copied = folder.path().join("killed.db");
        for end in ["", "-wal"] {
            std::fs::copy(with(&path, end), with(&copied, end)).unwrap();
        }
        let aside = Store::set_aside(&copied, "2026-11-23").unwrap();
        assert_eq!(Store::open(&aside).unwrap().conversations().unwrap()[0].title, "kept");
        assert!(Store::open(&copied).unwrap().conversations().unwrap().is_empty());
    }

    #[test]
    fn a_log_without_its_database_is_neither_taken_for_another_ones_nor_deleted() {
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
