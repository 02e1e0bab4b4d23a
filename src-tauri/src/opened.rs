//! Files that are opened with the application: by the desktop, at its start or while it runs, or named on its command
//! line.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The files among a program's arguments, of which those without a folder lie in `folder`.
pub fn files(arguments: impl IntoIterator<Item = impl Into<OsString>>, folder: &Path) -> Vec<PathBuf> {
    arguments
        .into_iter()
        .map(Into::into)
        .filter(|argument| is_file(argument))
        .map(|path| folder.join(path))
        .collect()
}

/// Whether an argument names a file, and is not an option, as window systems have some.
fn is_file(argument: &OsStr) -> bool {
    !argument.is_empty() && !argument.as_encoded_bytes().starts_with(b"-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_what_is_no_option_and_lie_where_the_program_was_called() {
        let named = ["--display=:1", "a b.gguf", "", "/models/größer.gguf", "-x"];
        let expected = [Path::new("/home/b/a b.gguf"), Path::new("/models/größer.gguf")];
        assert_eq!(files(named, Path::new("/home/b")), expected);
    }
}
