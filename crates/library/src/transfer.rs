//! One file from the hub into the cache: goes on where a last attempt ended, waits for another program that
//! fetches the same file, and puts nothing into place that has not been compared with the hub's checksum.
//!
//! hf-hub (1.0) begins every download at the first byte, and asks for a file's checksum in a way that loses
//! it behind the redirect to the storage; so the bytes and their checksum are asked for here, with the HTTP
//! client it uses itself and in the cache's own layout.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::time::Duration;

use reqwest::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, LOCATION,
    RANGE,
};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::cache::CachedRepository;
use crate::hub::{Contents, Hub, http_client, hub_error};
use crate::{Error, Result};

/// Attempts that bring nothing before the connection counts as lost.
const ATTEMPTS: u32 = 5;
/// The pause before the second attempt, doubled before each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(400);
/// How often it is looked whether another program is done.
const GLANCE: Duration = Duration::from_millis(200);
/// Redirects within the hub, as for a repository that was renamed.
const REDIRECTS: usize = 5;

/// Digits of the checksum that git names small files by.
const GIT_DIGITS: usize = 40;
/// Digits of the one that large files are named by.
const SHA256_DIGITS: usize = 64;

/// What a running download is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    GoOn,
    Pause,
    Cancel,
}

/// What a transfer says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Bytes of the file that are here.
    At(u64),
    Waiting(u64),
    Verifying,
}

/// Why a transfer ended before the file was there.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// As it was told.
    Ordered,
    /// What is here can be gone on from.
    Interrupted(Error),
    /// What was here is gone.
    Failed(Error),
    /// The hub no longer has this revision.
    Outdated,
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Interrupted(error)
    }
}

type Outcome<T> = std::result::Result<T, Stopped>;

/// A file of a revision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) repository: &'a str,
    pub(crate) revision: &'a str,
    pub(crate) path: &'a str,
}

/// What the hub says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    /// The file's name in the cache: for large files their SHA-256, for small ones git's SHA-1.
    pub(crate) etag: String,
    pub(crate) bytes: u64,
}

/// A connection to the hub for files.
pub(crate) struct Transfer<'a> {
    hub: &'a Hub,
    /// Follows redirects, to storage elsewhere.
    client: Client,
    /// Does not: what the hub says of a file it says before them.
    direct: Client,
    order: watch::Receiver<Order>,
}

impl<'a> Transfer<'a> {
    pub(crate) fn new(hub: &'a Hub, order: watch::Receiver<Order>) -> Result<Self> {
        let client = |redirects| http_client(redirects).map_err(|error| hub.unreachable(error));
        Ok(Self { hub, client: client(Policy::default())?, direct: client(Policy::none())?, order })
    }

    /// What a repository holds. That is asked on a thread that nobody waits for after an order to stop.
    pub(crate) async fn contents(&mut self, repository: &str) -> Outcome<Contents> {
        let (hub, name) = (self.hub.clone(), repository.to_owned());
        let asked = tokio::task::spawn_blocking(move || hub.contents(&name));
        let listed = or_stop(&mut self.order, asked).await?;
        Ok(listed.map_err(|error| hub_error(&error.to_string()))??)
    }

    /// Size and checksum of a file. Tries again when the connection fails.
    pub(crate) async fn look(&mut self, wanted: Wanted<'_>) -> Outcome<Known> {
        let mut failures = Failures::default();
        loop {
            match self.look_once(wanted).await {
                Err(Stopped::Interrupted(error @ Error::Unreachable { .. })) => {
                    self.rest(&mut failures, error).await?;
                }
                other => return other,
            }
        }
    }

    async fn look_once(&mut self, wanted: Wanted<'_>) -> Outcome<Known> {
        let mut url = self.url(wanted)?;
        for _ in 0..REDIRECTS {
            let request = self.direct.head(url.clone()).headers(self.permission());
            let answer = or_stop(&mut self.order, request.send()).await?;
            let answer = answer.map_err(|error| self.hub.unreachable(error))?;
            let headers = answer.headers();
            let next = text(headers, LOCATION.as_str()).filter(|_| answer.status().is_redirection());
            match next.and_then(|next| sent_on(&url, next)) {
                Some(next) => url = next,
                _ if headers.contains_key("x-repo-commit") => {
                    return Ok(known(headers).ok_or_else(|| hub_error("a file without size or checksum"))?);
                }
                _ => return Err(self.refusal(wanted, &answer)),
            }
        }
        Err(hub_error("redirects in a circle").into())
    }

