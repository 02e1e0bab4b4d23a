//! All downloads of one person: what may be done with them, from one start of the program to the next. When
//! each is carried out is for `scheduler.rs` to say, how a file gets here for `transfer.rs`.

use std::sync::{Arc, mpsc};
use std::thread;

use crate::job::{Download, DownloadState, Job};
use crate::records::{End, Records};
use crate::scheduler::{Jobs, Scheduler};
use crate::transfer::Order;
use crate::{Error, Folders, Hub, Result, download};

/// The downloads. Dropping it pauses those that run, and waits until they have.
pub struct Downloads {
    scheduler: Arc<Scheduler>,
}

impl Downloads {
    /// Those of the last time are there, unfinished ones paused. `on_change` is called with all of them at
    /// every change of a state and, while one runs, up to ten times a second; on a thread of its own.
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

    /// All of them, the oldest first.
    pub fn list(&self) -> Vec<Download> {
        self.scheduler.jobs().downloads()
    }

    /// Begins a download, after it is known that the file exists, that it may be downloaded and that the
    /// disk has room. `None` for the file asks for a folder model, or else for the only GGUF file. One that
    /// runs already is returned as it is, and a paused one is resumed.
    ///
    /// # Errors
    /// `Error::NoRepository`, `Error::NoModels`, `Error::NoFile`, `Error::Ambiguous` for what is not there;
    /// `Error::Gated`, `Error::TokenRefused`; `Error::NoSpace`; `Error::Unreachable`.
    pub fn start(&self, repository: &str, file: Option<&str>) -> Result<Download> {
        let id = file.map_or(repository.to_owned(), |file| format!("{repository}:{file}"));
        if let Some(download) = self.take_up(&id)? {
            return Ok(download);
        }
        let record = download::plan(&self.scheduler.hub, repository, file)?;
        // A person may have said less than the whole name.
        if let Some(download) = self.take_up(&record.id())? {
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

    /// An unfinished download of that name, made to go on if it was paused.
    fn take_up(&self, id: &str) -> Result<Option<Download>> {
        let known = self.list().into_iter().find(|download| download.id == id);
        match known.map(|download| download.state) {
            Some(DownloadState::Paused { .. }) => self.resume(id)?,
            Some(state) if state.is_active() => {}
            _ => return Ok(None),
        }
        Ok(self.list().into_iter().find(|download| download.id == id))
    }

    /// Stops and keeps what is here. Does not wait for it to have stopped.
    ///
    /// # Errors
    /// `Error::NoDownload` for an id that is not known, as of all that follow.
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

    /// Goes on where it was; a failed one begins again. Does nothing with one that runs or is done.
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

    /// Stops, removes what is here of unfinished files, and forgets the download.
    pub fn cancel(&self, id: &str) -> Result<()> {
        let mut jobs = self.scheduler.jobs();
        let job = jobs.find(id)?;
        if job.download.state != DownloadState::Done {
            match &job.run {
                // It removes the files itself when it has let go of them.
                Some(_) => job.stop(Order::Cancel),
                None => download::discard(&self.scheduler.hub, &job.record),
            }
        }
        self.forget(&mut jobs, id)
    }

    /// Forgets a finished or failed one; files stay.
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
                // Nothing is begun any more in the place of those that stop.
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
