//! The local server: started, moved and stopped as the settings say.

use std::sync::{Arc, Mutex};

use foretoken_server::{Address, Server, Writer};

use crate::ipc::{ServerRequest, ServerSettings, ServerStatus};
use crate::lock::lock;
use crate::observable::Observable;

/// The local server; see the module.
pub(crate) struct Serving {
    writer: Arc<dyn Writer>,
    state: Mutex<State>,
    /// Status for watchers, who do not wait for a change in progress.
    status: Observable<ServerStatus>,
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
        Self { writer, state: Mutex::default(), status: Observable::new(ServerStatus::default()) }
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
        if settings.enabled {
            state.start(Arc::clone(&self.writer));
        }
        let status = state.status();
        self.status.update(|shown| *shown = status);
    }

    pub fn status(&self) -> ServerStatus {
        lock(&self.state).status()
    }

    /// Calls `watcher` with the current status immediately and with every later one.
    pub fn watch(&self, watcher: impl Fn(&ServerStatus) -> bool + Send + 'static) {
        self.status.watch(watcher);
    }

    /// Returns the latest requests to the running server, the latest first.
    pub fn requests(&self) -> Vec<ServerRequest> {
        lock(&self.state).server.as_ref().map(Server::requests).unwrap_or_default()
    }
}

impl State {
    fn start(&mut self, writer: Arc<dyn Writer>) {
        let ServerSettings { host, port, key, .. } = self.settings.clone();
        match Server::start(&Address { host, port, key }, writer) {
            Ok(server) => self.server = Some(server),
            Err(error) => {
                tracing::warn!("the local server could not be started: {error}");
                self.problem = Some(error.to_string());
            }
        }
    }

    fn status(&self) -> ServerStatus {
        ServerStatus { url: self.server.as_ref().map(Server::url), problem: self.problem.clone() }
    }
}
