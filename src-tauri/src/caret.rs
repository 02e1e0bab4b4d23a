//! A caret that nobody types at comes to rest, as it does in GTK's own entries. WebKit's would blink for ever, and
//! each time the whole way to the screen is gone: half of what an idle window takes of the processor.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use gtk::gdk::EventType;
use gtk::glib::{self, Propagation, SourceId};
use gtk::prelude::*;
use tauri::WebviewWindow;

/// Whether the caret blinks, as WebKit asks GTK.
const BLINK: &str = "gtk-cursor-blink";

/// Lets the caret of `window` blink for as long after each key and click as GTK's settings say.
pub fn bring_to_rest(window: &WebviewWindow) {
    let told = window.with_webview(|webview| {
        let Some(settings) = gtk::Settings::default() else { return };
        let caret = Rc::new(Caret { settings, rest: Cell::default() });
        caret.blink();
        webview.inner().connect_event(move |_, event| {
            if matches!(
                event.event_type(),
                EventType::KeyPress | EventType::ButtonPress | EventType::TouchBegin | EventType::FocusChange
            ) {
                caret.blink();
            }
            Propagation::Proceed
        });
    });
    if let Err(error) = told {
        tracing::warn!(%error, "the caret will not come to rest");
    }
}

struct Caret {
    settings: gtk::Settings,
    /// What will bring it to rest.
    rest: Cell<Option<SourceId>>,
}

impl Caret {
    /// Blinks if the person's own settings say so, and comes to rest later.
    fn blink(self: &Rc<Self>) {
        match self.rest.take() {
            Some(rest) => rest.remove(),
            None => self.settings.reset_property(BLINK),
        }
        let seconds = self.settings.gtk_cursor_blink_timeout().max(1);
        let caret = Rc::clone(self);
        let rest =
            glib::timeout_add_local_once(Duration::from_secs(seconds.unsigned_abs().into()), move || {
                caret.rest.take();
                caret.settings.set_gtk_cursor_blink(false);
            });
        self.rest.set(Some(rest));
    }
}
