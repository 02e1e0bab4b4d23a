//! The window, whose page may only navigate to its own addresses. Links in a reply, dropped
//! addresses and injected scripts cannot replace the page, open a window or download anything.

use tauri::webview::{DownloadEvent, NewWindowResponse};
use tauri::{AppHandle, Manager, Url, WebviewWindow, WebviewWindowBuilder};

use crate::preview::is_preview;

/// Label of the window, as the configuration has it.
pub const MAIN: &str = "main";

/// Opens the window that the configuration describes under `label`.
///
/// # Errors
/// If the system has no display.
pub fn open(handle: &AppHandle, label: &str) -> tauri::Result<WebviewWindow> {
    let config = handle.config();
    let window = config.app.windows.iter().find(|window| window.label == label);
    let window = window.ok_or(tauri::Error::WindowNotFound)?;
    let development = config.build.dev_url.clone().filter(|_| tauri::is_dev());
    let window = WebviewWindowBuilder::from_config(handle, window)?
        .on_navigation(move |url| {
            // Frames ask, too, and the page shows previews in one.
            let own = is_own(url)
                || is_preview(url)
                || development.as_ref().is_some_and(|own| own.origin() == url.origin());
            if !own {
                tracing::warn!("the page may not go to {}", shortened(url));
            }
            own
        })
        .on_new_window(|url, _| {
            tracing::warn!("the page may open no window for {}", shortened(&url));
            NewWindowResponse::Deny
        })
        .on_download(|_, event| {
            if let DownloadEvent::Requested { url, .. } = event {
                tracing::warn!("the page may not download {}", shortened(&url));
            }
            false
        })
        .build()?;
    #[cfg(target_os = "linux")]
    {
        let words = handle.state::<crate::attach_words::AttachWords>().inner().clone();
        crate::file_dialog::install(&window, words);
        crate::reloading::install(&window);
        crate::spelling::install(&window);
    }
    Ok(window)
}

/// Brings the window to the front, even if it is hidden.
pub fn raise(handle: &AppHandle) {
    if let Some(window) = handle.get_webview_window(MAIN) {
        let _ = window.show();
        let _ = window.unminimize();
        let _ = window.set_focus();
    }
}

/// Zooms the page of `window` to `percent` of its normal size.
pub fn zoom(window: &WebviewWindow, percent: u32) {
    if let Err(error) = window.set_zoom(f64::from(percent) / 100.0) {
        tracing::warn!(%error, "the page keeps its size");
    }
}

/// Returns whether the page built into the program is at `url`.
fn is_own(url: &Url) -> bool {
    let (scheme, host) = if cfg!(windows) { ("http", "tauri.localhost") } else { ("tauri", "localhost") };
    url.scheme() == scheme && url.host_str() == Some(host) && url.port().is_none()
}

/// The beginning of an address; a whole one may contain a file.
fn shortened(url: &Url) -> String {
    url.as_str().chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_navigates_only_to_its_own_addresses() {
        let own = if cfg!(windows) { "http://tauri.localhost" } else { "tauri://localhost" };
        for end in ["", "/", "/?replay", "/index.html#a"] {
            assert!(is_own(&Url::parse(&format!("{own}{end}")).unwrap()), "{end}");
        }
        for other in [
            "https://example.org/",
            "http://localhost:1420/",
            "http://tauri.localhost.example.org/",
            "http://tauri.localhost:81/",
            "tauri://elsewhere/",
            "tauri:localhost",
            "tauri://localhost:81/",
            "ipc://localhost/settings",
            "file:///etc/passwd",
            "data:text/html,hello",
            "javascript:alert(1)",
            "about:blank",
            "about:srcdoc",
            "blob:tauri://localhost/1",
            "preview://elsewhere/1",
            "preview:localhost",
            "http://preview.localhost.example.org/",
        ] {
            let url = Url::parse(other).unwrap();
            assert!(!is_own(&url) && !is_preview(&url), "{other}");
        }
    }
}
