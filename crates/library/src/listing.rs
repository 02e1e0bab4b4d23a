//! Requests about repositories of the hub: JSON in pages, with limits over all of them on bytes,
//! entries and time. A hub, or a computer between, may send without end.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use hf_hub::repository::{ModelInfo, RepoTreeEntry};
use reqwest::header::{AUTHORIZATION, HeaderMap, LINK};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};
use serde::de::{DeserializeOwned, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, de};
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

use crate::headers::text;
use crate::hub::{Hub, http_client, hub_error};
use crate::{Error, Result};

/// Limits of one listing. The largest repositories have some thousand files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) bytes: usize,
    pub(crate) entries: usize,
    pub(crate) time: Duration,
}

pub(crate) const LIMITS: Limits =
    Limits { bytes: 64 << 20, entries: MAX_ENTRIES, time: Duration::from_secs(60) };

const MAX_ENTRIES: usize = 50_000;

/// Pause before a request is sent a second time.
const PAUSE: Duration = Duration::from_millis(400);

/// Interval at which a caller's wish to stop is checked.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Requests of one listing.
pub(crate) struct Listing<'a> {
    hub: &'a Hub,
    /// Name for error messages.
    name: &'a str,
    client: Client,
    limits: Limits,
}

impl<'a> Listing<'a> {
    pub(crate) fn new(hub: &'a Hub, name: &'a str, limits: Limits) -> Result<Self> {
        let client = http_client(Policy::default()).map_err(|error| hub.unreachable(error))?;
        Ok(Self { hub, name, client, limits })
    }

    /// Returns facts about a repository.
    pub(crate) async fn info(&mut self, id: &str) -> Result<ModelInfo> {
        let url = self.url(&["api/models", id])?;
        Ok(self.json(url).await?.0)
    }

    /// Returns the files of a revision.
    pub(crate) async fn tree(&mut self, id: &str, revision: &str) -> Result<Vec<RepoTreeEntry>> {
        let mut url = self.url(&["api/models", id, "tree", revision])?;
        url.query_pairs_mut().append_pair("recursive", "true");
        let mut entries = Vec::new();
        loop {
            let (page, next) = self.json::<List<RepoTreeEntry>>(url).await?;
            entries.extend(page.0);
            if entries.len() > self.limits.entries {
                return Err(too_many());
            }
            let Some(next) = next else { return Ok(entries) };
            url = next;
        }
    }

    /// Returns the first page of a search.
    pub(crate) async fn search(&mut self, query: &[(&str, &str)]) -> Result<Vec<ModelInfo>> {
        let mut url = self.url(&["api/models"])?;
        url.query_pairs_mut().extend_pairs(query);
        Ok(self.json::<List<ModelInfo>>(url).await?.0.0)
    }

    fn url(&self, parts: &[&str]) -> Result<Url> {
        let url = format!("{}/{}", self.hub.endpoint(), parts.join("/"));
        Url::parse(&url).map_err(|_| Error::Endpoint(self.hub.endpoint()))
    }

