//! One download while the program runs: its state, and the thread that works on it. `scheduler.rs`
//! decides which one runs.

use std::time::Instant;

use tokio::sync::watch;

use crate::records::{End, Record};
use crate::speed::Speed;
use crate::transfer::{Order, Step};
use crate::{Hub, download};

/// State of a download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownloadState {
    /// Waits for a free slot.
    Queued,
    Running,
    /// Another program downloads the same file; this download continues when that one ends.
    Waiting,
    /// All bytes are downloaded and are compared with the hub's checksum.
    Verifying,
    /// Continues when it is resumed. The reason says why it paused by itself: a full disk, no
    /// network.
    Paused {
        reason: Option<String>,
    },
    Done,
    /// The failed file was removed; starting again downloads it from the beginning.
    Failed {
        reason: String,
    },
}

impl DownloadState {
    /// Returns whether the download continues without user action.
    pub fn is_active(&self) -> bool {
        matches!(self, Self::Queued | Self::Running | Self::Waiting | Self::Verifying)
    }
}

/// Download of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Download {
    /// `owner/name:file`, or `owner/name` for a folder model.
    pub id: String,
    /// `owner/name`
    pub repository: String,
    /// For a split model the first part; `None` for a folder model.
    pub file: Option<String>,
    pub done_bytes: u64,
    pub total_bytes: u64,
    /// Average over the last seconds; 0 unless the download is running.
    pub bytes_per_second: f64,
    pub state: DownloadState,
}

/// Stored record of a download, its public state, and its running thread.
pub(crate) struct Job {
    pub(crate) record: Record,
    pub(crate) download: Download,
    speed: Speed,
    pub(crate) run: Option<Run>,
}

/// A thread that works on a job, until it has closed its files.
pub(crate) struct Run {
    pub(crate) number: u64,
    pub(crate) order: watch::Sender<Order>,
}

impl Run {
    pub(crate) fn is_active(&self) -> bool {
        *self.order.borrow() == Order::GoOn
    }
}

impl Job {
    pub(crate) fn new(record: Record, state: DownloadState, hub: &Hub) -> Self {
        let download = Download {
            id: record.id(),
            repository: record.repository.clone(),
            file: record.file.clone(),
            done_bytes: download::bytes_on_disk(hub, &record),
            total_bytes: record.bytes(),
            bytes_per_second: 0.0,
            state,
        };
        Self { record, download, speed: Speed::default(), run: None }
    }

    /// Restores a download from the last exit; `None` if its files were removed since.
    pub(crate) fn remembered(record: Record, hub: &Hub) -> Option<Self> {
        let state = match &record.end {
            End::None => DownloadState::Paused { reason: None },
            End::Failed(reason) => DownloadState::Failed { reason: reason.clone() },
            End::Done if download::bytes_on_disk(hub, &record) < record.bytes() => return None,
            End::Done => DownloadState::Done,
        };
        Some(Self::new(record, state, hub))
    }

    /// Returns whether run `number` is current: a run that was ordered to stop is not.
    pub(crate) fn is_run(&self, number: u64) -> bool {
        self.run.as_ref().is_some_and(|run| run.number == number && run.is_active())
    }

    pub(crate) fn stop(&self, order: Order) {
        if let Some(run) = &self.run {
            let _ = run.order.send(order);
        }
    }

    pub(crate) fn set(&mut self, state: DownloadState) {
        self.download.bytes_per_second = 0.0;
        self.speed = Speed::default();
        self.download.state = state;
    }

    /// Applies a step of one file; `before` is the size of the files completed earlier.
    pub(crate) fn step(&mut self, before: u64, step: Step) {
        let (state, bytes) = match step {
            Step::At(bytes) => (DownloadState::Running, Some(bytes)),
            Step::Waiting(bytes) => (DownloadState::Waiting, Some(bytes)),
            Step::Verifying => (DownloadState::Verifying, None),
        };
        if self.download.state != state {
            self.set(state);
        }
        if let Some(bytes) = bytes {
            let done = before.saturating_add(bytes).min(self.download.total_bytes);
            self.download.done_bytes = done;
            self.download.bytes_per_second = self.speed.at(Instant::now(), done);
        }
    }
}
