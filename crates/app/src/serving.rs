//! The local server, as the settings want it: started, moved and ended with them.

use std::sync::{Arc, Mutex};

use foretoken_server::{Address, Server, Writer};

use crate::ipc::{ServerRequest, ServerSettings, ServerStatus};
use crate::lock::lock;

/// See the module.
pub(crate) struct Serving {
    writer: Arc<dyn Writer>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What the server runs by.
    settings: ServerSettings,
    server: Option<Server>,
    /// Why it does not.
    problem: Option<String>,
}

impl Serving {
    /// Has `writer` reply; nothing runs before settings want it.
    pub fn new(writer: Arc<dyn Writer>) -> Self {
        Self { writer, state: Mutex::default() }
    }

    /// Makes what runs what `settings` want, which are those of the moment when no other change is under way.
    pub fn apply(&self, settings: impl FnOnce() -> ServerSettings) {
        let mut state = lock(&self.state);
        let settings = settings();
        if state.settings == settings {
            return;
        }
        // The one before may have the port.
        *state = State { settings: settings.clone(), ..State::default() };
        if !settings.enabled {
            return;
        }
        let ServerSettings { host, port, key, .. } = settings.clone();
        match Server::start(&Address { host, port, key }, Arc::clone(&self.writer)) {
            Ok(server) => state.server = Some(server),
            Err(error) => {
                tracing::warn!("the local server does not run: {error}");
                state.problem = Some(error.to_string());
            }
        }
    }

    pub fn status(&self) -> ServerStatus {
        let state = lock(&self.state);
        ServerStatus { url: state.server.as_ref().map(Server::url), problem: state.problem.clone() }
    }

    /// The latest requests to the running server, the latest first.
    pub fn requests(&self) -> Vec<ServerRequest> {
        lock(&self.state).server.as_ref().map(Server::requests).unwrap_or_default()
    }
}
