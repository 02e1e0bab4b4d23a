//! Handle of the engine thread, which owns the loaded models and runs one job after another. It
//! depends on neither the store nor the window.
//!
//! - `job`: jobs of the thread; `worker`: runs them in order
//! - `local`: models on this computer; `loading`: loads them and recovers from failed devices
//! - `contexts`, `saved_contexts`: contexts of conversations on disk
//! - `choosing`: choice of the draft; `advise`: trials of every draft
//! - `prefill_rate`: speed of reading prompts
//! - `remote`: replies by models on remote servers
//! - `replying`, `serving`, `check`, `arena`: kinds of jobs with the models; `why`: state of
//!   drafting
//! - [`replier`]: interface of reply writers
//! - `devices`: devices in the settings; `page_status`: the engine's status for the page

mod advise;
mod arena;
mod check;
mod choosing;
mod contexts;
mod devices;
mod job;
mod loading;
mod local;
pub(crate) mod page_status;
mod prefill_rate;
mod remote;
pub mod replier;
mod replying;
mod saved_contexts;
mod serving;
mod why;
mod worker;

use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use foretoken_engine::session::{Hardware, Host, PromptEncoder};
use foretoken_library::{Folders, Secrets};
use foretoken_model::{ChatMessage, Tokenizer};
use foretoken_senses::picture::PictureReader;
use foretoken_server::{PromptReader, Writer};

use self::job::Job;
pub use self::job::{OnAdvice, OnArena, OnCheck, OnReply, Stored};
use self::local::{Chosen, Local};
use self::page_status::PendingChoice;
use self::remote::Remote;
use self::replier::{Chat, Ending, Replier};
pub(crate) use self::replying::word_tokens;
use self::saved_contexts::SavedContexts;
use self::serving::ServerWriter;
use self::worker::Worker;
use crate::cancel::{BackgroundJobs, Cancel, Latest};
use crate::embedding::Embedder;
use crate::error::Result;
use crate::ipc::{Arena, ArenaRequest, EngineStatus, PresetValues, PromptSize, ReplyCheck, Settings};
use crate::lock::lock;
use crate::models::Models;
use crate::observable::Observable;

/// Writers of replies other than the models on this computer.
pub struct Repliers {
    /// Keys of remote servers.
    pub remote: Secrets,
    /// Replaces all other writers, if set.
    pub instead: Option<Box<dyn Replier>>,
}

/// Handle of the engine thread. Dropping it ends the thread after the current job.
pub struct Engine {
    jobs: mpsc::Sender<Job>,
    /// Latest background jobs, which any other job cancels.
    background: Arc<BackgroundJobs>,
    /// Latest restored context, which the next one and a new conversation cancel.
    restoring: Latest,
    chosen: Arc<Mutex<Chosen>>,
    /// Status, written by the thread except for the list of devices.
    status: Arc<Observable>,
    hardware: Arc<dyn Hardware>,
    /// Held while devices are looked for.
    looking: Mutex<()>,
    prompts: Arc<Mutex<Option<PromptReader>>>,
    /// Choice in the newest settings.
    pending: Observable<PendingChoice>,
}