    /// Fetches a file, or joins who fetches it, and puts it into place.
    pub(crate) async fn fetch(
        &mut self,
        wanted: Wanted<'_>,
        known: &Known,
        say: &mut (dyn FnMut(Step) + Send),
    ) -> Outcome<()> {
        let cached = CachedRepository::new(self.hub.cache(), wanted.repository);
        let link = cached.link(wanted.revision, wanted.path);
        if has(&link, known.bytes) {
            return Ok(());
        }
        let _lock = self.lock(&cached, known, say).await?;
        // Whoever held the lock may have put it there, without a blob where links are not allowed.
        if has(&link, known.bytes) {
            return Ok(());
        }
        let blob = cached.blob(&known.etag);
        if !has(&blob, known.bytes) {
            let partial = cached.partial(&known.etag);
            self.complete(wanted, known, &partial, say).await?;
            say(Step::Verifying);
            self.verify(wanted, known, &partial)?;
            fs::rename(&partial, &blob).map_err(|error| disk(&blob, error))?;
        }
        Ok(cached.publish(wanted.revision, wanted.path, known)?)
    }

    async fn lock(
        &mut self,
        cached: &CachedRepository,
        known: &Known,
        say: &mut (dyn FnMut(Step) + Send),
    ) -> Outcome<File> {
        loop {
            if let Some(lock) = cached.lock(&known.etag)? {
                return Ok(lock);
            }
            say(Step::Waiting(length(&cached.partial(&known.etag)).min(known.bytes)));
            self.sleep(GLANCE).await?;
        }
    }

    /// Fetches what the partial file lacks.
    async fn complete(
        &mut self,
        wanted: Wanted<'_>,
        known: &Known,
        partial: &Path,
        say: &mut (dyn FnMut(Step) + Send),
    ) -> Outcome<()> {
        if length(partial) > known.bytes {
            empty(partial).map_err(|error| disk(partial, error))?;
        }
        let mut file = open(partial)?;
        let mut failures = Failures::default();
        loop {
            let before = length(partial);
            say(Step::At(before));
            if before == known.bytes {
                return file.sync_all().map_err(|error| disk(partial, error).into());
            }
            match self.receive(wanted, known, before, &mut file, say).await {
                Ok(()) => {}
                Err(Stopped::Interrupted(error @ Error::Unreachable { .. })) => {
                    if length(partial) > before {
                        failures = Failures::default();
                    }
                    self.rest(&mut failures, error).await?;
                }
                Err(stopped) => return Err(stopped),
            }
        }
    }

