//! The program's own folders. Says where they are and makes them; what is in them belongs to others.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use directories::ProjectDirs;

use crate::{Error, Result};

/// The data folder: `foretoken.db`, `models/`, `logs/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    root: PathBuf,
}

impl Folders {
    /// The folder FORETOKEN_DATA_DIR names, or else `dev.foretoken` where the platform keeps a
    /// program's data. Makes nothing.
    pub fn locate() -> Result<Self> {
        Self::locate_with(std::env::var_os("FORETOKEN_DATA_DIR"))
    }

    fn locate_with(named: Option<OsString>) -> Result<Self> {
        if let Some(root) = path_named(named) {
            return Ok(Self { root });
        }
        // Local, not roaming: models are too big to follow a person from computer to computer.
        let platform = ProjectDirs::from_path("dev.foretoken".into()).ok_or(Error::NoHome)?;
        Ok(Self { root: platform.data_local_dir().to_path_buf() })
    }

    /// These folders below a root of one's own.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn database(&self) -> PathBuf {
        self.root.join("foretoken.db")
    }

    pub fn models(&self) -> PathBuf {
        self.root.join("models")
    }

    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// Makes the folders that are missing.
    pub fn create(&self) -> Result<()> {
        for path in [self.models(), self.logs()] {
            std::fs::create_dir_all(&path).map_err(|source| Error::Folder { path, source })?;
        }
        Ok(())
    }
}

/// The absolute path in the value of an environment variable; an empty value counts as none.
pub(crate) fn path_named(value: Option<OsString>) -> Option<PathBuf> {
    let value = value.filter(|value| !value.is_empty())?;
    Some(std::path::absolute(&value).unwrap_or_else(|_| value.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_overrides_the_platforms_folder() {
        let folders = Folders::locate_with(Some("/somewhere/else".into())).unwrap();
        assert_eq!(folders, Folders::at("/somewhere/else"));
        assert_eq!(folders.database(), Path::new("/somewhere/else/foretoken.db"));
        let relative = Folders::locate_with(Some("here".into())).unwrap();
        assert_eq!(relative.root(), std::env::current_dir().unwrap().join("here"));
    }

    #[test]
    fn without_an_override_the_platforms_folder_is_called_after_the_program() {
        for named in [None, Some(OsString::new())] {
            let folders = Folders::locate_with(named).unwrap();
            assert!(folders.root().iter().any(|part| part == "dev.foretoken"), "{folders:?}");
        }
    }

    #[test]
    fn folders_are_made_when_asked_for_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let folders = Folders::at(folder.path().join("data"));
        assert!(!folders.root().exists());
        folders.create().unwrap();
        folders.create().unwrap();
        assert!(folders.models().is_dir() && folders.logs().is_dir());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let error = Folders::at(folder.path().join("file")).create().unwrap_err().to_string();
        assert!(error.contains("file/models") && error.contains("FORETOKEN_DATA_DIR"), "{error}");
    }
}
