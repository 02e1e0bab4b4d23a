//! All downloads of one person and the operations on them, across restarts. `scheduler.rs` decides
//! when each one runs, `transfer.rs` downloads a file.

use std::sync::{Arc, mpsc};
use std::thread;

use crate::job::{Download, DownloadState, Job};
use crate::records::{End, Records};
use crate::scheduler::{Jobs, Scheduler};
use crate::transfer::Order;
use crate::{Error, Folders, Hub, Result, download};

/// The downloads. Dropping this pauses the running ones and waits until they have stopped.
pub struct Downloads {
    scheduler: Arc<Scheduler>,
}

impl Downloads {
    /// Opens the downloads; those unfinished at the last exit are paused. `on_change` is called on
    /// a thread of its own with all downloads, at every change of a state and up to ten times a
    /// second while one runs.
    ///
    /// # Errors
    /// None today; opening reads one file and makes no connection.
    pub fn open(
        folders: &Folders,
        hub: Hub,
        on_change: impl Fn(&[Download]) + Send + Sync + 'static,
    ) -> Result<Self> {
        let records = Records::new(folders);
        let known = records.read().into_iter();
        let list = known.filter_map(|record| Job::remembered(record, &hub)).collect();
        let (changes, changed) = mpsc::channel::<Vec<Download>>();
        thread::spawn(move || changed.iter().for_each(|downloads| on_change(&downloads)));
        Ok(Self { scheduler: Arc::new(Scheduler::new(hub, records, list, changes)) })
    }

    /// Returns all downloads, the oldest first.
    pub fn list(&self) -> Vec<Download> {
        self.scheduler.jobs().downloads()
    }

    /// Starts a download after checking that the file exists, that it may be downloaded and that
    /// the disk has space. `None` for `file` means a folder model, or else the only GGUF file. A
    /// running download is returned unchanged, and a paused one is resumed.
    ///
    /// # Errors
    /// `Error::NoRepository`, `Error::NoModels`, `Error::NoFile`, `Error::Ambiguous` if there is no
    /// such file; `Error::Gated`, `Error::TokenRefused`; `Error::NoSpace`; `Error::Unreachable`.
    pub fn start(&self, repository: &str, file: Option<&str>) -> Result<Download> {
        let id = file.map_or(repository.to_owned(), |file| format!("{repository}:{file}"));
        if let Some(download) = self.resume_existing(&id)? {
            return Ok(download);
        }
        let record = download::plan(&self.scheduler.hub, repository, file)?;
        // The name may have been shortened.
        if let Some(download) = self.resume_existing(&record.id())? {
            return Ok(download);
        }
        download::check_space(&self.scheduler.hub, &record)?;
        self.scheduler.records.put(&record)?;
        let id = record.id();
        let mut jobs = self.scheduler.jobs();
        jobs.list.retain(|job| job.download.id != id);
        let job = Job::new(record, DownloadState::Queued, &self.scheduler.hub);
        jobs.list.push(job);
        self.scheduler.advance(&mut jobs);
        jobs.find(&id).map(|job| job.download.clone())
    }

    /// Returns the unfinished download of this name, resumed if it was paused.
    fn resume_existing(&self, id: &str) -> Result<Option<Download>> {
        let known = self.list().into_iter().find(|download| download.id == id);
        match known.map(|download| download.state) {
            Some(DownloadState::Paused { .. }) => self.resume(id)?,
            Some(state) if state.is_active() => {}
            _ => return Ok(None),
        }
        Ok(self.list().into_iter().find(|download| download.id == id))
    }

    /// Pauses a download and keeps its partial files. Does not wait until it has stopped.
    ///
    /// # Errors
    /// `Error::NoDownload` for an unknown id, here and in the methods below.
    pub fn pause(&self, id: &str) -> Result<()> {
        let mut jobs = self.scheduler.jobs();
        let job = jobs.find(id)?;
        if job.download.state.is_active() {
            job.stop(Order::Pause);
            job.set(DownloadState::Paused { reason: None });
            self.scheduler.advance(&mut jobs);
        }
        Ok(())
    }

    /// Resumes a paused download; a failed one starts again. Does nothing with a running or
    /// finished one.
    pub fn resume(&self, id: &str) -> Result<()> {
        let mut jobs = self.scheduler.jobs();
        let job = jobs.find(id)?;
        if matches!(job.download.state, DownloadState::Paused { .. } | DownloadState::Failed { .. }) {
            job.record.end = End::None;
            self.scheduler.records.put(&job.record)?;
            job.set(DownloadState::Queued);
            self.scheduler.advance(&mut jobs);
        }
        Ok(())
    }

    /// Stops a download, removes its partial files and forgets it.
    pub fn cancel(&self, id: &str) -> Result<()> {
        let mut jobs = self.scheduler.jobs();
        let job = jobs.find(id)?;
        if job.download.state != DownloadState::Done {
            match &job.run {
                // The run removes the files itself once it has closed them.
                Some(_) => job.stop(Order::Cancel),
                None => download::discard(&self.scheduler.hub, &job.record),
            }
        }
        self.forget(&mut jobs, id)
    }

    /// Forgets a finished or failed download; files stay.
    ///
    /// # Errors
    /// `Error::Unfinished` for any other.
    pub fn dismiss(&self, id: &str) -> Result<()> {
        let mut jobs = self.scheduler.jobs();
        match jobs.find(id)?.download.state {
            DownloadState::Done | DownloadState::Failed { .. } => self.forget(&mut jobs, id),
            _ => Err(Error::Unfinished(id.to_owned())),
        }
    }

    fn forget(&self, jobs: &mut Jobs, id: &str) -> Result<()> {
        jobs.list.retain(|job| job.download.id != id);
        self.scheduler.records.remove(id)?;
        self.scheduler.advance(jobs);
        Ok(())
    }
}

impl Drop for Downloads {
    fn drop(&mut self) {
        let workers = {
            let mut jobs = self.scheduler.jobs();
            jobs.list.iter_mut().for_each(|job| {
                job.stop(Order::Pause);
                // No queued download starts in place of the stopped ones.
                if job.download.state == DownloadState::Queued {
                    job.set(DownloadState::Paused { reason: None });
                }
            });
            std::mem::take(&mut jobs.workers)
        };
        for worker in workers {
            let _ = worker.join();
        }
    }
}
