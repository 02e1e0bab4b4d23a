//! Loads the page again when the process of its web view ends, on Linux: WebKit leaves the window
//! blank then. What was typed and the reply under way are the application's, so nothing is lost.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use foretoken_app::App;
use tauri::{Manager, WebviewWindow};
use tauri_plugin_dialog::{DialogExt, MessageDialogKind};
use webkit2gtk::{WebProcessTerminationReason, WebViewExt};

/// Times at which the page may be loaded again within [`WINDOW`]: content that ends every process
/// would otherwise keep the computer busy.
const MOST: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);

const NOTICE: &str = "The window's page ended unexpectedly and was loaded again. What was stored, typed or is being \
    written is still there.";

const TOO_OFTEN: &str = "The window's page ended again and again, so it is not loaded again. Start Foretoken again \
    and open another conversation. Your conversations stay as they are.";

/// Times of the latest reloads.
#[derive(Debug, Default)]
struct Reloads(VecDeque<Instant>);

impl Reloads {
    /// Records a reload at `now`; returns `false` if there were too many.
    fn admit(&mut self, now: Instant) -> bool {
        while self.0.front().is_some_and(|first| now.duration_since(*first) > WINDOW) {
            self.0.pop_front();
        }
        let admitted = self.0.len() < MOST;
        if admitted {
            self.0.push_back(now);
        }
        admitted
    }
}

/// Reloads the page of `window` whenever its process ends.
pub fn install(window: &WebviewWindow) {
    let handle = window.app_handle().clone();
    let reloads = Mutex::new(Reloads::default());
    let installed = window.with_webview(move |webview| {
        webview.inner().connect_web_process_terminated(move |view, reason| {
            tracing::error!("the process of the page ended: {}", in_words(reason));
            if !reloads.lock().unwrap_or_else(PoisonError::into_inner).admit(Instant::now()) {
                handle.dialog().message(TOO_OFTEN).kind(MessageDialogKind::Error).show(|_| ());
                return;
            }
            if let Some(app) = handle.try_state::<Arc<App>>() {
                app.notify(NOTICE.to_owned());
            }
            view.reload();
        });
    });
    if let Err(error) = installed {
        tracing::warn!("the page will not be loaded again if its process ends: {error}");
    }
}

fn in_words(reason: WebProcessTerminationReason) -> &'static str {
    match reason {
        WebProcessTerminationReason::Crashed => "it crashed",
        WebProcessTerminationReason::ExceededMemoryLimit => "it used too much memory",
        _ => "it was ended",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_ends_again_and_again_is_not_reloaded_without_end() {
        let (mut reloads, begin) = (Reloads::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        let admitted: Vec<bool> = (0..7).map(|seconds| reloads.admit(at(seconds))).collect();
        assert_eq!(admitted, [true, true, true, true, true, false, false]);
        assert!(reloads.admit(at(61)), "the first is long ago");
        assert!(!reloads.admit(at(61)));
        assert!(reloads.admit(at(200)));
    }
}
