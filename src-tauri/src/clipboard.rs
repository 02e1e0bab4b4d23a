//! The picture in the clipboard, on Linux: WebKitGTK gives the page its type without its bytes.
//! Other webviews give the page a file.

use foretoken_app::error::Result;
use foretoken_app::ipc::{CommandError, ErrorCode};
use tauri::AppHandle;

/// Returns the picture in the clipboard as a PNG file.
///
/// # Errors
/// Returns `NotFound` without one, or if the program that has it does not answer.
pub fn picture(handle: &AppHandle) -> Result<Vec<u8>> {
    let none = || CommandError::new(ErrorCode::NotFound, "There is no picture in the clipboard.");
    read(handle).ok_or_else(none)
}

#[cfg(target_os = "linux")]
fn read(handle: &AppHandle) -> Option<Vec<u8>> {
    use std::sync::mpsc;
    use std::time::Duration;

    /// Time in which the program that has the picture must send it.
    const PATIENCE: Duration = Duration::from_secs(5);

    let (sender, receiver) = mpsc::channel();
    let ask = move || {
        let clipboard = gtk::Clipboard::get(&gtk::gdk::SELECTION_CLIPBOARD);
        clipboard.request_image(move |_, picture| {
            let png = picture.and_then(|picture| picture.save_to_bufferv("png", &[]).ok());
            // The receiver may have stopped waiting.
            let _ = sender.send(png);
        });
    };
    handle.run_on_main_thread(ask).ok()?;
    receiver.recv_timeout(PATIENCE).ok().flatten()
}

#[cfg(not(target_os = "linux"))]
fn read(_handle: &AppHandle) -> Option<Vec<u8>> {
    None
}
