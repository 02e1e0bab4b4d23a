//! A JSON file shared by several programs: each changes it under a lock and replaces it atomically,
//! so a crash or another program leaves the old version or the new one.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cache::sync_folder_of;
use crate::{Error, Result, private};

/// Bytes that are read of a file; one with more counts as damaged.
const LARGEST: u64 = 16 << 20;

#[derive(Debug, Clone)]
pub(crate) struct JsonFile {
    path: PathBuf,
}

impl JsonFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the contents, or the default if there is no file or it cannot be read now; the file
    /// then stays. A damaged file is set aside.
    pub(crate) fn read<T: DeserializeOwned + Default>(&self) -> T {
        self.try_read().unwrap_or_else(|error| {
            tracing::warn!("{} cannot be read now: {error}", self.path.display());
            T::default()
        })
    }

    /// Returns the contents; the default only if there is no file. A damaged file is set aside.
    ///
    /// # Errors
    /// Any reason why an existing file cannot be read, for example too many open files.
    pub(crate) fn try_read<T: DeserializeOwned + Default>(&self) -> io::Result<T> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(T::default()),
            Err(error) => return Err(error),
        };
        let mut text = Vec::new();
        // JSON that is cut off is damaged.
        file.take(LARGEST).read_to_end(&mut text)?;
        Ok(serde_json::from_slice(&text).unwrap_or_else(|error| {
            tracing::warn!("{} cannot be read and was set aside: {error}", self.path.display());
            let _ = fs::rename(&self.path, self.path.with_extension("unreadable"));
            T::default()
        }))
    }

    /// # Errors
    /// `Error::Disk`.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut T)) -> Result<()>
    where
        T: Serialize + DeserializeOwned + Default,
    {
        let changed = || -> io::Result<()> {
            self.path.parent().map_or(Ok(()), fs::create_dir_all)?;
            let lock = File::create(self.path.with_extension("lock"))?;
            lock.lock()?;
            // What cannot be read must not be replaced.
            let mut contents = self.try_read()?;
            change(&mut contents);
            replace(&self.path, &serde_json::to_vec(&contents)?)
        };
        changed().map_err(|source| Error::Disk { path: self.path.clone(), source })
    }
}

/// Writes a temporary file and renames it, so a crash leaves the old contents or the new.
fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    // Windows syncs only through a handle with write access.
    // The file may contain secrets.
    let mut file = private::options().create(true).truncate(true).open(&beside)?;
    file.write_all(contents)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&beside, path)?;
    sync_folder_of(path)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    type Contents = BTreeMap<String, String>;

    #[cfg(unix)]
    #[test]
    fn a_file_that_cannot_be_read_for_a_moment_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.json");
        let file = JsonFile::new(path.clone());
        let add = |key: &str| {
            file.change(|contents: &mut Contents| drop(contents.insert(key.into(), String::new())))
        };
        // A link to itself cannot be opened, by whomever, and could be replaced.
        std::os::unix::fs::symlink(&path, &path).unwrap();
        let error = add("hen").unwrap_err();
        assert!(matches!(error, Error::Disk { .. }), "{error}");
        assert!(path.is_symlink(), "it was replaced");
        assert!(file.read::<Contents>().is_empty() && path.is_symlink());
        fs::remove_file(&path).unwrap();
        add("hen").unwrap();
        assert_eq!(file.read::<Contents>().keys().collect::<Vec<_>>(), ["hen"]);
    }

    #[test]
    fn a_missing_file_is_empty_and_a_damaged_one_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let file = JsonFile::new(folder.path().join("keys.json"));
        assert!(file.read::<Contents>().is_empty());
        fs::write(folder.path().join("keys.json"), "{").unwrap();
        file.change(|contents: &mut Contents| drop(contents.insert("fox".into(), "a".into()))).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("keys.unreadable")).unwrap(), "{");
    }
}
