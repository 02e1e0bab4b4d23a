//! Download of one file from the hub into the cache: resumes a partial file, waits for another
//! program that downloads the same one, and publishes nothing before its checksum matches the
//! hub's.
//!
//! Bytes and checksums are requested here and put into the layout of hf-hub's cache
//! (docs/decisions/32-hub-downloads.md says why).

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderValue, LOCATION, RANGE};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};
use tokio::sync::watch;

use crate::cache::{CachedRepository, FileMetadata, has, length, sync_folder_of};
use crate::checksum;
use crate::headers::{metadata, range_start, redirect, text};
use crate::hub::{Contents, Hub, http_client, hub_error};
use crate::{Error, Result};

/// Attempts without new bytes after which the connection counts as lost.
const MAX_ATTEMPTS: u32 = 5;
/// Pause before the second attempt; doubled before each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(400);
/// Interval at which another program's lock is checked.
const LOCK_CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// Bytes written between two syncs: at most this much is lost in a power cut.
const SYNC_BYTES: u64 = 64 << 20;
/// Most redirects within the hub, as for a renamed repository.
const MAX_REDIRECTS: usize = 5;

/// Order to a running download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    GoOn,
    Pause,
    Cancel,
}

/// Progress of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Bytes of the file on disk.
    At(u64),
    Waiting(u64),
    Verifying,
}

/// Reason why a transfer ended early.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// Stopped by an order.
    Ordered,
    /// The partial file can be resumed.
    Interrupted(Error),
    /// The partial file was removed.
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
pub(crate) struct RequestedFile<'a> {
    pub(crate) repository: &'a str,
    pub(crate) revision: &'a str,
    pub(crate) path: &'a str,
}

/// A connection to the hub for files.
pub(crate) struct Transfer<'a> {
    hub: &'a Hub,
    /// Client that follows redirects to the storage.
    client: Client,
    /// Client that does not follow redirects: file metadata is in the hub's own response.
    direct: Client,
    order: watch::Receiver<Order>,
}

impl<'a> Transfer<'a> {
    pub(crate) fn new(hub: &'a Hub, order: watch::Receiver<Order>) -> Result<Self> {
        let client = |redirects| http_client(redirects).map_err(|error| hub.unreachable(error));
        Ok(Self { hub, client: client(Policy::default())?, direct: client(Policy::none())?, order })
    }

    /// Lists a repository.
    pub(crate) async fn contents(&mut self, repository: &str) -> Outcome<Contents> {
        Ok(or_stop(&mut self.order, self.hub.contents(repository)).await??)
    }

    /// Requests size and checksum of a file. Retries if the connection fails.
    pub(crate) async fn fetch_metadata(&mut self, wanted: RequestedFile<'_>) -> Outcome<FileMetadata> {
        let mut failures = Failures::default();
        loop {
            match self.request_metadata(wanted).await {
                Err(Stopped::Interrupted(error @ Error::Unreachable { .. })) => {
                    self.rest(&mut failures, error).await?;
                }
                other => return other,
            }
        }
    }

    async fn request_metadata(&mut self, wanted: RequestedFile<'_>) -> Outcome<FileMetadata> {
        let mut url = self.url(wanted)?;
        for _ in 0..MAX_REDIRECTS {
            let request = self.direct.head(url.clone()).headers(self.permission());
            let answer = or_stop(&mut self.order, request.send()).await?;
            let answer = answer.map_err(|error| self.hub.unreachable(error))?;
            let headers = answer.headers();
            let next = text(headers, LOCATION.as_str()).filter(|_| answer.status().is_redirection());
            match next.and_then(|next| redirect(&url, next)) {
                Some(next) => url = next,
                _ if headers.contains_key("x-repo-commit") => {
                    return Ok(metadata(headers).ok_or_else(|| hub_error("a file without size or checksum"))?);
                }
                _ => return Err(self.refusal(wanted, &answer)),
            }
        }
        Err(hub_error("a redirect loop").into())
    }

