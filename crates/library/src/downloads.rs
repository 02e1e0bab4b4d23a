//! All downloads of one person: begun, paused, resumed, and remembered from one start of the program to the
//! next. How a file gets here is for `transfer.rs` to know.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::download::{self, Stage};
use crate::records::{End, Record, Records};
use crate::speed::Speed;
use crate::transfer::{Order, Step, Stopped};
use crate::{Error, Folders, Hub, Result};

/// More at once would share one connection's speed and finish later.
const AT_ONCE: usize = 2;
/// Between two words about bytes that came.
const PROGRESS: Duration = Duration::from_millis(100);

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
    /// Nothing is left of the file that failed; starting it again fetches that one afresh.
    Failed {
        reason: String,
    },
}

impl DownloadState {
    /// Whether it goes on without anybody's doing.
    pub fn is_active(&self) -> bool {
        matches!(self, Self::Queued | Self::Running | Self::Waiting | Self::Verifying)
    }
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

/// The downloads. Dropping it pauses those that run, and waits until they have.
pub struct Downloads {
    shared: Arc<Shared>,
}

struct Shared {
    hub: Hub,
    records: Records,
    jobs: Mutex<Jobs>,
    changes: Sender<Vec<Download>>,
}

struct Jobs {
    /// The oldest first.
    list: Vec<Job>,
    /// Numbers the runs, so that one that was ordered to stop has no more say.
    runs: u64,
    workers: Vec<JoinHandle<()>>,
    said: Instant,
}

struct Job {
    record: Record,
    download: Download,
    speed: Speed,
    run: Option<Run>,
}

/// A thread that works for a job, until it has let go of its files.
struct Run {
    number: u64,
    order: watch::Sender<Order>,
}

impl Run {
    fn goes_on(&self) -> bool {
        *self.order.borrow() == Order::GoOn
    }
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
        let jobs = Jobs { list, runs: 0, workers: Vec::new(), said: Instant::now() };
        Ok(Self { shared: Arc::new(Shared { hub, records, jobs: Mutex::new(jobs), changes }) })
    }

    /// All of them, the oldest first.
    pub fn list(&self) -> Vec<Download> {
        self.shared.jobs().downloads()
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
        let record = download::plan(&self.shared.hub, repository, file)?;
        // A person may have said less than the whole name.
        if let Some(download) = self.take_up(&record.id())? {
            return Ok(download);
        }
        download::check_space(&self.shared.hub, &record)?;
        self.shared.records.put(&record)?;
        let id = record.id();
        let mut jobs = self.shared.jobs();
        jobs.list.retain(|job| job.download.id != id);
        let job = Job::new(record, DownloadState::Queued, &self.shared.hub);
        jobs.list.push(job);
        Shared::advance(&self.shared, &mut jobs);
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
        let mut jobs = self.shared.jobs();
        let job = jobs.find(id)?;
        if job.download.state.is_active() {
            job.stop(Order::Pause);
            job.set(DownloadState::Paused { reason: None });
            Shared::advance(&self.shared, &mut jobs);
        }
        Ok(())
    }

    /// Goes on where it was; a failed one begins again. Does nothing with one that runs or is done.
    pub fn resume(&self, id: &str) -> Result<()> {
        let mut jobs = self.shared.jobs();
        let job = jobs.find(id)?;
        if matches!(job.download.state, DownloadState::Paused { .. } | DownloadState::Failed { .. }) {
            job.record.end = End::None;
            self.shared.records.put(&job.record)?;
            job.set(DownloadState::Queued);
            Shared::advance(&self.shared, &mut jobs);
        }
        Ok(())
    }

    /// Stops, removes what is here of unfinished files, and forgets the download.
    pub fn cancel(&self, id: &str) -> Result<()> {
        let mut jobs = self.shared.jobs();
        let job = jobs.find(id)?;
        if job.download.state != DownloadState::Done {
            match &job.run {
                // It removes the files itself when it has let go of them.
                Some(_) => job.stop(Order::Cancel),
                None => download::discard(&self.shared.hub, &job.record),
            }
        }
        self.forget(&mut jobs, id)
    }

    /// Forgets a finished or failed one; files stay.
    ///
    /// # Errors
    /// `Error::Unfinished` for any other.
    pub fn dismiss(&self, id: &str) -> Result<()> {
        let mut jobs = self.shared.jobs();
        match jobs.find(id)?.download.state {
            DownloadState::Done | DownloadState::Failed { .. } => self.forget(&mut jobs, id),
            _ => Err(Error::Unfinished(id.to_owned())),
        }
    }

