//! Folders in the system's file manager.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use foretoken_app::error::Result;
use foretoken_app::ipc::{CommandError, ErrorCode};

/// Program that opens a folder in the file manager.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else if cfg!(windows) {
    "explorer"
} else {
    "xdg-open"
};

/// Opens `folder` in the file manager, without waiting for it.
///
/// # Errors
/// `NotFound` with the folder's path if the folder is gone or nothing can open it.
pub fn open(folder: &Path) -> Result<()> {
    open_with(OPENER, folder)
}

fn open_with(program: &str, folder: &Path) -> Result<()> {
    start(program, folder).map_err(|error| {
        tracing::warn!("{}: {program}: {error}", folder.display());
        let message = format!("The folder could not be opened. It is here: {}", folder.display());
        CommandError::new(ErrorCode::NotFound, message)
    })
}

fn start(program: &str, folder: &Path) -> io::Result<()> {
    folder.read_dir()?;
    let mut command = Command::new(program);
    command.arg(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut opener = command.spawn()?;
    // On Unix an ended process remains a zombie until it is waited for.
    thread::spawn(move || opener.wait());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_folder_that_is_missing_or_cannot_be_opened() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let problem = open_with("foretoken-no-such-program", here).unwrap_err();
        assert!(problem.message.ends_with(env!("CARGO_MANIFEST_DIR")), "{}", problem.message);
        let gone = here.join("no-such-folder");
        assert_eq!(open_with("true", &gone).unwrap_err().code, ErrorCode::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn opening_a_folder_does_not_wait_for_the_file_manager() {
        assert_eq!(open_with("true", Path::new(env!("CARGO_MANIFEST_DIR"))), Ok(()));
    }
}
