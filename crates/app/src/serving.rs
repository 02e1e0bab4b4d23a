//! The local server: started, moved and stopped as the settings say.

use std::sync::{Arc, Mutex};

use foretoken_server::{Address, Server, Writer};

use crate::ipc::{ServerRequest, ServerSettings, ServerStatus};
use crate::lock::lock;

/// The local server; see the module.
pub(crate) struct Serving {
    writer: Arc<dyn Writer>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Settings of the running server.
    settings: ServerSettings,
    server: Option<Server>,
    /// Reason why it could not be started.
    problem: Option<String>,
}

impl Serving {
    /// Creates a stopped server; `writer` will write the replies.
    pub fn new(writer: Arc<dyn Writer>) -> Self {
        Self { writer, state: Mutex::default() }
    }

    /// Applies the settings that `settings` returns once no other change is in progress.
    pub fn apply(&self, settings: impl FnOnce() -> ServerSettings) {
        let mut state = lock(&self.state);
        let settings = settings();
        if state.settings == settings {
            return;
        }
        // The previous server may still have the port.
        *state = State { settings: settings.clone(), ..State::default() };
        if !settings.enabled {
            return;
        }
        let ServerSettings { host, port, key, .. } = settings.clone();
        match Server::start(&Address { host, port, key }, Arc::clone(&self.writer)) {
            Ok(server) => state.server = Some(server),
            Err(error) => {
                tracing::warn!("the local server could not be started: {error}");
                state.problem = Some(error.to_string());
            }
        }
    }

    pub fn status(&self) -> ServerStatus {
        let state = lock(&self.state);
        ServerStatus { url: state.server.as_ref().map(Server::url), problem: state.problem.clone() }
    }

    /// Returns the latest requests to the running server, the latest first.
    pub fn requests(&self) -> Vec<ServerRequest> {
        lock(&self.state).server.as_ref().map(Server::requests).unwrap_or_default()
    }
}
