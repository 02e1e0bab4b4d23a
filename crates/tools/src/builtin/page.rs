//! Reads a web page as text, with limits on time and size.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use tokio::runtime::Handle;

use super::address::{PublicResolver, refusal};
use crate::error::{Error, Result};
use crate::log::printable;

/// Time for a page, and to connect.
const TIME: Duration = Duration::from_secs(20);
const CONNECT: Duration = Duration::from_secs(10);

/// Largest page in bytes, unpacked.
const LARGEST: usize = 2 << 20;

/// Most redirects, each of which is checked like the address itself.
const REDIRECTS: usize = 5;

/// Columns of the text.
const WIDTH: usize = 100;

/// Reads the page at `url`.
pub(super) fn read(url: &str, runtime: &Handle, stop: &dyn Fn() -> bool) -> Result<String> {
    let url =
        Url::parse(url).map_err(|_| Error::Builtin(format!("{} is not an address.", printable(url))))?;
    if let Some(reason) = refusal(&url) {
        return Err(Error::Builtin(reason));
    }
    let (done, page) = mpsc::channel();
    let task = runtime.spawn(async move { drop(done.send(fetch(url).await)) });
    loop {
        match page.recv_timeout(Duration::from_millis(50)) {
            Ok(page) => return page,
            Err(RecvTimeoutError::Timeout) if stop() => {
                task.abort();
                return Err(Error::Stopped);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Error::Stopped),
        }
    }
}

async fn fetch(url: Url) -> Result<String> {
    let redirects = Policy::custom(|attempt| match refusal(attempt.url()) {
        Some(reason) => attempt.error(reason),
        None if attempt.previous().len() > REDIRECTS => attempt.error("there are too many redirects"),
        None => attempt.follow(),
    });
    // A proxy would resolve names without the check.
    let client = Client::builder().no_proxy().redirect(redirects).dns_resolver(Arc::new(PublicResolver));
    let client = client.connect_timeout(CONNECT).timeout(TIME).referer(false).build().map_err(failed)?;
    let mut response = client.get(url).send().await.map_err(failed)?;
    if !response.status().is_success() {
        return Err(Error::Builtin(format!("The server answered with the status {}.", response.status())));
    }
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_text = kind.is_empty() || kind.starts_with("text/");
    if !is_text && !kind.ends_with("json") && !kind.ends_with("xml") {
        return Err(Error::Builtin(format!("The page is no text but {}.", printable(&kind))));
    }
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(failed)? {
        body.extend_from_slice(&part);
        if body.len() > LARGEST {
            return Err(Error::Builtin(format!("The page is larger than {} MB.", LARGEST >> 20)));
        }
    }
    if matches!(&*kind, "text/html" | "application/xhtml+xml") {
        return html2text::from_read(&body[..], WIDTH)
            .map_err(|error| Error::Builtin(format!("The page cannot be shown as text: {error}.")));
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// Returns the innermost reason why a page could not be read.
fn failed(error: reqwest::Error) -> Error {
    if error.is_timeout() {
        return Error::TimedOut(TIME);
    }
    let mut reason: &dyn std::error::Error = &error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    Error::Builtin(format!("The page could not be read: {}", printable(&reason.to_string())))
}
