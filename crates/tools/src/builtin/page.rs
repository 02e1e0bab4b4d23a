//! Reads a web page as text.

use std::sync::Arc;

use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use tokio::runtime::Handle;

use super::address::{PublicResolver, refusal};
use super::request::{CONNECT, TIME, body, failed, wait};
use crate::error::{Error, Result};
use crate::log::printable;

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
    wait(fetch(url), runtime, stop)
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
    let response = client.get(url).send().await.map_err(failed)?;
    if !response.status().is_success() {
        return Err(Error::Builtin(format!("The server answered with the status {}.", response.status())));
    }
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_text = kind.is_empty() || kind.starts_with("text/");
    if !is_text && !kind.ends_with("json") && !kind.ends_with("xml") {
        return Err(Error::Builtin(format!("The page is no text but {}.", printable(&kind))));
    }
    let body = body(response).await?;
    if matches!(&*kind, "text/html" | "application/xhtml+xml") {
        return html2text::from_read(&body[..], WIDTH)
            .map_err(|error| Error::Builtin(format!("The page cannot be shown as text: {error}.")));
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}
