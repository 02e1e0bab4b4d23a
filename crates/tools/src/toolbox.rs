//! Running servers, and the tools, prompts and resources that they and this program offer. One thread runs all
//! connections; it ends, with every server, when the toolbox is dropped.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, GetPromptRequest, GetPromptRequestParams,
    ReadResourceRequest, ReadResourceRequestParams, ServerResult,
};
use rmcp::service::{Peer, RoleClient};
use serde_json::{Map, Value};
use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

use crate::builtin::{Builtin, BuiltinContext};
use crate::config::ServerConfig;
use crate::connection::{Connection, RequestTimes, START, ask};
use crate::error::{Error, Result};
use crate::handler::{Handler, Progress};
use crate::listing::Lists;
use crate::offer::{Offer, Source, builtin_offers, tell_apart};
use crate::outcome::Outcome;
use crate::prompt::{self, ServerPrompt};
use crate::resource::{self, ReadFile, ResourceText, ServerResource};

/// Interval in which a request asks whether it was stopped.
const POLL: Duration = Duration::from_millis(50);

/// Time for a request without progress, and in all.
const TIMES: RequestTimes = RequestTimes { idle: Duration::from_secs(60), total: Duration::from_secs(600) };

/// State of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    Starting,
    Ready,
    /// It could not be started, or has ended.
    Failed(Error),
}

/// A server that is switched on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    pub name: String,
    pub state: ServerState,
    /// Latest lines of its standard error, and remarks of this program.
    pub log: Vec<String>,
}

/// See the module.
pub struct Toolbox {
    shared: Arc<Shared>,
    runtime: Handle,
    /// Ends the thread when it is dropped.
    end: Option<watch::Sender<bool>>,
    thread: Option<JoinHandle<()>>,
    times: RequestTimes,
}

#[derive(Default)]
struct Shared {
    servers: Mutex<BTreeMap<String, Running>>,
    /// Notified when a state has changed.
    changed: Condvar,
    listener: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
}

struct Running {
    config: ServerConfig,
    state: ServerState,
    lists: Lists,
    peer: Option<Peer<RoleClient>>,
    handler: Handler,
    /// Ends the server when it is dropped.
    _off: watch::Sender<bool>,
}

/// A server that can answer requests.
struct ReadyServer {
    name: String,
    peer: Peer<RoleClient>,
    handler: Handler,
}

