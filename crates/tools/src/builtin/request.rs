//! Requests of built-in tools to the web, bounded in time and size.

use std::future::Future;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use reqwest::Response;
use tokio::runtime::Handle;

use crate::error::{Error, Result};
use crate::log::printable;

/// Time for a request, and to connect.
pub(super) const TIME: Duration = Duration::from_secs(20);
pub(super) const CONNECT: Duration = Duration::from_secs(10);

/// Largest body in bytes, unpacked.
pub(super) const LARGEST: usize = 2 << 20;

/// Runs a request and waits for its end; `stop` is asked several times a second.
pub(super) fn wait<T: Send + 'static>(
    request: impl Future<Output = Result<T>> + Send + 'static,
    runtime: &Handle,
    stop: &dyn Fn() -> bool,
) -> Result<T> {
    let (done, outcome) = mpsc::channel();
    let task = runtime.spawn(async move { drop(done.send(request.await)) });
    loop {
        match outcome.recv_timeout(Duration::from_millis(50)) {
            Ok(outcome) => return outcome,
            Err(RecvTimeoutError::Timeout) if stop() => {
                task.abort();
                return Err(Error::Stopped);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Error::Stopped),
        }
    }
}

/// Reads the body of a response of at most [`LARGEST`] bytes.
pub(super) async fn body(mut response: Response) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(failed)? {
        body.extend_from_slice(&part);
        if body.len() > LARGEST {
            return Err(Error::Builtin(format!("The answer is larger than {} MB.", LARGEST >> 20)));
        }
    }
    Ok(body)
}

/// Returns the innermost reason why a request failed.
pub(super) fn failed(error: reqwest::Error) -> Error {
    if error.is_timeout() {
        return Error::TimedOut(TIME);
    }
    let error = error.without_url();
    let mut reason: &dyn std::error::Error = &error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    Error::Builtin(format!("The address could not be read: {}", printable(&reason.to_string())))
}
