//! Closing of the window: the page first saves what waits to be saved.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tauri::{CloseRequestApi, Manager, Window};

/// Longest time that the page gets to save before the window closes anyway.
const LONGEST: Duration = Duration::from_secs(1);

/// Event that the page saves at. It then calls the command `quit`.
const ASK_PAGE: &str = "dispatchEvent(new Event('foretoken-close'))";

/// `true` once the page was asked to save, or needs no question.
#[derive(Clone, Default)]
pub struct Closing(Arc<AtomicBool>);

impl Closing {
    /// Lets the next request close the window.
    pub fn allow(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Handles a request to close `window`: the first one is deferred until the page has saved.
    pub fn request(&self, window: &Window, api: &CloseRequestApi) {
        if self.0.swap(true, Ordering::Relaxed) {
            return;
        }
        let asked = window.get_webview_window(window.label()).is_some_and(|page| page.eval(ASK_PAGE).is_ok());
        if !asked {
            return;
        }
        api.prevent_close();
        let window = window.clone();
        thread::spawn(move || {
            thread::sleep(LONGEST);
            // The window may be closed already.
            let _ = window.destroy();
        });
    }
}
