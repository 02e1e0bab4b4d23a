//! One download from start to finish: its files, the free space, one file after another. Requests
//! and progress events are in `downloads.rs`.

use std::fs;
use std::future::Future;

use tokio::runtime::Builder;
use tokio::sync::watch;

use crate::cache::{CachedRepository, FileMetadata, has, length};
use crate::disk::free_at;
use crate::hub::{Hub, hub_error, total};
use crate::records::{End, Record, RecordFile};
use crate::transfer::{Order, RequestedFile, Step, Stopped, Transfer};
use crate::{Error, Result};

/// Progress of a run.
pub(crate) enum Stage<'a> {
    /// The hub's files changed, so the plan did.
    Replanned(&'a Record),
    /// A step of one file; `before` is the size of the files completed earlier.
    File { before: u64, step: Step },
}

/// Lists the files to download for `file`, after checking the permission.
pub(crate) fn plan(hub: &Hub, repository: &str, file: Option<&str>) -> Result<Record> {
    let (_order, orders) = watch::channel(Order::GoOn);
    let planned = on_a_thread(async { plan_with(&mut Transfer::new(hub, orders)?, repository, file).await });
    planned.map_err(|stopped| match stopped {
        Stopped::Interrupted(error) | Stopped::Failed(error) => error,
        Stopped::Ordered | Stopped::Outdated => hub_error("its files changed while they were being listed"),
    })
}

async fn plan_with(
    transfer: &mut Transfer<'_>,
    repository: &str,
    file: Option<&str>,
) -> std::result::Result<Record, Stopped> {
    let contents = transfer.contents(repository).await?;
    let (file, entries) = contents.wanted(file)?;
    let listed = contents.repository;
    let mut record =
        Record { repository: listed.id, file, revision: listed.revision, files: Vec::new(), end: End::None };
    for entry in entries {
        let wanted =
            RequestedFile { repository: &record.repository, revision: &record.revision, path: &entry.path };
        let FileMetadata { etag, bytes } = transfer.fetch_metadata(wanted).await?;
        if bytes != entry.bytes {
            return Err(hub_error("two different sizes for one file").into());
        }
        record.files.push(RecordFile { path: entry.path, bytes, etag });
    }
    if total(record.files.iter().map(|file| file.bytes)).is_none() {
        return Err(hub_error("files larger than any disk").into());
    }
    Ok(record)
}

/// # Errors
/// Returns `Error::NoSpace` if the cache's disk has too little space for the missing files.
pub(crate) fn check_space(hub: &Hub, record: &Record) -> Result<()> {
    let missing = record.bytes().saturating_sub(bytes_on_disk(hub, record));
    let place = hub.cache().to_owned();
    // A disk that reports no free space is tried.
    match free_at(&place) {
        Some(free) if free < missing => {
            Err(Error::NoSpace { what: record.id(), needed: missing, free, place })
        }
        _ => Ok(()),
    }
}

/// Returns the bytes already on disk, complete or partial.
pub(crate) fn bytes_on_disk(hub: &Hub, record: &Record) -> u64 {
    let cached = CachedRepository::new(hub.cache(), &record.repository);
    let bytes_on_disk = |file: &RecordFile| {
        let whole = [cached.link(&record.revision, &file.path), cached.blob(&file.etag)];
        if whole.iter().any(|path| has(path, file.bytes)) {
            file.bytes
        } else {
            length(&cached.partial(&file.etag)).min(file.bytes)
        }
    };
    record.files.iter().map(bytes_on_disk).fold(0, u64::saturating_add)
}

/// Removes the partial files, unless another program works on them.
pub(crate) fn discard(hub: &Hub, record: &Record) {
    let cached = CachedRepository::new(hub.cache(), &record.repository);
    for file in &record.files {
        let partial = cached.partial(&file.etag);
        if partial.exists() && matches!(cached.lock(&file.etag), Ok(Some(_))) {
            let _ = fs::remove_file(partial);
        }
    }
    // Removes only folders that are empty now.
    let _ = fs::remove_dir(cached.path().join("blobs"));
    let _ = fs::remove_dir(cached.path());
}

/// Returns the message for files that the hub no longer has.
pub(crate) fn gone(record: &Record) -> String {
    let hint = "Check what the repository contains now.".to_owned();
    let file = record.file.clone().unwrap_or_default();
    Error::NoFile { repository: record.repository.clone(), file, hint }.to_string()
}

/// Downloads all files of a record and updates it when the hub's files change. Blocks.
pub(crate) fn run(
    hub: &Hub,
    record: &mut Record,
    orders: watch::Receiver<Order>,
    on_stage: &mut (dyn FnMut(Stage<'_>) + Send),
) -> std::result::Result<(), Stopped> {
    on_a_thread(async {
        let mut transfer = Transfer::new(hub, orders)?;
        check_space(hub, record)?;
        match fetch_all(&mut transfer, hub, record, on_stage).await {
            Err(Stopped::Outdated) => {
                // This revision is gone; the file is in a newer one.
                let newer = plan_with(&mut transfer, &record.repository, record.file.as_deref()).await?;
                replan(hub, record, newer);
                on_stage(Stage::Replanned(record));
                fetch_all(&mut transfer, hub, record, on_stage).await
            }
            other => other,
        }
    })
}

async fn fetch_all(
    transfer: &mut Transfer<'_>,
    hub: &Hub,
    record: &mut Record,
    on_stage: &mut (dyn FnMut(Stage<'_>) + Send),
) -> std::result::Result<(), Stopped> {
    let cached = CachedRepository::new(hub.cache(), &record.repository);
    let mut before = 0;
    for at in 0..record.files.len() {
        let file = record.files[at].clone();
        if !has(&cached.link(&record.revision, &file.path), file.bytes) {
            let (repository, revision) = (record.repository.clone(), record.revision.clone());
            let wanted = RequestedFile { repository: &repository, revision: &revision, path: &file.path };
            let known = transfer.fetch_metadata(wanted).await?;
            if (&known.etag, known.bytes) != (&file.etag, file.bytes) {
                let mut newer = record.clone();
                newer.files[at] =
                    RecordFile { path: file.path.clone(), bytes: known.bytes, etag: known.etag.clone() };
                replan(hub, record, newer);
                on_stage(Stage::Replanned(record));
            }
            transfer.fetch(wanted, &known, &mut |step| on_stage(Stage::File { before, step })).await?;
        }
        before = record.files[at].bytes.saturating_add(before);
    }
    Ok(cached.set_main(&record.revision)?)
}

/// Adopts a newer plan and removes partial files that it no longer contains.
fn replan(hub: &Hub, record: &mut Record, newer: Record) {
    let stays = |file: &RecordFile| newer.files.iter().any(|other| other.etag == file.etag);
    let stale = record.files.iter().filter(|file| !stays(file)).cloned().collect();
    discard(hub, &Record { files: stale, ..record.clone() });
    *record = newer;
}

/// Runs a future on a thread of its own: a thread that runs futures must not block on another.
fn on_a_thread<T: Send>(
    future: impl Future<Output = std::result::Result<T, Stopped>> + Send,
) -> std::result::Result<T, Stopped> {
    let work = || {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Stopped::from(hub_error(&error.to_string())))?;
        let ended = runtime.block_on(future);
        // Dropping it would wait for requests to a silent network.
        runtime.shutdown_background();
        ended
    };
    let ended = std::thread::scope(|scope| scope.spawn(work).join());
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
