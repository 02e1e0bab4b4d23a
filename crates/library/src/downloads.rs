//! All downloads of one person: begun, paused, resumed, and remembered from one start of the program to the
//! next.

use crate::{Folders, Hub, Result};

/// How a download stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownloadState {
    /// Its turn has not come.
    Queued,
    Running,
    /// Another program downloads the same file; this one goes on when that one ends.
    Waiting,
    /// The bytes are here and are compared with the hub's checksum.
    Verifying,
    /// Goes on when it is resumed. The reason says why it paused by itself: a full disk, no network.
    Paused {
        reason: Option<String>,
    },
    Done,
    /// Nothing is left of it; starting it again begins afresh.
    Failed {
        reason: String,
    },
}

/// One model on its way here.
#[derive(Debug, Clone, PartialEq)]
pub struct Download {
    /// `owner/name:file`, or `owner/name` for a folder model.
    pub id: String,
    /// `owner/name`
    pub repository: String,
    /// Of a split file the first part; `None` for a folder model.
    pub file: Option<String>,
    pub done_bytes: u64,
    pub total_bytes: u64,
    /// Over the last seconds; 0 unless it is running.
    pub bytes_per_second: f64,
    pub state: DownloadState,
}

/// The downloads. Dropping it pauses those that run.
pub struct Downloads {}

impl Downloads {
    /// Those of the last time are there, unfinished ones paused. `on_change` is called with all of them at
    /// every change of a state and, while one runs, up to ten times a second; on a thread of its own.
    pub fn open(
        _folders: &Folders,
        _hub: Hub,
        _on_change: impl Fn(&[Download]) + Send + Sync + 'static,
    ) -> Result<Self> {
        Ok(Self {})
    }

    /// All of them, the oldest first.
    pub fn list(&self) -> Vec<Download> {
        Vec::new()
    }

    /// Begins a download, after it is known that the file exists, that it may be downloaded and that the
    /// disk has room. `None` for the file asks for a folder model. One that runs already is returned as it
    /// is, and a paused one is resumed.
    pub fn start(&self, _repository: &str, _file: Option<&str>) -> Result<Download> {
        unimplemented!()
    }

    /// Stops and keeps what is here. Does not wait for it to have stopped.
    pub fn pause(&self, _id: &str) -> Result<()> {
        unimplemented!()
    }

    /// Goes on where it was.
    pub fn resume(&self, _id: &str) -> Result<()> {
        unimplemented!()
    }

    /// Stops, removes what is here of unfinished files, and forgets the download.
    pub fn cancel(&self, _id: &str) -> Result<()> {
        unimplemented!()
    }

    /// Forgets a finished or failed one; files stay.
    pub fn dismiss(&self, _id: &str) -> Result<()> {
        unimplemented!()
    }
}
