//! The program's own folders: their paths and their creation. Other modules define their contents.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use directories::ProjectDirs;

use crate::{Error, Result, private};

/// The data folder: `foretoken.db`, `models/`, `logs/`; and the folder for what can be computed
/// again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    root: PathBuf,
    contexts: PathBuf,
    /// `true` if a person named the root, who may share it with others on purpose.
    named: bool,
}

impl Folders {
    /// Locates the folder that FORETOKEN_DATA_DIR names, or else `dev.foretoken` in the platform's
    /// folder for application data. Creates nothing.
    pub fn locate() -> Result<Self> {
        Self::locate_with(std::env::var_os("FORETOKEN_DATA_DIR"))
    }

    fn locate_with(named: Option<OsString>) -> Result<Self> {
        if let Some(root) = path_named(named) {
            return Ok(Self::at(root));
        }
        // Local, not roaming: models are too large to follow a user between computers.
        let platform = ProjectDirs::from_path("dev.foretoken".into()).ok_or(Error::NoHome)?;
        let contexts = platform.cache_dir().join("contexts");
        Ok(Self { root: platform.data_local_dir().to_path_buf(), contexts, named: false })
    }

    /// Uses the folders below `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { contexts: root.join("contexts"), root, named: true }
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

    /// Folder with contexts of conversations, which programs for backups leave out.
    pub fn contexts(&self) -> PathBuf {
        self.contexts.clone()
    }

    /// Creates the missing folders, readable by their owner only. An existing root and its database
    /// are restricted likewise unless a person named it: then its permissions stay. On Windows the
    /// user profile's permissions do this.
    pub fn create(&self) -> Result<()> {
        private::create_folder(&self.root)
            .map_err(|source| Error::Folder { path: self.root.clone(), source })?;
        #[cfg(unix)]
        if !self.named {
            self.tighten();
        }
        for path in [self.models(), self.logs()] {
            std::fs::create_dir_all(&path).map_err(|source| Error::Folder { path, source })?;
        }
        Ok(())
    }

    /// Removes everyone else's permissions. A file system without owners stays unchanged.
    #[cfg(unix)]
    fn tighten(&self) {
        use std::os::unix::fs::PermissionsExt;
        let database = self.database().into_os_string();
        let files = ["", "-wal", "-shm"].map(|end| {
            let mut file = database.clone();
            file.push(end);
            PathBuf::from(file)
        });
        for path in [self.root.clone()].into_iter().chain(files) {
            // Links and special files were set up on purpose.
            let Ok(found) = path.symlink_metadata().map(|found| found.permissions()) else { continue };
            let own = found.mode() & !0o077;
            if found.mode() != own && !path.is_symlink() {
                let tightened = std::fs::set_permissions(&path, PermissionsExt::from_mode(own));
                if let Err(error) = tightened {
                    tracing::warn!("{}: other users may still be able to read it: {error}", path.display());
                }
            }
        }
    }
}

/// Returns the absolute path in the value of an environment variable; an empty value counts as
/// unset.
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
        // On Windows the path is on the current drive.
        let absolute = std::path::absolute("/somewhere/else").unwrap();
        assert_eq!(folders, Folders::at(&absolute));
        assert_eq!(folders.database(), absolute.join("foretoken.db"));
        let relative = Folders::locate_with(Some("here".into())).unwrap();
        assert_eq!(relative.root(), std::env::current_dir().unwrap().join("here"));
    }

    #[test]
    fn without_an_override_the_platforms_folder_is_named_after_the_program() {
        for named in [None, Some(OsString::new())] {
            let folders = Folders::locate_with(named).unwrap();
            assert!(folders.root().iter().any(|part| part == "dev.foretoken"), "{folders:?}");
        }
    }

    #[test]
    fn folders_are_created_only_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let folders = Folders::at(folder.path().join("data"));
        assert!(!folders.root().exists());
        folders.create().unwrap();
        folders.create().unwrap();
        assert!(folders.models().is_dir() && folders.logs().is_dir());
    }

    #[cfg(unix)]
    #[test]
    fn the_data_folder_is_private_unless_a_person_named_an_existing_one() {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        let folder = tempfile::tempdir().unwrap();
        let named = Folders::at(folder.path().join("new/data"));
        named.create().unwrap();
        assert_eq!((mode(named.root()), mode(&folder.path().join("new"))), (0o700, 0o700));

        for (own, expected) in [(false, [0o750, 0o640]), (true, [0o700, 0o600])] {
            let folders = Folders { named: !own, ..named.clone() };
            set(folders.root(), 0o750);
            for end in ["", "-wal", "-shm"] {
                let file = folders.root().join(format!("foretoken.db{end}"));
                std::fs::write(&file, "").unwrap();
                set(&file, 0o640);
            }
            folders.create().unwrap();
            assert_eq!([mode(folders.root()), mode(&folders.database())], expected, "own: {own}");
            for end in ["-wal", "-shm"] {
                assert_eq!(mode(&folders.root().join(format!("foretoken.db{end}"))), expected[1], "{end}");
            }
        }
    }

    #[test]
    fn a_folder_that_cannot_be_created_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = Folders::at(&file).create().unwrap_err().to_string();
        assert!(error.contains(&*file.to_string_lossy()) && error.contains("FORETOKEN_DATA_DIR"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_linked_database_keeps_the_permissions_of_its_target() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("elsewhere.db");
        std::fs::write(&outside, "").unwrap();
        std::fs::set_permissions(&outside, PermissionsExt::from_mode(0o644)).unwrap();
        let root = folder.path().join("data");
        let folders = Folders { named: false, contexts: root.join("contexts"), root };
        folders.create().unwrap();
        std::os::unix::fs::symlink(&outside, folders.database()).unwrap();
        folders.create().unwrap();
        assert_eq!(outside.metadata().unwrap().permissions().mode() & 0o777, 0o644);
    }
}
