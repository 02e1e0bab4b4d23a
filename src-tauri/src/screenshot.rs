//! Screenshots for a message: a person selects a region, a window or the screen in the desktop's
//! own dialog. Windows has no such dialog for programs; its Snipping Tool fills the clipboard.

use std::path::PathBuf;

use foretoken_app::error::Result;
use foretoken_app::ipc::{CommandError, ErrorCode};

use crate::drag;

/// True on systems with such a dialog.
pub const IS_OFFERED: bool = !cfg!(windows);

/// Returns the picture file of a screenshot that a person takes now; it is empty if the dialog was
/// cancelled.
///
/// # Errors
/// `NotFound` if the desktop offers no screenshots, `BadAttachment` for a file that cannot be read.
pub fn take() -> Result<Vec<u8>> {
    let taken = ask().map_err(|error| {
        tracing::warn!("no screenshot was taken: {error}");
        CommandError::new(ErrorCode::NotFound, "This desktop offers no screenshots to programs.")
    })?;
    taken.map_or(Ok(Vec::new()), |file| drag::contents(&file.path, "The screenshot"))
}

/// File of a screenshot.
struct Taken {
    path: PathBuf,
    /// Folder that is removed with this value.
    #[cfg(target_os = "macos")]
    _folder: tempfile::TempDir,
}

type Asked = std::result::Result<Option<Taken>, Box<dyn std::error::Error>>;

/// Asks the desktop portal, whose dialogs save the screenshot where they save all others.
#[cfg(target_os = "linux")]
fn ask() -> Asked {
    use ashpd::Error::Response;
    use ashpd::desktop::ResponseError;
    use ashpd::desktop::screenshot::Screenshot;

    let request = async { Screenshot::request().interactive(true).modal(true).send().await?.response() };
    match tauri::async_runtime::block_on(request) {
        Ok(screenshot) => {
            let path = tauri::Url::parse(screenshot.uri().as_str())?.to_file_path();
            Ok(Some(Taken { path: path.map_err(|()| "the portal named no local file")? }))
        }
        Err(Response(ResponseError::Cancelled)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Runs the system's program for screenshots, which writes no file when it is cancelled.
#[cfg(target_os = "macos")]
fn ask() -> Asked {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("screenshot.png");
    std::process::Command::new("/usr/sbin/screencapture").args(["-i", "-o"]).arg(&path).status()?;
    let exists = path.exists();
    Ok(exists.then_some(Taken { path, _folder: folder }))
}

#[cfg(windows)]
fn ask() -> Asked {
    Err("Windows has no dialog for it".into())
}
