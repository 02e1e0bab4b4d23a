//! The desktop portal's screenshots in place of a desktop: every request is answered at once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use zbus::blocking::Connection;
use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::zvariant::{OwnedObjectPath, OwnedValue, Value};

use crate::session_bus::SessionBus;

const PATH: &str = "/org/freedesktop/portal/desktop";

/// A portal on a bus.
pub struct ScreenshotPortal {
    _connection: Connection,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// File that the person selects; `None` if they cancel.
    picture: Option<PathBuf>,
    /// True if the dialog was asked for, with which a region is selected.
    asked_for_dialog: bool,
}

struct Screenshots(Arc<Mutex<State>>);

#[zbus::interface(name = "org.freedesktop.portal.Screenshot")]
impl Screenshots {
    async fn screenshot(
        &self,
        _parent: String,
        options: HashMap<String, OwnedValue>,
        #[zbus(header)] header: Header<'_>,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
    ) -> OwnedObjectPath {
        let token: String = options["handle_token"].try_clone().unwrap().try_into().unwrap();
        let sender = header.sender().unwrap().trim_start_matches(':').replace('.', "_");
        let request = format!("{PATH}/request/{sender}/{token}");
        let answer = {
            let mut state = self.0.lock().unwrap();
            state.asked_for_dialog = *options["interactive"] == Value::Bool(true);
            let uri = state
                .picture
                .as_ref()
                .map(|picture| format!("file://{}", picture.display()).replace(' ', "%20"));
            let results: HashMap<&str, Value<'_>> =
                uri.map(|uri| ("uri", Value::from(uri))).into_iter().collect();
            (u32::from(results.is_empty()), results)
        };
        let bus = emitter.connection();
        let interface = "org.freedesktop.portal.Request";
        bus.emit_signal(header.sender().cloned(), request.as_str(), interface, "Response", &answer)
            .await
            .unwrap();
        request.try_into().unwrap()
    }

    #[zbus(property, name = "version")]
    fn version(&self) -> u32 {
        2
    }
}

impl ScreenshotPortal {
    pub fn open(bus: &SessionBus) -> Self {
        let state = Arc::default();
        let connection = bus.connect();
        connection.object_server().at(PATH, Screenshots(Arc::clone(&state))).unwrap();
        connection.request_name("org.freedesktop.portal.Desktop").unwrap();
        Self { _connection: connection, state }
    }

    /// Sets the file of the next screenshots; `None` cancels them.
    pub fn select(&self, picture: Option<&Path>) {
        self.state.lock().unwrap().picture = picture.map(Path::to_owned);
    }

    /// Returns true if the last request asked for a dialog.
    pub fn asked_for_dialog(&self) -> bool {
        self.state.lock().unwrap().asked_for_dialog
    }
}