    /// One answer of the hub, from byte `start` on.
    async fn receive(
        &mut self,
        wanted: Wanted<'_>,
        known: &Known,
        start: u64,
        file: &mut File,
        say: &mut (dyn FnMut(Step) + Send),
    ) -> Outcome<()> {
        let mut request = self.client.get(self.url(wanted)?).headers(self.permission());
        if start > 0 {
            request = request.header(RANGE, format!("bytes={start}-"));
        }
        let answer = or_stop(&mut self.order, request.send()).await?;
        let mut answer = answer.map_err(|error| self.hub.unreachable(error))?;
        // A server that does not know ranges begins at the first byte: what is here is passed over.
        let mut surplus = match answer.status() {
            StatusCode::PARTIAL_CONTENT if range_start(answer.headers()) == Some(start) => 0,
            StatusCode::OK => start,
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
                return Err(hub_error("another part of the file than was asked for").into());
            }
            _ => return Err(self.refusal(wanted, &answer)),
        };
        let mut here = start;
        while let Some(chunk) =
            or_stop(&mut self.order, answer.chunk()).await?.map_err(|e| self.hub.unreachable(e))?
        {
            let passed_over = surplus.min(chunk.len() as u64);
            surplus -= passed_over;
            let fresh = &chunk[passed_over as usize..];
            if here + fresh.len() as u64 > known.bytes {
                return Err(self.damaged(wanted, known, "more"));
            }
            file.write_all(fresh).map_err(|error| self.unwritten(error))?;
            here += fresh.len() as u64;
            say(Step::At(here));
        }
        if here == known.bytes {
            return Ok(());
        }
        // An end that looks like one is a cut, too, when bytes are missing.
        let reason = format!("the connection ended {} bytes early", known.bytes - here);
        Err(Error::Unreachable { endpoint: self.hub.endpoint().into(), reason }.into())
    }

    fn damaged(&self, wanted: Wanted<'_>, known: &Known, found: &str) -> Stopped {
        let partial = CachedRepository::new(self.hub.cache(), wanted.repository).partial(&known.etag);
        let _ = fs::remove_file(partial);
        let expected = format!("{} bytes", known.bytes);
        Stopped::Failed(Error::Damaged { file: wanted.path.into(), expected, found: found.into() })
    }

    fn verify(&self, wanted: Wanted<'_>, known: &Known, partial: &Path) -> Outcome<()> {
        let (kind, found) = if known.etag.len() == GIT_DIGITS {
            let hash = Sha1::new_with_prefix(format!("blob {}\0", known.bytes));
            ("git's SHA-1", self.checksum(partial, hash)?)
        } else {
            ("SHA-256", self.checksum(partial, Sha256::new())?)
        };
        if found == known.etag.to_ascii_lowercase() {
            return Ok(());
        }
        fs::remove_file(partial).map_err(|error| disk(partial, error))?;
        Err(Stopped::Failed(Error::Damaged {
            file: wanted.path.into(),
            expected: format!("{kind} {}", known.etag),
            found,
        }))
    }

    /// In lower-case hex.
    fn checksum(&self, path: &Path, mut hash: impl Digest) -> Outcome<String> {
        let mut file = File::open(path).map_err(|error| disk(path, error))?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            if *self.order.borrow() != Order::GoOn {
                return Err(Stopped::Ordered);
            }
            match file.read(&mut buffer).map_err(|error| disk(path, error))? {
                0 => return Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
                read => hash.update(&buffer[..read]),
            }
        }
    }

    fn url(&self, Wanted { repository, revision, path }: Wanted<'_>) -> Result<Url> {
        let endpoint = || Error::Endpoint(self.hub.endpoint().to_owned());
        let mut url = Url::parse(self.hub.endpoint()).map_err(|_| endpoint())?;
        url.path_segments_mut()
            .map_err(|()| endpoint())?
            .pop_if_empty()
            .extend(repository.split('/'))
            .extend(["resolve", revision])
            .extend(path.split('/'));
        Ok(url)
    }

    fn permission(&self) -> HeaderMap {
        // The size of a compressed answer would not be that of the file.
        let mut headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]);
        let token = self.hub.token().value.and_then(|token| format!("Bearer {token}").parse().ok());
        headers.extend(token.map(|mut token: HeaderValue| {
            token.set_sensitive(true);
            (AUTHORIZATION, token)
        }));
        headers
    }

    /// What an answer other than the file means.
    fn refusal(&self, wanted: Wanted<'_>, answer: &Response) -> Stopped {
        let status = answer.status();
        let code = text(answer.headers(), "x-error-code").unwrap_or_default();
        match status.as_u16() {
            _ if code == "GatedRepo" => self.hub.gated(wanted.repository).into(),
            404 if code != "RepoNotFound" => Stopped::Outdated,
            status @ (401 | 403 | 404) => self.hub.refused(status, wanted.repository).into(),
            429 | 500..600 => {
                let reason = format!("it answered {status}");
                Error::Unreachable { endpoint: self.hub.endpoint().into(), reason }.into()
            }
            _ => hub_error(&format!("status {status}")).into(),
        }
    }

    fn unwritten(&self, error: std::io::Error) -> Error {
        let place = self.hub.cache().to_owned();
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Error::DiskFull { place },
            _ => Error::Disk { path: place, source: error },
        }
    }

    /// Waits before the next attempt; gives up with `error` after too many.
    async fn rest(&mut self, failures: &mut Failures, error: Error) -> Outcome<()> {
        failures.0 += 1;
        if failures.0 >= ATTEMPTS {
            return Err(error.into());
        }
        tracing::info!("attempt {} failed: {error}", failures.0);
        self.sleep(FIRST_PAUSE * 2u32.pow(failures.0 - 1)).await
    }

    async fn sleep(&mut self, time: Duration) -> Outcome<()> {
        or_stop(&mut self.order, tokio::time::sleep(time)).await
    }
}