    /// Returns the JSON at `url`, and the address of the next page.
    async fn json<T: DeserializeOwned>(&mut self, url: Url) -> Result<(T, Option<Url>)> {
        let mut response = self.send(&url).await?;
        let next = text(response.headers(), LINK.as_str()).and_then(next_page);
        // The token is sent with each page.
        let next = next.map(|next| url.join(next).ok().filter(|next| next.origin() == url.origin()));
        let next = next.map(|next| next.ok_or_else(|| hub_error("a list that continues elsewhere")));
        let next = next.transpose()?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.hub.unreachable(error))? {
            let left = self.limits.bytes.checked_sub(chunk.len());
            self.limits.bytes = left.ok_or_else(|| hub_error("a list without end"))?;
            body.extend_from_slice(&chunk);
        }
        let json = serde_json::from_slice(&body).map_err(|error| {
            if error.to_string().starts_with(TOO_MANY) { too_many() } else { hub_error("not JSON") }
        })?;
        Ok((json, next))
    }

    /// Sends a request, and once more if the connection or the server fails.
    async fn send(&self, url: &Url) -> Result<Response> {
        let permission = self.hub.permission().map(|token| (AUTHORIZATION, token));
        let headers = HeaderMap::from_iter(permission);
        let send = || self.client.get(url.clone()).headers(headers.clone()).send();
        let mut sent = send().await;
        if sent.as_ref().map_or_else(|error| !error.is_builder(), |sent| sent.status().is_server_error()) {
            sleep(PAUSE).await;
            sent = send().await;
        }
        let response = sent.map_err(|error| match error.is_builder() {
            true => Error::Endpoint(self.hub.endpoint()),
            false => self.hub.unreachable(error),
        })?;
        match response.status() {
            status if status.is_success() => Ok(response),
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND) => {
                Err(self.hub.refused(status.as_u16(), self.name))
            }
            status => Err(hub_error(&format!("status {status}"))),
        }
    }
}

/// Returns the address of the next page in a `Link` header.
fn next_page(link: &str) -> Option<&str> {
    let part = link.split(',').find(|part| part.contains("rel=\"next\""))?;
    part.split_once('<')?.1.split_once('>').map(|(address, _)| address)
}

const TOO_MANY: &str = "more entries than";

fn too_many() -> Error {
    hub_error(&format!("{TOO_MANY} {MAX_ENTRIES}"))
}

/// A list of at most [`MAX_ENTRIES`]: small entries take few bytes of JSON but much memory.
struct List<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = List<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> std::result::Result<List<T>, A::Error> {
                let mut list = Vec::new();
                while let Some(entry) = from.next_element()? {
                    if list.len() == MAX_ENTRIES {
                        return Err(de::Error::custom(format_args!("{TOO_MANY} {MAX_ENTRIES}")));
                    }
                    list.push(entry);
                }
                Ok(List(list))
            }
        }

        from.deserialize_seq(Entries(PhantomData))
    }
}

/// Limits a future to `time`.
pub(crate) async fn within<T>(hub: &Hub, time: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
    let reason = format!("it took longer than {} seconds", time.as_secs());
    let late = Err(Error::Unreachable { endpoint: hub.endpoint(), reason });
    timeout(time, work).await.unwrap_or(late)
}