    /// Downloads a file, or waits for the program that does, and publishes it.
    pub(crate) async fn fetch(
        &mut self,
        wanted: RequestedFile<'_>,
        known: &FileMetadata,
        on_step: &mut (dyn FnMut(Step) + Send),
    ) -> Outcome<()> {
        let cached = CachedRepository::new(self.hub.cache(), wanted.repository);
        let link = cached.link(wanted.revision, wanted.path);
        if has(&link, known.bytes) {
            return Ok(());
        }
        let _lock = self.lock(&cached, known, on_step).await?;
        // The lock's previous holder may have published the file, without a blob if links are not
        // allowed.
        if has(&link, known.bytes) {
            return Ok(());
        }
        let blob = cached.blob(&known.etag);
        if !has(&blob, known.bytes) && !self.adopt(&cached, wanted, known, on_step)? {
            let partial = cached.partial(&known.etag);
            let before = Some(length(&partial)).filter(|here| *here <= known.bytes).unwrap_or(0);
            self.complete(wanted, known, &partial, on_step).await?;
            on_step(Step::Verifying);
            let mut found = self.checksum(known, &partial)?;
            if found != known.etag.to_ascii_lowercase() && before > 0 {
                // Bytes not yet synced in the last attempt may have been lost in a power cut.
                self.fetch_again(wanted, unsafe_piece(before), &partial, on_step).await?;
                on_step(Step::Verifying);
                found = self.checksum(known, &partial)?;
            }
            verify(wanted, known, &partial, found)?;
            fs::rename(&partial, &blob).map_err(|error| disk(&blob, error))?;
            sync_folder_of(&blob).map_err(|error| disk(&blob, error))?;
        }
        Ok(cached.publish(wanted.revision, wanted.path, known)?)
    }