/// Attempts in a row that brought nothing.
#[derive(Default)]
struct Failures(u32);

/// What `future` gives, unless the order to stop comes first.
async fn or_stop<T>(order: &mut watch::Receiver<Order>, future: impl Future<Output = T>) -> Outcome<T> {
    tokio::select! {
        // An order that nobody can change any more is one to stop.
        _ = order.wait_for(|order| *order != Order::GoOn) => Err(Stopped::Ordered),
        value = future => Ok(value),
    }
}

/// Where within the hub it sends on to, by a path. A whole address, or a path that leads to another host, is
/// that of the storage, which knows nothing of the file's name in the cache.
fn sent_on(url: &Url, location: &str) -> Option<Url> {
    let next = url.join(location).ok()?;
    (location.starts_with('/') && next.origin() == url.origin()).then_some(next)
}

/// Size and name in the cache from the answer of the hub itself.
fn known(headers: &HeaderMap) -> Option<Known> {
    let etag = text(headers, "x-linked-etag").or_else(|| text(headers, ETAG.as_str()))?;
    let etag = etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"');
    let size = text(headers, "x-linked-size").or_else(|| text(headers, CONTENT_LENGTH.as_str()))?;
    // It becomes the name of a file, and what arrives is compared with it.
    let checksum =
        [GIT_DIGITS, SHA256_DIGITS].contains(&etag.len()) && etag.bytes().all(|c| c.is_ascii_hexdigit());
    checksum.then_some(Known { etag: etag.to_owned(), bytes: size.parse().ok()? })
}

/// The first byte of `Content-Range: bytes 5-9/10`.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    text(headers, CONTENT_RANGE.as_str())?.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn open(partial: &Path) -> Result<File> {
    let opened = partial.parent().map_or(Ok(()), fs::create_dir_all);
    let opened = opened.and_then(|()| OpenOptions::new().create(true).append(true).open(partial));
    opened.map_err(|error| disk(partial, error))
}

/// Windows does not shorten a file through a handle that appends.
fn empty(partial: &Path) -> std::io::Result<()> {
    OpenOptions::new().write(true).open(partial)?.set_len(0)
}

/// Bytes of a file; 0 when it is not there.
pub(crate) fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Whether a whole file is there.
pub(crate) fn has(path: &Path, bytes: u64) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == bytes)
}

fn disk(path: &Path, source: std::io::Error) -> Error {
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Error::DiskFull { place: path.parent().unwrap_or(path).to_owned() }
        }
        _ => Error::Disk { path: path.to_owned(), source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leads_to_another_host_is_not_followed_with_the_token() {
        let url = Url::parse("https://hub.example/owner/name/resolve/main/a.gguf").unwrap();
        let next = sent_on(&url, "/owner/renamed/resolve/main/a.gguf").unwrap();
        assert_eq!(next.as_str(), "https://hub.example/owner/renamed/resolve/main/a.gguf");
        for location in ["//elsewhere/a", "/\\elsewhere/a", "/\t/elsewhere/a", "https://elsewhere/a", "a"] {
            assert_eq!(sent_on(&url, location), None, "{location:?}");
        }
    }

    #[test]
    fn only_a_checksum_names_a_file() {
        let known_by = |etag: &str| {
            let headers = [(ETAG, etag.parse().unwrap()), (CONTENT_LENGTH, HeaderValue::from_static("3"))];
            known(&HeaderMap::from_iter(headers)).map(|known| known.etag)
        };
        for digits in [GIT_DIGITS, SHA256_DIGITS] {
            let checksum = "0aF".repeat(digits)[..digits].to_owned();
            assert_eq!(known_by(&format!("W/\"{checksum}\"")), Some(checksum));
        }
        for other in ["", "\"abc\"", &"g".repeat(GIT_DIGITS), &"../".repeat(SHA256_DIGITS / 3)] {
            assert_eq!(known_by(other), None, "{other:?}");
        }
    }
}
