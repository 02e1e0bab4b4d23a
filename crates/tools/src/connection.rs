//! A connection to a server: handshake, its lists, and requests with limits.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rmcp::model::{ClientRequest, ProgressToken, ProtocolVersion, ServerResult};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, PeerRequestOptions, RoleClient,
    RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::config::{ServerConfig, Transport};
use crate::error::{Error, Result, failure};
use crate::handler::{Handler, Progress};
use crate::listing::Lists;
use crate::log::printable;
use crate::process::Process;
use crate::watched::{LONGEST_MESSAGE, Watched};

/// Time to become ready: packages may be downloaded first.
pub(crate) const START: Duration = Duration::from_secs(120);

/// Time to tell a server that a request is stopped.
const CANCEL: Duration = Duration::from_secs(15);

/// Time for a request: without progress, and in all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestTimes {
    pub(crate) idle: Duration,
    pub(crate) total: Duration,
}

/// A server that is ready.
pub(crate) struct Connection {
    pub(crate) peer: Peer<RoleClient>,
    service: RunningService<RoleClient, Handler>,
    process: Option<Process>,
    /// Reason why reading ended.
    fault: Arc<OnceLock<Error>>,
    handler: Handler,
}

impl Connection {
    /// Starts or reaches a server and waits until it is ready.
    pub(crate) async fn open(config: &ServerConfig, handler: &Handler) -> Result<Self> {
        match &config.transport {
            Transport::Process { .. } => match Self::start(config, handler, lifecycle()).await {
                // It took long to start, so that its first answer came after the second question.
                // Now it starts from what it has downloaded, and is asked once.
                Err(Failed::Late) => Self::start(config, handler, ClientLifecycleMode::Initialize).await,
                started => started,
            }
            .map_err(|failed| match failed {
                Failed::Late => Error::Unready(START),
                Failed::Error(error) => error,
            }),
            Transport::Http { url, headers } => Self::reach(url, headers, handler).await,
        }
    }

