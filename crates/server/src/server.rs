//! A server that runs: its thread, its connections, its end.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;

use crate::address::{Address, Key, StartError};
use crate::guard::Guard;
use crate::log::{RequestLog, ServerRequest};
use crate::routes::router;
use crate::writer::Writer;

/// Connections at a time; others wait.
const CONNECTIONS: usize = 256;

/// What the head of a request may take, also the next one of a connection.
const HEAD: Duration = Duration::from_secs(30);

/// After this a client that does not read is given up.
const UNREAD: Duration = Duration::from_secs(60);

/// How long replies under way may go on when the server ends.
const GRACE: Duration = Duration::from_secs(5);

/// A server that runs until it is dropped.
pub struct Server {
    address: SocketAddr,
    log: RequestLog,
    stop: Option<oneshot::Sender<()>>,
    /// Told once the port is free again.
    closed: mpsc::Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens, on a thread of its own, and has `writer` reply.
    ///
    /// # Errors
    /// See [`StartError`].
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The latest requests, the latest first; at most [`KEPT`](crate::log::KEPT).
    pub fn requests(&self) -> Vec<ServerRequest> {
        self.log.latest()
    }

    /// "http://127.0.0.1:8642/v1", as clients want to have it.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Ends it and waits for replies under way, which have a few seconds.
    pub fn finish(mut self) {
        self.close();
        if let Some(thread) = self.thread.take() {
            // A panic has been logged.
            let _ = thread.join();
        }
    }

    /// Frees the port. Replies under way still have a few seconds.
    fn close(&mut self) {
        self.stop = None;
        // Nothing comes from a thread that is gone.
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
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS => match accepted {
                Ok((stream, _)) => drop(connections.spawn(talk(stream, router.clone(), ends.clone()))),
                Err(error) => {
                    // Mostly too many open files, of which some will be closed.
                    tracing::warn!("a connection was not taken: {error}");
                    sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = &mut stopped => break,
        }
    }
    drop((listener, closed));
    // Connections that are gone need not know.
    let _ = ending.send(true);
    let all_end = async { while connections.join_next().await.is_some() {} };
    // What goes on nevertheless ends with the set.
    let _ = timeout(GRACE, all_end).await;
    Ok(())
}

/// Answers a connection's requests until either side has enough.
async fn talk(stream: TcpStream, router: Router, mut ends: watch::Receiver<bool>) {
    // Pieces of text are small and should not wait for more.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(UNREAD));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let io = TokioIo::new(Box::pin(stream));
    let mut connection = pin!(builder.serve_connection(io, TowerToHyperService::new(router)));
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
