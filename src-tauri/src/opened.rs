//! Files opened with the application: by the desktop or on the command line, at its start or later.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The files among a program's arguments; relative paths are relative to `folder`.
pub fn files(arguments: impl IntoIterator<Item = impl Into<OsString>>, folder: &Path) -> Vec<PathBuf> {
    arguments
        .into_iter()
        .map(Into::into)
        .filter(|argument| is_file(argument))
        .map(|path| folder.join(path))
        .collect()
}

/// Returns whether an argument is a file and not an option, since window systems add some.
fn is_file(argument: &OsStr) -> bool {
    !argument.is_empty() && !argument.as_encoded_bytes().starts_with(b"-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_are_not_options_are_files_relative_to_the_working_folder() {
        let named = ["--display=:1", "a b.gguf", "", "/models/größer.gguf", "-x"];
        let expected = [Path::new("/home/b/a b.gguf"), Path::new("/models/größer.gguf")];
        assert_eq!(files(named, Path::new("/home/b")), expected);
    }
}