    async fn start(
        config: &ServerConfig,
        handler: &Handler,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Self, Failed> {
        let Transport::Process { command, args, env, folder } = &config.transport else {
            return Err(Failed::Late);
        };
        let fault = Arc::new(OnceLock::new());
        let (process, stdin, stdout) = Process::start(command, args, env, folder.as_deref(), &handler.log)?;
        let stdout = Watched::new(stdout, handler.log.clone(), Arc::clone(&fault));
        let transport = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(LONGEST_MESSAGE);
        let failed = match timeout(START, handler.clone().serve_with_lifecycle(transport, lifecycle)).await {
            Ok(Ok(service)) => return Ok(Self::new(service, Some(process), fault, handler)),
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        process.end().await;
        Err(match (fault.get(), failed) {
            (Some(fault), _) => fault.clone().into(),
            (None, None) => Error::Unready(START).into(),
            (None, Some(ClientInitializeError::UncorrelatedErrorResponse { .. })) => Failed::Late,
            (
                None,
                Some(
                    ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. },
                ),
            ) => Error::Ended(handler.log.last()).into(),
            (None, Some(error)) => protocol(&error).into(),
        })
    }

    async fn reach(url: &str, headers: &BTreeMap<String, String>, handler: &Handler) -> Result<Self> {
        let limits = StreamableHttpClientTransportConfig::with_uri(url)
            .max_sse_event_size(LONGEST_MESSAGE)
            .max_json_response_size(LONGEST_MESSAGE);
        let transport = StreamableHttpClientTransport::with_client(client(headers)?, limits);
        let ready = timeout(START, handler.clone().serve_with_lifecycle(transport, lifecycle())).await;
        let service = ready.map_err(|_| Error::Unready(START))?.map_err(|error| unreachable(&error))?;
        Ok(Self::new(service, None, Arc::default(), handler))
    }

    fn new(
        service: RunningService<RoleClient, Handler>,
        process: Option<Process>,
        fault: Arc<OnceLock<Error>>,
        handler: &Handler,
    ) -> Self {
        let peer = service.peer().clone();
        Self { peer, service, process, fault, handler: handler.clone() }
    }

    /// Fetches the lists of the server, which is called `name`.
    pub(crate) async fn lists(&self, name: &str) -> Result<Lists> {
        let listed = Lists::of(name, &self.peer, &self.handler.log).await;
        listed.map_err(|error| self.fault.get().cloned().unwrap_or(error))
    }

    /// Returns once the server has ended, with the reason.
    pub(crate) async fn ended(&self) -> Error {
        while !self.service.is_closed() && !self.peer.is_transport_closed() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.fault.get().cloned().unwrap_or_else(|| Error::Ended(self.handler.log.last()))
    }

    /// Ends the connection and the server's process.
    pub(crate) async fn close(mut self) {
        let _ = self.service.close_with_timeout(Duration::from_secs(1)).await;
        if let Some(process) = self.process {
            process.end().await;
        }
    }
}

/// Why a process did not become ready.
enum Failed {
    /// It answered a question that was given up meanwhile.
    Late,
    Error(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Newer servers have no handshake; older ones refuse the question and get one.
fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    }
}

/// Sends a request and waits for its answer. `stopped` cancels it; `progress` receives the server's
/// reports.
pub(crate) async fn ask(
    peer: &Peer<RoleClient>,
    handler: &Handler,
    request: ClientRequest,
    times: RequestTimes,
    mut stopped: watch::Receiver<bool>,
    progress: impl Fn(Progress),
) -> Result<ServerResult> {
    let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
    let mut handle = sent.map_err(failure)?;
    let token: ProgressToken = handle.progress_token.clone();
    handler.calls.begin(token.clone());
    let last = Instant::now() + times.total;
    let mut idle = Instant::now() + times.idle;
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    let reason = loop {
        tokio::select! {
            answer = &mut handle.rx => {
                handler.calls.end(&token);
                return match answer {
                    Ok(Ok(ServerResult::InputRequiredResult(_) | ServerResult::CreateTaskResult(_))) => {
                        Err(Error::AsksMore)
                    }
                    Ok(Ok(result)) => Ok(result),
                    Ok(Err(error)) => Err(failure(error)),
                    Err(_) => Err(Error::Ended(handler.log.last())),
                };
            }
            _ = ticks.tick() => if let Some(report) = handler.calls.take(&token) {
                idle = Instant::now() + times.idle;
                progress(report);
            },
            _ = stopped.wait_for(|&stopped| stopped) => break Error::Stopped,
            () = sleep_until(idle) => break Error::TimedOut(times.idle),
            () = sleep_until(last) => break Error::TimedOut(times.total),
        }
    };
    handler.calls.end(&token);
    let _ = timeout(CANCEL, handle.cancel(Some(reason.to_string()))).await;
    Err(reason)
}

/// Client that sends `headers`, to this address only.
fn client(headers: &BTreeMap<String, String>) -> Result<reqwest::Client> {
    let mut sent = HeaderMap::new();
    for (name, value) in headers {
        let invalid = || Error::File(format!("the header {name} is invalid"));
        let mut value = HeaderValue::from_str(value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        sent.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?, value);
    }
    let client = reqwest::Client::builder()
        .default_headers(sent)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10));
    client.build().map_err(|error| Error::Unreachable(error.to_string()))
}

fn protocol(error: &ClientInitializeError) -> Error {
    Error::Protocol(printable(&error.to_string()))
}

fn unreachable(error: &ClientInitializeError) -> Error {
    if error.is_authorization_required() {
        return Error::Key;
    }
    match error {
        ClientInitializeError::TransportError { .. } | ClientInitializeError::ConnectionClosed(_) => {
            Error::Unreachable(printable(&chain(error)))
        }
        error => protocol(error),
    }
}

/// Texts of an error and its sources.
fn chain(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(Some(error), |error| error.source());
    sources.last().map_or_else(String::new, ToString::to_string)
}
