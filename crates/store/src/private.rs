//! Files and folders that only their owner can read. On Windows the user profile's permissions do
//! this already.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a folder and its missing parents.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Creates an empty file if there is none. SQLite uses it as a new database and gives the files
/// beside it the same permissions. If the file cannot be created, SQLite reports the error.
pub(crate) fn create_file(path: &Path) {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _ = options.open(path);
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use crate::Store;

    #[test]
    fn files_of_the_store_are_readable_by_their_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("above/data");
        let store = Store::open(&data.join("foretoken.db")).unwrap();
        store.create_conversation("secret").unwrap();
        let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&data), mode(data.parent().unwrap())), (0o700, 0o700));
        let files: Vec<_> = data.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 3, "{files:?}");
        for file in files {
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
    }
}