/// Blocks until `work` is done, or `stop` returns `true`, which drops it and closes its connection.
///
/// # Errors
/// Returns errors of `work`, and `Error::Stopped`.
pub(crate) fn wait<T: Send>(
    stop: &(dyn Fn() -> bool + Sync),
    work: impl Future<Output = Result<T>> + Send,
) -> Result<T> {
    let stopped = async {
        while !stop() {
            sleep(STOP_CHECK_INTERVAL).await;
        }
    };
    // A thread that runs futures must not block on another.
    let run = || {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| hub_error(&error.to_string()))?;
        let ended = runtime.block_on(async {
            tokio::select! {
                biased;
                () = stopped => Err(Error::Stopped),
                ended = work => ended,
            }
        });
        // A running name lookup cannot be cancelled, so it is not waited for.
        runtime.shutdown_background();
        ended
    };
    let ended = std::thread::scope(|scope| scope.spawn(run).join());
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Instant;

    use super::*;

    /// A hub that sends `head` and then `body` for ever on every connection, a page after the other
    /// where `body` is complete JSON.
    fn endless(head: &'static str, body: &'static str, pause: Duration) -> Hub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let next = format!("{endpoint}/next");
        thread::spawn(move || {
            for (number, mut call) in listener.incoming().flatten().enumerate() {
                let _ = call.read(&mut [0; 8192]);
                let info = r#"{"id":"owner/name","sha":"abc"}"#;
                let one = if number == 0 { info } else { body };
                let link = format!("Link: <{next}>; rel=\"next\"\r\n");
                let begin = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
                if number == 0 || head.is_empty() {
                    let length = one.len();
                    let _ = write!(call, "{begin}{link}Content-Length: {length}\r\n\r\n{one}");
                    continue;
                }
                let _ = write!(call, "{begin}\r\n{head}");
                let many = body.repeat(if pause.is_zero() { 4096 } else { 1 });
                while call.write_all(many.as_bytes()).is_ok() {
                    thread::sleep(pause);
                }
            }
        });
        Hub::at(&endpoint, std::env::temp_dir(), None)
    }

    const FILE: &str = r#"{"type":"file","path":"a","size":1,"oid":"0"},"#;

    #[test]
    fn a_hub_that_sends_without_end_is_refused_at_a_limit() {
        for (head, body, expected) in [
            ("[", FILE, "a list without end"),
            ("", r#"[{"type":"file","path":"a","size":1,"oid":"0"}]"#, "more entries than"),
        ] {
            let hub = endless(head, body, Duration::ZERO);
            // Small limits, so that the test is short.
            let limits = Limits { bytes: 1 << 20, entries: 100, ..LIMITS };
            let error = wait(&|| false, hub.contents_within("owner/name", limits)).unwrap_err();
            assert!(matches!(&error, Error::Hub { found } if found.contains(expected)), "{error}");
        }
    }

    #[test]
    fn a_list_of_more_entries_than_any_repository_has_is_refused_while_it_is_read() {
        let json = format!("[{}7]", "7,".repeat(MAX_ENTRIES));
        let error = serde_json::from_str::<List<u32>>(&json).err().unwrap();
        assert!(error.to_string().starts_with(TOO_MANY), "{error}");
        assert_eq!(serde_json::from_str::<List<u32>>("[7,7]").unwrap().0, [7, 7]);
    }

    #[test]
    fn a_hub_that_sends_slowly_is_stopped_by_the_deadline_and_by_its_caller() {
        let begun = Instant::now();
        let hub = endless("[", FILE, Duration::from_millis(50));
        let limits = Limits { time: Duration::from_millis(300), ..LIMITS };
        let error = wait(&|| false, hub.contents_within("owner/name", limits)).unwrap_err();
        assert!(matches!(&error, Error::Unreachable { reason, .. } if reason.contains("longer")), "{error}");
        let hub = endless("[", FILE, Duration::from_millis(50));
        let stop = AtomicBool::new(false);
        let error = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(200));
                stop.store(true, Ordering::Relaxed);
            });
            hub.repository_unless("owner/name", &|| stop.load(Ordering::Relaxed)).unwrap_err()
        });
        assert!(matches!(error, Error::Stopped), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_list_that_continues_on_another_host_is_not_followed_with_the_token() {
        assert_eq!(next_page("<https://a/b>; rel=\"prev\", </c?d=1>; rel=\"next\""), Some("/c?d=1"));
        assert_eq!(next_page("<https://a/b>; rel=\"prev\""), None);
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        other.set_nonblocking(true).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let next = format!("Link: <http://{}/next>; rel=\"next\"\r\n", other.local_addr().unwrap());
        thread::spawn(move || {
            for (number, mut call) in listener.incoming().flatten().enumerate() {
                let _ = call.read(&mut [0; 8192]);
                let body = if number == 0 { r#"{"id":"owner/name","sha":"abc"}"# } else { "[]" };
                let length = body.len();
                let head = format!("HTTP/1.1 200 OK\r\n{next}Connection: close\r\nContent-Length: {length}");
                let _ = write!(call, "{head}\r\n\r\n{body}");
            }
        });
        let error =
            Hub::at(&endpoint, std::env::temp_dir(), Some("hf_token")).repository("owner/name").unwrap_err();
        assert!(matches!(&error, Error::Hub { found } if found.contains("elsewhere")), "{error}");
        assert!(other.accept().is_err(), "the other host was asked");
    }
}
