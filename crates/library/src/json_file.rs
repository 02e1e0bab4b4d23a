//! A JSON file shared by several programs: each changes it under a lock and replaces it atomically,
//! so a crash or another program leaves the old version or the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cache::sync_folder_of;
use crate::{Error, Result};

#[derive(Debug, Clone)]
pub(crate) struct JsonFile {
    path: PathBuf,
}

impl JsonFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the contents, the default if there is no file. An unreadable file is set aside.
    pub(crate) fn read<T: DeserializeOwned + Default>(&self) -> T {
        let Ok(text) = fs::read(&self.path) else {
            return T::default();
        };
        serde_json::from_slice(&text).unwrap_or_else(|error| {
            tracing::warn!("{} cannot be read and was set aside: {error}", self.path.display());
            let _ = fs::rename(&self.path, self.path.with_extension("unreadable"));
            T::default()
        })
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
            let mut contents = self.read();
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
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    // The file may contain secrets.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    file.write_all(contents)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&beside, path)?;
    sync_folder_of(path)
}
