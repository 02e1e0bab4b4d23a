//! Writes files for the user: into the Downloads folder, under an unused name, so nothing is
//! overwritten.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use directories::UserDirs;

use crate::error::Result;
use crate::ipc::{CommandError, ErrorCode};

/// Most names that are tried: "trace.jsonl", "trace (2).jsonl" and so on.
const MAX_NAMES: u32 = 1000;

/// Returns the user's Downloads folder; `None` if the system has none.
pub fn downloads() -> Option<PathBuf> {
    UserDirs::new()?.download_dir().map(Path::to_path_buf)
}

/// Writes `text` to `folder`, created if missing, under `name` or a similar one; returns the path.
///
/// # Errors
/// Returns `BadSetting` if `name` is not a plain file name; `Internal` if nothing can be written.
pub fn save(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    save_by(folder, name, |file| Ok(file.write_all(text.as_bytes())?))
}

/// Reason why nothing was saved.
pub enum Unsaved {
    /// The file could not be written.
    File(io::Error),
    /// The content could not be produced.
    Content(CommandError),
}

impl From<io::Error> for Unsaved {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<CommandError> for Unsaved {
    fn from(error: CommandError) -> Self {
        Self::Content(error)
    }
}

/// Saves the content that `write` writes, like [`save`].
///
/// # Errors
/// Same as [`save`], and errors of `write`.
pub fn save_by(
    folder: &Path,
    name: &str,
    write: impl FnOnce(&mut dyn Write) -> Result<(), Unsaved>,
) -> Result<PathBuf> {
    if Path::new(name).file_name() != Some(name.as_ref()) || name.contains(['/', '\\', '\0']) {
        return Err(CommandError::new(
            ErrorCode::BadSetting,
            format!("name: expected that of a file, found {name:?}."),
        ));
    }
    let refused = |path: &Path, error: io::Error| {
        let message = format!(
            "{} could not be written: {error}. Is the disk full or the folder read-only?",
            path.display()
        );
        CommandError::new(ErrorCode::Internal, message)
    };
    std::fs::create_dir_all(folder).map_err(|error| refused(folder, error))?;
    let (path, mut file) = free(folder, name).map_err(|error| refused(&folder.join(name), error))?;
    let written = write(&mut file).and_then(|()| Ok(file.sync_all()?));
    written.map_err(|error| {
        // A partial file is worse than none.
        let _ = std::fs::remove_file(&path);
        match error {
            Unsaved::File(error) => refused(&path, error),
            Unsaved::Content(error) => error,
        }
    })?;
    Ok(path)
}

/// Creates a new file of this name, or of the first similar name that is unused.
fn free(folder: &Path, name: &str) -> io::Result<(PathBuf, File)> {
    let (stem, extension) = name
        .rsplit_once('.')
        .map_or((name, String::new()), |(stem, extension)| (stem, format!(".{extension}")));
    let mut path = folder.join(name);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    // Conversations are for their owner only, wherever the folder is.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    for number in 2..=MAX_NAMES {
        match options.open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                path = folder.join(format!("{stem} ({number}){extension}"));
            }
            opened => return opened.map(|file| (path, file)),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_file_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("new");
        let names: Vec<_> = ["one", "two", "three"]
            .map(|text| save(&folder, "trace.jsonl", text).unwrap().file_name().unwrap().to_owned())
            .to_vec();
        assert_eq!(names, ["trace.jsonl", "trace (2).jsonl", "trace (3).jsonl"]);
        assert_eq!(std::fs::read_to_string(folder.join("trace (2).jsonl")).unwrap(), "two");
    }

    #[cfg(unix)]
    #[test]
    fn saved_files_are_readable_by_their_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = save(folder.path(), "foxes.json", "text").unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_name_that_leads_out_of_the_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["", ".", "..", "../up.txt", "/etc/passwd", "a/b", "a\\b", "nul\0"] {
            let error = save(folder.path(), name, "text").unwrap_err();
            assert_eq!(error.code, ErrorCode::BadSetting, "{name:?}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = save(&file, "trace.jsonl", "text").unwrap_err();
        assert!(error.message.contains("file") && error.code == ErrorCode::Internal, "{}", error.message);
    }
}
