//! Closing of the window: it is hidden if the program keeps running in the tray. Otherwise the page
//! first saves what waits to be saved, also before the program restarts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tauri::{AppHandle, CloseRequestApi, Manager, Window};

use crate::tray::Tray;
use crate::window::MAIN;

/// Longest time that the page gets to save before the window closes anyway.
const LONGEST: Duration = Duration::from_secs(1);

/// Event that the page saves at. It then calls the command `quit`.
const ASK_PAGE: &str = "dispatchEvent(new Event('foretoken-close'))";

#[derive(Clone, Default)]
pub struct Closing {
    /// `true` once the page was asked to save, or needs no question.
    asked: Arc<AtomicBool>,
    /// `true` if the program then starts again.
    restarts: Arc<AtomicBool>,
}

impl Closing {
    /// Lets the next request close the window.
    pub fn allow(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Handles a request to close the main window: hides it, or defers the first request until the
    /// page has saved.
    pub fn request(&self, window: &Window, api: &CloseRequestApi) {
        if self.asked.load(Ordering::Relaxed) {
            return;
        }
        let handle = window.app_handle();
        let hidden = window.state::<Tray>().keeps_running(handle) && window.hide().is_ok();
        if hidden || self.ask_page(handle) {
            api.prevent_close();
        }
    }

    /// Closes the main window, hidden or not, once the page has saved.
    pub fn quit(&self, handle: &AppHandle) {
        if !self.ask_page(handle) {
            destroy(handle);
        }
    }

    /// Closes like [`Self::quit`], and starts the program again.
    pub fn restart(&self, handle: &AppHandle) {
        self.restarts.store(true, Ordering::Relaxed);
        self.quit(handle);
    }

    /// Starts the program again, if that is wanted, after everything was saved.
    pub fn finish(&self, handle: &AppHandle) {
        if self.restarts.load(Ordering::Relaxed) {
            handle.request_restart();
        }
    }

    /// Asks the page to save and close, once; returns whether it was asked now.
    fn ask_page(&self, handle: &AppHandle) -> bool {
        if self.asked.swap(true, Ordering::Relaxed) {
            return false;
        }
        let asked = handle.get_webview_window(MAIN).is_some_and(|page| page.eval(ASK_PAGE).is_ok());
        if asked {
            let handle = handle.clone();
            thread::spawn(move || {
                thread::sleep(LONGEST);
                destroy(&handle);
            });
        }
        asked
    }
}

/// Closes the main window without a request; it may be closed already.
fn destroy(handle: &AppHandle) {
    if let Some(window) = handle.get_webview_window(MAIN) {
        let _ = window.destroy();
    }
}
