//! The window for a quick question: a second page of the same bundle, made when it is first wanted
//! and hidden afterwards.

use std::sync::Arc;

use foretoken_app::App;
use tauri::{AppHandle, Manager};

use crate::window::{self, MAIN};

/// Label of the window, as the configuration has it.
pub const QUICK: &str = "quick";

/// Option of the command line that opens the window.
const OPTION: &str = "--quick";

/// Event at which the quick page takes the focus and the latest settings.
const SHOWN: &str = "dispatchEvent(new Event('foretoken-shown'))";

/// Event at which the main page lists conversations again.
const ASKED: &str = "dispatchEvent(new Event('foretoken-asked'))";

/// Returns whether the arguments of a program ask for the window.
pub fn is_wanted(arguments: &[String]) -> bool {
    arguments.iter().skip(1).any(|argument| argument == OPTION)
}

/// Opens the window, once the application has started.
pub fn open(handle: &AppHandle) {
    let main = handle.clone();
    let opened = handle.run_on_main_thread(move || {
        if let Err(error) = show(&main) {
            tracing::error!("the window for a quick question could not be opened: {error}");
        }
    });
    if let Err(error) = opened {
        tracing::error!("the window for a quick question could not be opened: {error}");
    }
}

/// Opens the window, or hides it if it has the focus.
pub fn toggle(handle: &AppHandle) {
    let focused = handle.get_webview_window(QUICK).is_some_and(|window| window.is_focused().unwrap_or(false));
    if focused { hide(handle) } else { open(handle) }
}

fn show(handle: &AppHandle) -> tauri::Result<()> {
    let Some(app) = handle.try_state::<Arc<App>>() else { return Ok(()) };
    let window = match handle.get_webview_window(QUICK) {
        Some(window) => window,
        None => window::open(handle, QUICK)?,
    };
    window::zoom(&window, app.settings().appearance.text_size);
    let was_hidden = !window.is_visible()?;
    window.show()?;
    window.set_focus()?;
    if was_hidden { window.eval(SHOWN) } else { Ok(()) }
}

/// Hides the window.
pub fn hide(handle: &AppHandle) {
    if let Some(window) = handle.get_webview_window(QUICK) {
        let _ = window.hide();
    }
    send_to_main(handle, ASKED);
}

/// Hides the window and opens `conversation` in the main one.
pub fn continue_in_main(handle: &AppHandle, conversation: i64) {
    hide(handle);
    window::raise(handle);
    send_to_main(
        handle,
        &format!("dispatchEvent(new CustomEvent('foretoken-open', {{ detail: {conversation} }}))"),
    );
}

/// Closes the window for good.
pub fn close(handle: &AppHandle) {
    if let Some(window) = handle.get_webview_window(QUICK) {
        let _ = window.destroy();
    }
}

fn send_to_main(handle: &AppHandle, event: &str) {
    if let Some(Err(error)) = handle.get_webview_window(MAIN).map(|page| page.eval(event)) {
        tracing::warn!(%error, "the main page shows an old list of conversations");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_option_itself_asks_for_the_window() {
        let wanted =
            |arguments: &[&str]| is_wanted(&arguments.iter().map(|&one| one.to_owned()).collect::<Vec<_>>());
        assert!(wanted(&["foretoken", "--quick"]));
        assert!(wanted(&["foretoken", "a.gguf", "--quick"]));
        assert!(!wanted(&["--quick"]), "the program's name");
        assert!(!wanted(&["foretoken", "--quickly", "quick"]));
    }
}
