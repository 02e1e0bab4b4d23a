//! Notifications of the system, at most one at a time on Linux: a later one replaces it.
//!
//! The shell sends them, because WKWebView has no web notifications. So the page needs no
//! permission, and a click raises the window.

#[cfg(target_os = "linux")]
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
#[cfg(not(target_os = "macos"))]
use std::thread;

use notify_rust::Notification;
use notify_rust::error::Result;
use tauri::AppHandle;

#[cfg(not(target_os = "macos"))]
use crate::window;

/// Id of the notification that a thread waits for.
#[derive(Clone, Default)]
pub struct Notices(#[cfg(target_os = "linux")] Arc<Mutex<Option<u32>>>);

impl Notices {
    /// Shows a notification; a click on it raises the window.
    ///
    /// # Errors
    /// If the system has no service for notifications.
    pub fn show(&self, handle: &AppHandle, title: &str, body: &str) -> Result<()> {
        let mut notification = Notification::new();
        notification.appname("Foretoken").summary(&printable(title)).body(&printable(body));
        self.send(handle, &mut notification)
    }

    #[cfg(target_os = "linux")]
    fn send(&self, handle: &AppHandle, notification: &mut Notification) -> Result<()> {
        let before = *self.waited();
        let body = without_markup(&notification.body);
        notification.body(&body).icon("foretoken").action("default", "Foretoken");
        if let Some(id) = before {
            notification.id(id);
        }
        let sent = notification.show()?;
        let id = Some(sent.id());
        // The thread that waits for the notification before waits for its replacement, too.
        if id == before {
            return Ok(());
        }
        *self.waited() = id;
        let (notices, handle) = (self.clone(), handle.clone());
        start_waiting(move || {
            sent.wait_for_action(|action| {
                let mut waited = notices.waited();
                if *waited == id {
                    *waited = None;
                }
                drop(waited);
                if action == "default" {
                    window::raise(&handle);
                }
            });
        });
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn waited(&self) -> MutexGuard<'_, Option<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The system raises the window itself.
    #[cfg(target_os = "macos")]
    fn send(&self, handle: &AppHandle, notification: &mut Notification) -> Result<()> {
        // Fails after the first time.
        let _ = notify_rust::set_application(&handle.config().identifier);
        notification.show().map(drop)
    }

    /// The installer registers the identifier, without which Windows shows nothing.
    #[cfg(windows)]
    fn send(&self, handle: &AppHandle, notification: &mut Notification) -> Result<()> {
        let sent = notification.app_id(&handle.config().identifier).show()?;
        let handle = handle.clone();
        start_waiting(move || {
            let _ = sent.wait_for_response(|response: &notify_rust::NotificationResponse| {
                if response.is_default_action() {
                    window::raise(&handle);
                }
            });
        });
        Ok(())
    }
}

/// Waits for a click on its own thread.
#[cfg(not(target_os = "macos"))]
fn start_waiting(wait: impl FnOnce() + Send + 'static) {
    if let Err(error) = thread::Builder::new().name("notification".to_owned()).spawn(wait) {
        tracing::warn!(%error, "a click on the notification does nothing");
    }
}

/// A text without control characters, which D-Bus refuses.
fn printable(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect()
}

/// Escapes characters that desktops read as markup in a notification's body.
#[cfg(target_os = "linux")]
fn without_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_left_out() {
        assert_eq!(printable("a\0b\u{1b}[1m\nc ä 😀"), "ab[1mc ä 😀");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_text_is_no_markup() {
        assert_eq!(without_markup("<a href='x'>&lt;b"), "&lt;a href='x'&gt;&amp;lt;b");
    }
}