    /// Reuses the file from another revision if it is there.
    fn adopt(
        &self,
        cached: &CachedRepository,
        wanted: RequestedFile<'_>,
        known: &FileMetadata,
        on_step: &mut (dyn FnMut(Step) + Send),
    ) -> Outcome<bool> {
        for candidate in cached.same_name_and_size(wanted.path, known.bytes) {
            on_step(Step::Verifying);
            if self.checksum(known, &candidate)? == known.etag.to_ascii_lowercase() {
                cached.adopt(&candidate, known)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn lock(
        &mut self,
        cached: &CachedRepository,
        known: &FileMetadata,
        on_step: &mut (dyn FnMut(Step) + Send),
    ) -> Outcome<File> {
        loop {
            if let Some(lock) = cached.lock(&known.etag)? {
                return Ok(lock);
            }
            on_step(Step::Waiting(length(&cached.partial(&known.etag)).min(known.bytes)));
            self.sleep(LOCK_CHECK_INTERVAL).await?;
        }
    }

    /// Downloads the missing rest of the partial file.
    async fn complete(
        &mut self,
        wanted: RequestedFile<'_>,
        known: &FileMetadata,
        partial: &Path,
        on_step: &mut (dyn FnMut(Step) + Send),
    ) -> Outcome<()> {
        if length(partial) > known.bytes {
            empty(partial).map_err(|error| disk(partial, error))?;
        }
        let mut file = open(partial)?;
        let mut failures = Failures::default();
        loop {
            let before = length(partial);
            on_step(Step::At(before));
            if before == known.bytes {
                return file.sync_all().map_err(|error| disk(partial, error).into());
            }
            match self.receive(wanted, known, before, &mut file, on_step).await {
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

    /// Receives one response of the hub, from byte `start` on.
    async fn receive(
        &mut self,
        wanted: RequestedFile<'_>,
        known: &FileMetadata,
        start: u64,
        file: &mut File,
        on_step: &mut (dyn FnMut(Step) + Send),
    ) -> Outcome<()> {
        let mut request = self.client.get(self.url(wanted)?).headers(self.permission());
        if start > 0 {
            request = request.header(RANGE, format!("bytes={start}-"));
        }
        let answer = or_stop(&mut self.order, request.send()).await?;
        let mut answer = answer.map_err(|error| self.hub.unreachable(error))?;
        // A server without range support begins at the first byte: existing bytes are skipped.
        let mut surplus = match answer.status() {
            StatusCode::PARTIAL_CONTENT if range_start(answer.headers()) == Some(start) => 0,
            StatusCode::OK => start,
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
                return Err(hub_error("a different part of the file than requested").into());
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
            here = append(file, here, fresh, File::sync_data).map_err(|error| self.unwritten(error))?;
            on_step(Step::At(here));
        }
        if here == known.bytes {
            return Ok(());
        }
        // A clean end is also an interruption if bytes are missing.
        let reason = format!("the connection ended {} bytes early", known.bytes - here);
        Err(Error::Unreachable { endpoint: self.hub.endpoint(), reason }.into())
    }

    /// Downloads a piece of the partial file again, if the storage supports ranges.
    async fn fetch_again(
        &mut self,
        wanted: RequestedFile<'_>,
        piece: Range<u64>,
        partial: &Path,
        on_step: &mut (dyn FnMut(Step) + Send),
    ) -> Outcome<()> {
        let range = format!("bytes={}-{}", piece.start, piece.end - 1);
        let request = self.client.get(self.url(wanted)?).headers(self.permission()).header(RANGE, range);
        let answer = or_stop(&mut self.order, request.send()).await?;
        let mut answer = answer.map_err(|error| self.hub.unreachable(error))?;
        if answer.status() != StatusCode::PARTIAL_CONTENT
            || range_start(answer.headers()) != Some(piece.start)
        {
            return Ok(());
        }
        let opened = OpenOptions::new().write(true).open(partial);
        let mut file = opened.map_err(|error| disk(partial, error))?;
        file.seek(SeekFrom::Start(piece.start)).map_err(|error| disk(partial, error))?;
        let mut here = piece.start;
        while let Some(chunk) =
            or_stop(&mut self.order, answer.chunk()).await?.map_err(|e| self.hub.unreachable(e))?
        {
            // A storage may send more bytes than requested.
            let wanted = &chunk[..chunk.len().min((piece.end - here) as usize)];
            file.write_all(wanted).map_err(|error| self.unwritten(error))?;
            here += wanted.len() as u64;
            on_step(Step::At(here));
            if here == piece.end {
                return Ok(file.sync_all().map_err(|error| disk(partial, error))?);
            }
        }
        let reason = format!("the connection ended {} bytes early", piece.end - here);
        Err(Error::Unreachable { endpoint: self.hub.endpoint(), reason }.into())
    }

    fn damaged(&self, wanted: RequestedFile<'_>, known: &FileMetadata, found: &str) -> Stopped {
        let partial = CachedRepository::new(self.hub.cache(), wanted.repository).partial(&known.etag);
        let _ = fs::remove_file(partial);
        let expected = format!("{} bytes", known.bytes);
        Stopped::Failed(Error::Damaged { file: wanted.path.into(), expected, found: found.into() })
    }

    fn checksum(&self, known: &FileMetadata, partial: &Path) -> Outcome<String> {
        let goes_on = || *self.order.borrow() == Order::GoOn;
        let found = checksum::of(partial, known, goes_on).map_err(|error| disk(partial, error))?;
        found.ok_or(Stopped::Ordered)
    }

    fn url(&self, RequestedFile { repository, revision, path }: RequestedFile<'_>) -> Result<Url> {
        let endpoint = || Error::Endpoint(self.hub.endpoint());
        let mut url = Url::parse(&self.hub.endpoint()).map_err(|_| endpoint())?;
        url.path_segments_mut()
            .map_err(|()| endpoint())?
            .pop_if_empty()
            .extend(repository.split('/'))
            .extend(["resolve", revision])
            .extend(path.split('/'));
        Ok(url)
    }

    fn permission(&self) -> HeaderMap {
        // A compressed response would have another size than the file.
        let mut headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]);
        headers.extend(self.hub.permission().map(|token| (AUTHORIZATION, token)));
        headers
    }

    /// Returns the meaning of a response other than the file.
    fn refusal(&self, wanted: RequestedFile<'_>, answer: &Response) -> Stopped {
        let status = answer.status();
        let code = text(answer.headers(), "x-error-code").unwrap_or_default();
        match status.as_u16() {
            _ if code == "GatedRepo" => self.hub.gated(wanted.repository).into(),
            404 if code != "RepoNotFound" => Stopped::Outdated,
            status @ (401 | 403 | 404) => self.hub.refused(status, wanted.repository).into(),
            429 | 500..600 => {
                let reason = format!("it responded with {status}");
                Error::Unreachable { endpoint: self.hub.endpoint(), reason }.into()
            }
            _ => hub_error(&format!("status {status}")).into(),
        }
    }

    fn unwritten(&self, error: io::Error) -> Error {
        let place = self.hub.cache().to_owned();
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Error::DiskFull { place },
            _ => Error::Disk { path: place, source: error },
        }
    }

    /// Waits before the next attempt; returns `error` after too many.
    async fn rest(&mut self, failures: &mut Failures, error: Error) -> Outcome<()> {
        failures.0 += 1;
        if failures.0 >= MAX_ATTEMPTS {
            return Err(error.into());
        }
        tracing::info!("attempt {} failed: {error}", failures.0);
        self.sleep(FIRST_PAUSE * 2u32.pow(failures.0 - 1)).await
    }

    async fn sleep(&mut self, time: Duration) -> Outcome<()> {
        or_stop(&mut self.order, tokio::time::sleep(time)).await
    }
}

/// Removes a file whose checksum differs from the hub's.
fn verify(wanted: RequestedFile<'_>, known: &FileMetadata, partial: &Path, found: String) -> Outcome<()> {
    if found == known.etag.to_ascii_lowercase() {
        return Ok(());
    }
    fs::remove_file(partial).map_err(|error| disk(partial, error))?;
    let expected = format!("{} {}", checksum::name(&known.etag), known.etag);
    Err(Stopped::Failed(Error::Damaged { file: wanted.path.into(), expected, found }))
}

/// Consecutive attempts without new bytes.
#[derive(Default)]
struct Failures(u32);

/// Returns the result of `future`, unless an order to stop comes first.
async fn or_stop<T>(order: &mut watch::Receiver<Order>, future: impl Future<Output = T>) -> Outcome<T> {
    tokio::select! {
        // A dropped sender counts as an order to stop.
        _ = order.wait_for(|order| *order != Order::GoOn) => Err(Stopped::Ordered),
        value = future => Ok(value),
    }
}

fn open(partial: &Path) -> Result<File> {
    let opened = partial.parent().map_or(Ok(()), fs::create_dir_all);
    let opened = opened.and_then(|()| OpenOptions::new().create(true).append(true).open(partial));
    opened.map_err(|error| disk(partial, error))
}

/// Appends bytes to a file of `here` bytes and calls `sync` after each complete piece; returns the
/// new length.
fn append<F: Write>(
    file: &mut F,
    here: u64,
    bytes: &[u8],
    sync: impl FnOnce(&F) -> io::Result<()>,
) -> io::Result<u64> {
    file.write_all(bytes)?;
    let now = here + bytes.len() as u64;
    if now / SYNC_BYTES > here / SYNC_BYTES {
        sync(file)?;
    }
    Ok(now)
}

/// Range of the first `length` bytes that may not have been synced: all after the last complete
/// piece.
fn unsafe_piece(length: u64) -> Range<u64> {
    (length - 1) / SYNC_BYTES * SYNC_BYTES..length
}

/// Windows does not truncate a file through an appending handle.
fn empty(partial: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(partial)?.set_len(0)
}

fn disk(path: &Path, source: io::Error) -> Error {
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
    fn a_power_cut_costs_at_most_one_piece() {
        assert_eq!(unsafe_piece(1), 0..1);
        assert_eq!(unsafe_piece(SYNC_BYTES), 0..SYNC_BYTES);
        assert_eq!(unsafe_piece(SYNC_BYTES + 1), SYNC_BYTES..SYNC_BYTES + 1);
        assert_eq!(unsafe_piece(10 * SYNC_BYTES + 7), 10 * SYNC_BYTES..10 * SYNC_BYTES + 7);
    }

    #[test]
    fn a_complete_piece_is_synced_immediately() {
        let mut file = Vec::new();
        let mut synced = Vec::new();
        let mut here = SYNC_BYTES - 3;
        for bytes in [2, 1, 5, 3] {
            let sync = |file: &Vec<u8>| {
                synced.push(file.len());
                Ok(())
            };
            here = append(&mut file, here, &vec![1; bytes], sync).unwrap();
        }
        assert_eq!((here, file.len(), synced), (SYNC_BYTES + 8, 11, vec![3]));
        let full = |_: &Vec<u8>| Err(ErrorKind::StorageFull.into());
        assert_eq!(append(&mut file, SYNC_BYTES - 1, &[0], full).unwrap_err().kind(), ErrorKind::StorageFull);
    }
}
