//! Files and folders that their owner alone may read. On Windows the person's profile sees to that already.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Makes a folder and those above it, where they are missing.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Makes an empty file where there is nothing; SQLite takes it for a new database, and gives what it writes beside it
/// the same permissions. Where it cannot be made, SQLite says why.
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
    fn what_the_store_makes_is_for_its_owner_alone() {
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