impl Toolbox {
    /// # Errors
    /// Returns the system's error if the thread cannot be started.
    pub fn new() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, mut ended) = watch::channel(false);
        let shared = Arc::new(Shared::default());
        let servers = Arc::clone(&shared);
        let run = move || {
            runtime.block_on(async {
                let _ = ended.wait_for(|&end| end).await;
                let running = std::mem::take(&mut *servers.lock());
                if !running.is_empty() {
                    drop(running);
                    // Servers get a moment to end by themselves; dropping the runtime kills the others.
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            });
            runtime.shutdown_timeout(Duration::from_secs(2));
        };
        let thread = std::thread::Builder::new().name("tools".to_owned()).spawn(run)?;
        Ok(Self { shared, runtime: handle, end: Some(end), thread: Some(thread), times: TIMES })
    }

    /// Limits requests to these times, without progress and in all.
    #[must_use]
    pub fn with_times(mut self, idle: Duration, total: Duration) -> Self {
        self.times = RequestTimes { idle, total };
        self
    }

    /// Calls `listener` after each change of a server's state or lists, on another thread.
    pub fn on_change(&self, listener: impl Fn() + Send + Sync + 'static) {
        *self.shared.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(listener));
    }

    /// Starts a server in the background. One that runs with the same configuration stays; one that
    /// has failed is started again.
    pub fn switch_on(&self, name: &str, config: &ServerConfig) {
        let mut servers = self.shared.lock();
        let same =
            |running: &Running| running.config == *config && !matches!(running.state, ServerState::Failed(_));
        if servers.get(name).is_some_and(same) {
            return;
        }
        let (off, switched_off) = watch::channel(false);
        let handler = Handler::default();
        servers.insert(
            name.to_owned(),
            Running {
                config: config.clone(),
                state: ServerState::Starting,
                lists: Lists::default(),
                peer: None,
                handler: handler.clone(),
                _off: off,
            },
        );
        drop(servers);
        let (shared, name, config) = (Arc::clone(&self.shared), name.to_owned(), config.clone());
        self.runtime.spawn(async move { shared.serve(&name, &config, handler, switched_off).await });
        self.shared.tell();
    }

    /// Ends a server.
    pub fn switch_off(&self, name: &str) {
        let removed = self.shared.lock().remove(name);
        if removed.is_some() {
            self.shared.tell();
        }
    }

    /// Waits until no server is starting, at most for the time that one has to start, or until
    /// `stop` returns `true`.
    pub fn wait(&self, stop: &dyn Fn() -> bool) {
        let end = Instant::now() + START;
        let mut servers = self.shared.lock();
        let starting = |servers: &BTreeMap<String, Running>| {
            servers.values().any(|server| server.state == ServerState::Starting)
        };
        while starting(&servers) && Instant::now() < end && !stop() {
            let waited = self.shared.changed.wait_timeout(servers, POLL);
            servers = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the servers that are switched on.
    pub fn servers(&self) -> Vec<ServerStatus> {
        let servers = self.shared.lock();
        let status = |(name, running): (&String, &Running)| ServerStatus {
            name: name.clone(),
            state: running.state.clone(),
            log: running.handler.log.all(),
        };
        servers.iter().map(status).collect()
    }

    /// Returns the tools of running servers, by server, after those of `builtins`.
    pub fn offers(&self, builtins: &[Builtin]) -> Vec<Offer> {
        let mut offers = builtin_offers(builtins);
        for (name, running) in self.shared.lock().iter() {
            offers.extend(running.lists.tools.iter().map(|tool| Offer::of_server(name, tool)));
        }
        tell_apart(&mut offers);
        offers
    }

    /// Calls a tool and waits for its result. `stop` is asked several times a second.
    ///
    /// # Errors
    /// Returns what prevented a result. A result that is an error of the tool itself is an
    /// [`Outcome`].
    pub fn call(
        &self,
        source: &Source,
        arguments: Map<String, Value>,
        context: &dyn BuiltinContext,
        stop: &dyn Fn() -> bool,
        on_progress: &dyn Fn(Progress),
    ) -> Result<Outcome> {
        let (server, tool) = match source {
            Source::Builtin(builtin) => return builtin.call(&arguments, context, &self.runtime, stop),
            Source::Server { server, tool } => (server, tool),
        };
        let server = self.ready(server, |Lists { tools, .. }| {
            let is_listed = tools.iter().any(|listed| listed.name == *tool);
            if is_listed { Ok(()) } else { Err(Error::NoTool(tool.clone())) }
        })?;
        let params = CallToolRequestParams::new(tool.clone()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        match self.ask(server, request, stop, on_progress)? {
            ServerResult::CallToolResult(result) => Ok(Outcome::of(&result)),
            _ => Err(unexpected()),
        }
    }

    /// Returns the prompts of running servers, by server.
    pub fn prompts(&self) -> Vec<ServerPrompt> {
        self.shared.lock().values().flat_map(|running| running.lists.prompts.clone()).collect()
    }

    /// Returns the resources of running servers, by server.
    pub fn resources(&self) -> Vec<ServerResource> {
        self.shared.lock().values().flat_map(|running| running.lists.resources.clone()).collect()
    }

    /// Returns the text of a prompt with these arguments: at most 64 kB; a longer text is cut and
    /// says so. `stop` is asked several times a second.
    ///
    /// # Errors
    /// Returns what prevented a text.
    pub fn prompt(
        &self,
        server: &str,
        name: &str,
        values: &BTreeMap<String, String>,
        stop: &dyn Fn() -> bool,
    ) -> Result<String> {
        let mut arguments = Map::new();
        let server = self.ready(server, |Lists { prompts, .. }| {
            let listed = prompts.iter().find(|listed| listed.name == name);
            arguments = listed.ok_or_else(|| Error::NoPrompt(name.to_owned()))?.filled(values)?;
            Ok(())
        })?;
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
        match self.ask(server, request, stop, &|_| {})? {
            ServerResult::GetPromptResult(result) => prompt::text_of(name, &result),
            _ => Err(unexpected()),
        }
    }

    /// Returns the text of a resource, which need not be listed; `values` are those of a listed
    /// template's variables. `read` returns the text of files; `stop` is asked several times a
    /// second.
    ///
    /// # Errors
    /// Returns what prevented a text.
    pub fn resource(
        &self,
        server: &str,
        uri: &str,
        values: &BTreeMap<String, String>,
        read: ReadFile<'_>,
        stop: &dyn Fn() -> bool,
    ) -> Result<ResourceText> {
        let (mut address, mut name) = (uri.to_owned(), String::new());
        let server = self.ready(server, |Lists { resources, .. }| {
            let listed = resources.iter().find(|listed| listed.uri == uri);
            if let Some(listed) = listed {
                address = listed.filled(values)?;
            }
            name = resource::file_name(&address, listed);
            Ok(())
        })?;
        let request = ReadResourceRequest::new(ReadResourceRequestParams::new(address));
        match self.ask(server, ClientRequest::ReadResourceRequest(request), stop, &|_| {})? {
            ServerResult::ReadResourceResult(result) => {
                Ok(ResourceText { text: resource::text_of(&name, &result, read, stop)?, name })
            }
            _ => Err(unexpected()),
        }
    }

    /// Returns a server that is ready and whose lists pass `check`.
    fn ready(&self, name: &str, check: impl FnOnce(&Lists) -> Result<()>) -> Result<ReadyServer> {
        let not_running = || Error::NotRunning(name.to_owned());
        let servers = self.shared.lock();
        let running = servers.get(name).ok_or_else(not_running)?;
        match (&running.state, &running.peer) {
            (ServerState::Ready, Some(peer)) => {
                check(&running.lists)?;
                let (peer, handler) = (peer.clone(), running.handler.clone());
                Ok(ReadyServer { name: name.to_owned(), peer, handler })
            }
            (ServerState::Failed(error), _) => Err(error.clone()),
            _ => Err(not_running()),
        }
    }

    /// Sends a request and waits for its answer.
    fn ask(
        &self,
        ReadyServer { name, peer, handler }: ReadyServer,
        request: ClientRequest,
        stop: &dyn Fn() -> bool,
        on_progress: &dyn Fn(Progress),
    ) -> Result<ServerResult> {
        let (stopped, is_stopped) = watch::channel(false);
        let ((report, reports), (done, answer)) = (mpsc::channel(), mpsc::channel());
        let times = self.times;
        self.runtime.spawn(async move {
            let on_progress = |progress| drop(report.send(progress));
            let _ = done.send(ask(&peer, &handler, request, times, is_stopped, on_progress).await);
        });
        loop {
            let answered = answer.recv_timeout(POLL);
            reports.try_iter().for_each(on_progress);
            match answered {
                Ok(Err(Error::Ended(_))) => return Err(self.shared.why_ended(&name)),
                Ok(answered) => return answered,
                Err(RecvTimeoutError::Timeout) if stop() => drop(stopped.send(true)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Stopped),
            }
        }
    }
}

fn unexpected() -> Error {
    Error::Protocol("it answered with something else".to_owned())
}

impl Drop for Toolbox {
    fn drop(&mut self) {
        self.end.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.changed.notify_all();
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(listener) = listener {
            listener();
        }
    }

    /// Changes a server, unless it was switched off or replaced meanwhile.
    fn update(&self, name: &str, off: &watch::Receiver<bool>, change: impl FnOnce(&mut Running)) {
        // The sender is dropped with its server.
        if off.has_changed().is_ok()
            && let Some(running) = self.lock().get_mut(name)
        {
            change(running);
        }
        self.tell();
    }

    /// Runs a server until it ends or is switched off.
    async fn serve(
        &self,
        name: &str,
        config: &ServerConfig,
        handler: Handler,
        mut off: watch::Receiver<bool>,
    ) {
        let opened = tokio::select! {
            opened = Connection::open(config, &handler) => opened,
            _ = off.changed() => return,
        };
        let connection = match opened {
            Ok(connection) => connection,
            Err(error) => return self.fail(name, &off, error),
        };
        let reason = loop {
            match connection.lists(name).await {
                Ok(lists) => self.update(name, &off, |running| {
                    running.peer = Some(connection.peer.clone());
                    (running.state, running.lists) = (ServerState::Ready, lists);
                }),
                Err(error) => break Some(error),
            }
            tokio::select! {
                () = handler.changed.notified() => {}
                error = connection.ended() => break Some(error),
                _ = off.changed() => break None,
            }
        };
        connection.close().await;
        match reason {
            // Its last lines are known only now.
            Some(Error::Ended(_)) => self.fail(name, &off, Error::Ended(handler.log.last())),
            Some(error) => self.fail(name, &off, error),
            None => {}
        }
    }

    fn fail(&self, name: &str, off: &watch::Receiver<bool>, error: Error) {
        tracing::warn!(server = name, "{error}");
        self.update(name, off, |running| {
            (running.lists, running.peer) = (Lists::default(), None);
            running.state = ServerState::Failed(error);
        });
    }

    /// Returns why a server ended during a request, once that is known.
    fn why_ended(&self, name: &str) -> Error {
        let end = Instant::now() + Duration::from_secs(3);
        let mut servers = self.lock();
        loop {
            match servers.get(name).map(|running| &running.state) {
                Some(ServerState::Failed(error)) => return error.clone(),
                None => return Error::NotRunning(name.to_owned()),
                Some(_) if Instant::now() > end => return Error::Ended(String::new()),
                Some(_) => {}
            }
            let waited = self.changed.wait_timeout(servers, POLL);
            servers = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