impl Engine {
    /// Starts the thread, which loads the models that `settings` name.
    pub fn start(
        host: Host,
        folders: &Folders,
        models: Models,
        repliers: Repliers,
        settings: Settings,
        earlier: Vec<String>,
    ) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let chosen = Arc::new(Mutex::new(Chosen::default()));
        let status = Arc::new(Observable::starting());
        status.update(|status| status.devices = devices::unlooked(&settings));
        let hardware = Arc::clone(&host.hardware);
        let contexts = SavedContexts::new(folders);
        let local = Local::new(host, models, contexts, Arc::clone(&chosen), Arc::clone(&status));
        // A replacement has a tokenizer that is unknown here.
        let prompts = if repliers.instead.is_none() { Arc::clone(&local.prompts) } else { Arc::default() };
        let remote = Remote::new(repliers.remote);
        let worker = Worker { local, remote, instead: repliers.instead, when_idle: None };
        thread::Builder::new().name("engine".to_owned()).spawn(move || worker.work(queue))?;
        let engine = Self {
            jobs,
            background: Arc::default(),
            restoring: Latest::default(),
            chosen,
            status,
            hardware,
            looking: Mutex::default(),
            prompts,
            pending: Observable::new(PendingChoice::default()),
        };
        let values = settings.values();
        engine.apply_settings(settings, values, earlier);
        Ok(engine)
    }

    /// Returns the latest status of the thread.
    pub fn status(&self) -> EngineStatus {
        self.status.get()
    }

    /// Returns the encoder of the local target's prompts; `None` without a target.
    pub fn encoder(&self) -> Option<PromptEncoder> {
        lock(&self.prompts).as_ref().map(|prompts| prompts.encoder().clone())
    }

    /// Returns the tokenizer of the local target; `None` without one.
    pub fn tokenizer(&self) -> Option<Arc<Tokenizer>> {
        lock(&self.prompts).as_ref().map(|prompts| Arc::clone(prompts.tokenizer()))
    }

    /// Watches the status, see [`page_status::watch`].
    pub fn watch(&self, watcher: impl Fn(&EngineStatus) -> bool + Send + Sync + 'static) {
        page_status::watch(&self.status, &self.pending, watcher);
    }

    /// Watches the status for the page, see [`page_status::watch_from_page`].
    pub fn watch_from_page(&self, watcher: impl Fn(&EngineStatus) -> bool + Send + Sync + 'static) {
        page_status::watch_from_page(&self.status, &self.pending, watcher);
    }

    /// Applies `settings` to all later replies, with `values` for conversations and the settings'
    /// own for the local server. Loads the models they name and unloads others. `earlier` are texts
    /// that drafts may repeat.
    pub fn apply_settings(&self, settings: Settings, values: PresetValues, earlier: Vec<String>) {
        self.background.all();
        *lock(&self.chosen) = Chosen::by(&settings);
        let revision = self.pending.get().revision + 1;
        self.pending.update(|wish| *wish = PendingChoice::of(&settings, revision));
        // The thread lives as long as this handle, so the receiver exists.
        let defaults = Box::new(settings.values());
        let settings = Box::new(settings.with(values));
        let _ = self.jobs.send(Job::Settings { settings, defaults, earlier, revision });
    }

    /// Looks for devices on the calling thread and lists them with those that `settings` name.
    /// Calls wait for each other.
    pub fn look_for_devices(&self, settings: &Settings) {
        let _looking = lock(&self.looking);
        devices::look(self.hardware.as_ref(), settings, &self.status);
    }

    /// Returns a function that lists the models again; call it after a model was added or removed.
    pub fn lister(&self) -> impl Fn() + Send + Sync + 'static {
        let jobs = self.jobs.clone();
        move || {
            let _ = jobs.send(Job::List);
        }
    }

    /// Calls `work` again and again while no job waits, until it returns `false`. It replaces the
    /// work before.
    pub fn run_when_idle(&self, work: impl FnMut() -> bool + Send + 'static) {
        let _ = self.jobs.send(Job::WhenIdle(Box::new(work)));
    }

    /// Returns the writer of replies for the local server, with the model for embeddings and the
    /// reader of pictures.
    pub(crate) fn writer(&self, embedder: Arc<Embedder>, pictures: Arc<PictureReader>) -> Arc<dyn Writer> {
        let (jobs, background) = (self.jobs.clone(), Arc::clone(&self.background));
        let (status, prompts) = (Arc::clone(&self.status), Arc::clone(&self.prompts));
        Arc::new(ServerWriter { jobs, background, status, prompts, embedder, pictures })
    }

    /// Queues a reply to `chat`, written with `values`, and returns the receiver of its
    /// outcome.
    pub fn reply(
        &self,
        chat: Chat,
        values: PresetValues,
        on: OnReply,
        cancel: Cancel,
    ) -> mpsc::Receiver<Result<Ending>> {
        self.begin(|done| Job::Reply { chat, values: Box::new(values), on, cancel, done })
    }

    /// Names the conversation of the reply that ended last, under which its context is saved.
    pub fn name_context(&self, conversation: i64) {
        let _ = self.jobs.send(Job::Stored { conversation });
    }

    /// Queues reading the saved context of a conversation, in place of the one queued before.
    pub fn restore(&self, conversation: i64, messages: Vec<ChatMessage>, values: PresetValues) {
        let cancel = self.restoring.begin();
        let _ = self.jobs.send(Job::Restore { conversation, messages, values: Box::new(values), cancel });
    }

    /// Cancels reading a saved context, after the current page.
    pub fn stop_restoring(&self) {
        self.restoring.end();
    }

    /// Queues the removal of a conversation's saved context.
    pub fn forget_context(&self, conversation: i64) {
        let _ = self.jobs.send(Job::Forget { conversation });
    }

    /// Queues writing what is left of contexts, and returns the receiver of its end.
    pub fn finish_contexts(&self) -> mpsc::Receiver<Result<()>> {
        self.begin(|done| Job::FinishContexts { done })
    }

    /// Queues a measurement of the prompt of `chat` with `values`.
    pub fn measure(&self, chat: Chat, values: PresetValues) -> mpsc::Receiver<Result<PromptSize>> {
        self.begin(|done| Job::Measure { chat, values: Box::new(values), done })
    }

    /// Queues a check of a stored reply.
    pub fn check(
        &self,
        stored: Stored,
        on_progress: OnCheck,
        cancel: Cancel,
    ) -> mpsc::Receiver<Result<ReplyCheck>> {
        self.begin(|done| Job::Check { stored: Box::new(stored), on_progress, cancel, done })
    }

    /// Queues an arena.
    pub fn arena(
        &self,
        request: ArenaRequest,
        on_event: OnArena,
        cancel: Cancel,
    ) -> mpsc::Receiver<Result<Arena>> {
        self.begin(|done| Job::Arena { request: Box::new(request), on_event, cancel, done })
    }

    /// Queues a job and cancels background jobs.
    fn begin<T>(&self, job: impl FnOnce(mpsc::Sender<Result<T>>) -> Job) -> mpsc::Receiver<Result<T>> {
        let (done, outcome) = mpsc::channel();
        self.background.all();
        let _ = self.jobs.send(job(done));
        outcome
    }

    /// Queues a trial of every draft on `text`, a conversation, and returns the receiver of its
    /// end.
    pub fn advise(&self, text: Vec<ChatMessage>, on_advice: OnAdvice) -> mpsc::Receiver<Result<()>> {
        let (done, outcome) = mpsc::channel();
        self.background.title.end();
        let cancel = self.background.trials.begin();
        let _ = self.jobs.send(Job::Advise { text, on_advice, cancel, done });
        outcome
    }

    /// Cancels queued or running trials, after the current pass.
    pub fn stop_advising(&self) {
        self.background.trials.end();
    }

    /// Queues a title for `messages`, a conversation that ends with a reply and is written with
    /// `values`, and returns the receiver of the answer; `None` without an answer, because any
    /// other job cancels the title.
    pub fn title(
        &self,
        messages: Vec<ChatMessage>,
        values: PresetValues,
    ) -> mpsc::Receiver<Result<Option<String>>> {
        let (done, outcome) = mpsc::channel();
        let cancel = self.background.title.begin();
        let _ = self.jobs.send(Job::Title { messages, values: Box::new(values), cancel, done });
        outcome
    }
}
