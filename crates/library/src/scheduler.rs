//! Scheduler of downloads: starts queued ones, a few at once, receives their progress and sends all
//! states to `changes`. User requests come from `downloads.rs`; a run is in `download.rs`.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::download::{self, Stage};
use crate::job::{Download, DownloadState, Job, Run};
use crate::records::{End, Record, Records};
use crate::transfer::{Order, Stopped};
use crate::{Error, Hub, Result};

/// Most downloads at once: more would share one connection's speed and finish later.
const MAX_RUNNING: usize = 2;
/// Least time between two progress events.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// State shared by all download threads.
pub(crate) struct Scheduler {
    pub(crate) hub: Hub,
    pub(crate) records: Records,
    jobs: Mutex<Jobs>,
    changes: Sender<Vec<Download>>,
}

/// All downloads and the threads that work on them.
pub(crate) struct Jobs {
    /// Jobs, the oldest first.
    pub(crate) list: Vec<Job>,
    /// Number of the last run; events of older runs of a job are ignored.
    runs: u64,
    pub(crate) workers: Vec<JoinHandle<()>>,
    published_at: Instant,
}

impl Scheduler {
    /// Creates a scheduler with the stored downloads; `changes` receives all downloads at each
    /// change.
    pub(crate) fn new(hub: Hub, records: Records, list: Vec<Job>, changes: Sender<Vec<Download>>) -> Self {
        let jobs = Jobs { list, runs: 0, workers: Vec::new(), published_at: Instant::now() };
        Self { hub, records, jobs: Mutex::new(jobs), changes }
    }

    pub(crate) fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts queued downloads while there are free slots, and sends the states of all.
    pub(crate) fn advance(self: &Arc<Self>, jobs: &mut Jobs) {
        let busy = |job: &&Job| {
            job.run.as_ref().is_some_and(Run::is_active) && job.download.state != DownloadState::Waiting
        };
        while jobs.list.iter().filter(busy).count() < MAX_RUNNING {
            jobs.runs += 1;
            let number = jobs.runs;
            let queued = |job: &&mut Job| job.download.state == DownloadState::Queued;
            let Some(job) = jobs.list.iter_mut().find(queued) else {
                break;
            };
            let (order, orders) = watch::channel(Order::GoOn);
            job.run = Some(Run { number, order });
            job.set(DownloadState::Running);
            let (own, record) = (Arc::clone(self), job.record.clone());
            jobs.workers.retain(|worker| !worker.is_finished());
            jobs.workers.push(thread::spawn(move || own.work(number, record, orders)));
        }
        self.publish(jobs);
    }

    fn publish(&self, jobs: &mut Jobs) {
        jobs.published_at = Instant::now();
        // The receiver is gone when the program ends.
        let _ = self.changes.send(jobs.downloads());
    }

    /// Body of a run's thread.
    fn work(self: Arc<Self>, number: u64, record: Record, orders: watch::Receiver<Order>) {
        let mut record = record;
        let ended = download::run(&self.hub, &mut record, orders.clone(), &mut |stage| {
            self.report(number, stage);
        });
        let state = match ended {
            Ok(()) => DownloadState::Done,
            Err(Stopped::Ordered) => DownloadState::Paused { reason: None },
            Err(Stopped::Interrupted(error)) => DownloadState::Paused { reason: Some(error.to_string()) },
            Err(Stopped::Failed(error)) => DownloadState::Failed { reason: error.to_string() },
            Err(Stopped::Outdated) => DownloadState::Paused { reason: Some(download::gone(&record)) },
        };
        let mut jobs = self.jobs();
        if *orders.borrow() == Order::Cancel {
            download::discard(&self.hub, &record);
        }
        self.end(&mut jobs, number, record, state);
    }

    fn report(self: &Arc<Self>, number: u64, stage: Stage<'_>) {
        let mut jobs = self.jobs();
        let jobs = &mut *jobs;
        let Some(job) = jobs.list.iter_mut().find(|job| job.is_run(number)) else {
            return;
        };
        let before = job.download.state.clone();
        match stage {
            Stage::Replanned(record) => {
                job.record = record.clone();
                job.download.total_bytes = record.bytes();
                if let Err(error) = self.records.put(record) {
                    tracing::warn!("{error}");
                }
            }
            Stage::File { before, step } => job.step(before, step),
        }
        if job.download.state == DownloadState::Waiting && before != DownloadState::Waiting {
            // The slot is free for another download.
            self.advance(jobs);
        } else if job.download.state != before || jobs.published_at.elapsed() >= PROGRESS_INTERVAL {
            self.publish(jobs);
        }
    }

    fn end(self: &Arc<Self>, jobs: &mut Jobs, number: u64, record: Record, state: DownloadState) {
        let own = |job: &&mut Job| job.run.as_ref().is_some_and(|run| run.number == number);
        let Some(job) = jobs.list.iter_mut().find(own) else {
            return;
        };
        let heeded = job.is_run(number);
        job.run = None;
        if !heeded {
            return;
        }
        job.record = record;
        job.record.end = match &state {
            DownloadState::Done => End::Done,
            DownloadState::Failed { reason } => End::Failed(reason.clone()),
            _ => End::None,
        };
        job.download.done_bytes = download::bytes_on_disk(&self.hub, &job.record);
        job.set(state);
        if let Err(error) = self.records.put(&job.record) {
            tracing::warn!("{error}");
        }
        self.advance(jobs);
    }
}

impl Jobs {
    pub(crate) fn downloads(&self) -> Vec<Download> {
        self.list.iter().map(|job| job.download.clone()).collect()
    }

    pub(crate) fn find(&mut self, id: &str) -> Result<&mut Job> {
        let found = self.list.iter_mut().find(|job| job.download.id == id);
        found.ok_or_else(|| Error::NoDownload(id.to_owned()))
    }
}
