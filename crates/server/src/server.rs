//! The running server: its thread, connections and shutdown.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;

use crate::address::{Address, Key, StartError};
use crate::guard::Guard;
use crate::log::{RequestLog, ServerRequest};
use crate::routes::router;
use crate::writer::Writer;

/// Most connections at a time. Beyond them the oldest that has sent no request yet is closed; where
/// there is none, others wait.
const MAX_CONNECTIONS: usize = 256;

/// Time within which a request's head must arrive, also the next one of a connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Time after which a client that does not read is disconnected.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Time that running replies get when the server stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// A server that runs until it is dropped.
pub struct Server {
    address: SocketAddr,
    log: RequestLog,
    stop: Option<oneshot::Sender<()>>,
    /// Receives when the port is free again.
    closed: mpsc::Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts the server on a thread of its own; `writer` writes the replies.
    ///
    /// # Errors
    /// Returns the reasons of [`StartError`].
    pub fn start(address: &Address, writer: Arc<dyn Writer>) -> Result<Self, StartError> {
        let listener = address.listen()?;
        let bound = listener.local_addr()?;
        let who = Guard { key: Key::of(&address.key), loopback: bound.ip().is_loopback() };
        let log = RequestLog::default();
        let router = router(writer, who, log.clone());
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let (closing, closed) = mpsc::channel();
        let work = move || {
            if let Err(error) = runtime.block_on(serve(listener, router, stopped, closing)) {
                tracing::error!("the server ended: {error}");
            }
        };
        let thread = thread::Builder::new().name("server".to_owned()).spawn(work)?;
        Ok(Self { address: bound, log, stop: Some(stop), closed, thread: Some(thread) })
    }

    /// Address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the latest requests, the latest first; at most [`MAX_KEPT`](crate::log::MAX_KEPT).
    pub fn requests(&self) -> Vec<ServerRequest> {
        self.log.latest()
    }

    /// Base URL for clients, for example "http://127.0.0.1:8642/v1".
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Stops the server and waits a few seconds for running replies.
    pub fn finish(mut self) {
        self.close();
        if let Some(thread) = self.thread.take() {
            // The panic is in the log.
            let _ = thread.join();
        }
    }

    /// Frees the port. Running replies still get a few seconds.
    fn close(&mut self) {
        self.stop = None;
        // A stopped thread sends nothing.
        let _ = self.closed.recv();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

async fn serve(
    listener: StdListener,
    router: Router,
    mut stopped: oneshot::Receiver<()>,
    closed: mpsc::Sender<()>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let (ending, ends) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut silent = VecDeque::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() <= MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    let asked = Arc::new(AtomicBool::new(false));
                    let connection = serve_connection(stream, router.clone(), Arc::clone(&asked), ends.clone());
                    let handle = connections.spawn(connection);
                    silent.push_back(Silent { asked, handle });
                    if connections.len() > MAX_CONNECTIONS {
                        close_oldest(&mut silent);
                    }
                }
                Err(error) => {
                    // Usually too many open files, some of which will be closed.
                    tracing::warn!("a connection was not accepted: {error}");
                    sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = &mut stopped => break,
        }
    }
    drop((listener, closed));
    // Closed connections need no signal.
    let _ = ending.send(true);
    let all_end = async { while connections.join_next().await.is_some() {} };
    // Dropping the set ends the remaining ones.
    let _ = timeout(SHUTDOWN_TIMEOUT, all_end).await;
    Ok(())
}

/// A connection that may not have sent a request yet.
struct Silent {
    asked: Arc<AtomicBool>,
    handle: AbortHandle,
}

/// Closes the oldest connection that has sent no request.
fn close_oldest(silent: &mut VecDeque<Silent>) {
    silent.retain(|one| !one.asked.load(Ordering::Relaxed) && !one.handle.is_finished());
    if let Some(oldest) = silent.pop_front() {
        oldest.handle.abort();
    }
}

/// Serves the requests of a connection until either side closes it. The first sets `asked`.
async fn serve_connection(
    stream: TcpStream,
    router: Router,
    asked: Arc<AtomicBool>,
    mut ends: watch::Receiver<bool>,
) {
    // Chunks of text are small and should not wait for more.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(UNREAD_TIMEOUT));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let io = TokioIo::new(Box::pin(stream));
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request| {
        asked.store(true, Ordering::Relaxed);
        router.call(request)
    });
    let mut connection = pin!(builder.serve_connection(io, service));
    let done = tokio::select! {
        done = connection.as_mut() => done,
        _ = ends.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = done {
        tracing::debug!("a connection ended early: {error}");
    }
}