    fn forget(&self, jobs: &mut Jobs, id: &str) -> Result<()> {
        jobs.list.retain(|job| job.download.id != id);
        self.shared.records.remove(id)?;
        Shared::advance(&self.shared, jobs);
        Ok(())
    }
}

impl Drop for Downloads {
    fn drop(&mut self) {
        let workers = {
            let mut jobs = self.shared.jobs();
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

impl Shared {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins what is queued as far as there is room for it, and says how all stand.
    fn advance(shared: &Arc<Self>, jobs: &mut Jobs) {
        let busy = |job: &&Job| {
            job.run.as_ref().is_some_and(Run::goes_on) && job.download.state != DownloadState::Waiting
        };
        while jobs.list.iter().filter(busy).count() < AT_ONCE {
            jobs.runs += 1;
            let number = jobs.runs;
            let queued = |job: &&mut Job| job.download.state == DownloadState::Queued;
            let Some(job) = jobs.list.iter_mut().find(queued) else {
                break;
            };
            let (order, orders) = watch::channel(Order::GoOn);
            job.run = Some(Run { number, order });
            job.set(DownloadState::Running);
            let (own, record) = (Arc::clone(shared), job.record.clone());
            jobs.workers.retain(|worker| !worker.is_finished());
            jobs.workers.push(thread::spawn(move || own.work(number, record, orders)));
        }
        shared.say(jobs);
    }

    fn say(&self, jobs: &mut Jobs) {
        jobs.said = Instant::now();
        // Nobody listens any more when the program ends.
        let _ = self.changes.send(jobs.downloads());
    }

    /// The whole life of a run, on a thread of its own.
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
            // Its turn is free for another.
            Self::advance(self, jobs);
        } else if job.download.state != before || jobs.said.elapsed() >= PROGRESS {
            self.say(jobs);
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
        job.download.done_bytes = download::here(&self.hub, &job.record);
        job.set(state);
        if let Err(error) = self.records.put(&job.record) {
            tracing::warn!("{error}");
        }
        Self::advance(self, jobs);
    }
}

impl Jobs {
    fn downloads(&self) -> Vec<Download> {
        self.list.iter().map(|job| job.download.clone()).collect()
    }

    fn find(&mut self, id: &str) -> Result<&mut Job> {
        let found = self.list.iter_mut().find(|job| job.download.id == id);
        found.ok_or_else(|| Error::NoDownload(id.to_owned()))
    }
}

impl Job {
    fn new(record: Record, state: DownloadState, hub: &Hub) -> Self {
        let download = Download {
            id: record.id(),
            repository: record.repository.clone(),
            file: record.file.clone(),
            done_bytes: download::here(hub, &record),
            total_bytes: record.bytes(),
            bytes_per_second: 0.0,
            state,
        };
        Self { record, download, speed: Speed::default(), run: None }
    }

    /// What was left of a download when the program ended; `None` of one whose files were removed since.
    fn remembered(record: Record, hub: &Hub) -> Option<Self> {
        let state = match &record.end {
            End::None => DownloadState::Paused { reason: None },
            End::Failed(reason) => DownloadState::Failed { reason: reason.clone() },
            End::Done if download::here(hub, &record) < record.bytes() => return None,
            End::Done => DownloadState::Done,
        };
        Some(Self::new(record, state, hub))
    }

    /// Whether the run of that number has a say: none that was told to stop has.
    fn is_run(&self, number: u64) -> bool {
        self.run.as_ref().is_some_and(|run| run.number == number && run.goes_on())
    }

    fn stop(&self, order: Order) {
        if let Some(run) = &self.run {
            let _ = run.order.send(order);
        }
    }

    fn set(&mut self, state: DownloadState) {
        self.download.bytes_per_second = 0.0;
        self.speed = Speed::default();
        self.download.state = state;
    }

    /// `before` are the bytes of the files already here.
    fn step(&mut self, before: u64, step: Step) {
        let (state, bytes) = match step {
            Step::At(bytes) => (DownloadState::Running, Some(bytes)),
            Step::Waiting(bytes) => (DownloadState::Waiting, Some(bytes)),
            Step::Verifying => (DownloadState::Verifying, None),
        };
        if self.download.state != state {
            self.set(state);
        }
        if let Some(bytes) = bytes {
            let done = (before + bytes).min(self.download.total_bytes);
            self.download.done_bytes = done;
            self.download.bytes_per_second = self.speed.at(Instant::now(), done);
        }
    }
}
