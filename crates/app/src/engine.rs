//! The way to the engine thread, which owns the loaded models and carries out one job after the other. Knows
//! neither the store nor the window.
//!
//! - `job`: what can be asked of the thread; `worker`: takes one job after the other
//! - `local`: the models on this computer; `loading`: which of them are loaded, and what becomes of them when a
//!   device fails
//! - `choosing`: who drafts; `advise`: trials of every draft
//! - `reading`: how fast prompts are read
//! - `remote`: replies by models on servers elsewhere
//! - `replying`, `serving`, `check`, `arena`: what the models are there for; `why`: whether replies are drafted

mod advise;
mod arena;
mod check;
mod choosing;
mod job;
mod loading;
mod local;
mod reading;
mod remote;
mod replying;
mod serving;
mod why;
mod worker;

use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use foretoken_engine::model::{ChatMessage, Tokenizer};
use foretoken_engine::session::{Hardware, Host};
use foretoken_library::Secrets;
use foretoken_server::Writer;

use self::job::Job;
pub use self::job::{OnAdvice, OnArena, OnCheck, OnReply, Stored};
use self::local::{Chosen, Local};
use self::remote::Remote;
use self::serving::ServerWriter;
use self::worker::Worker;
use crate::board::Board;
use crate::cancel::{Cancel, GiveWay};
use crate::devices;
use crate::error::Result;
use crate::ipc::{Arena, ArenaRequest, EngineStatus, PresetValues, PromptSize, ReplyCheck, Settings};
use crate::lock::lock;
use crate::models::Models;
use crate::replier::{Ending, Replier};
use crate::shown::{self, Wish};

/// Who replies beside the models on this computer.
pub struct Repliers {
    /// The keys of servers elsewhere, for targets that are there.
    pub remote: Secrets,
    /// Who replies in the place of all of them, if anybody.
    pub instead: Option<Box<dyn Replier>>,
}

/// The way to the engine thread. Dropping it ends the thread after the job under way.
pub struct Engine {
    jobs: mpsc::Sender<Job>,
    /// The latest of what anything else that is asked for ends.
    give_way: Arc<GiveWay>,
    chosen: Arc<Mutex<Chosen>>,
    /// Written by the thread, but for the list of devices.
    board: Arc<Board>,
    hardware: Arc<dyn Hardware>,
    /// Held while devices are looked for.
    looking: Mutex<()>,
    tokenizer: Arc<Mutex<Option<Arc<Tokenizer>>>>,
    /// What was chosen last.
    wishes: Board<Wish>,
}

impl Engine {
    /// Starts the thread, which loads the models that `settings` name.
    pub fn start(
        host: Host,
        models: Models,
        repliers: Repliers,
        settings: Settings,
        earlier: Vec<String>,
    ) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let chosen = Arc::new(Mutex::new(Chosen::default()));
        let board = Arc::new(Board::starting());
        board.update(|status| status.devices = devices::unlooked(&settings));
        let hardware = Arc::clone(&host.hardware);
        let local = Local::new(host, models, Arc::clone(&chosen), Arc::clone(&board));
        // Who replies in their place has a tokenizer that nobody here knows.
        let tokenizer =
            if repliers.instead.is_none() { Arc::clone(&local.tokenizer) } else { Arc::default() };
        let worker = Worker { local, remote: Remote::new(repliers.remote), instead: repliers.instead };
        thread::Builder::new().name("engine".to_owned()).spawn(move || worker.work(queue))?;
        let engine = Self {
            jobs,
            give_way: Arc::default(),
            chosen,
            board,
            hardware,
            looking: Mutex::default(),
            tokenizer,
            wishes: Board::showing(Wish::default()),
        };
        let values = settings.values();
        engine.apply_settings(settings, values, earlier);
        Ok(engine)
    }

    /// What the thread last said of itself.
    pub fn status(&self) -> EngineStatus {
        self.board.status()
    }

    /// That of the model that replies; `None` while there is none on this computer.
    pub fn tokenizer(&self) -> Option<Arc<Tokenizer>> {
        lock(&self.tokenizer).clone()
    }

    /// See [`shown::watch`].
    pub fn watch(&self, watcher: impl Fn(&EngineStatus) -> bool + Send + Sync + 'static) {
        shown::watch(&self.board, &self.wishes, watcher);
    }

    /// See [`shown::watch_from_page`].
    pub fn watch_from_page(&self, watcher: impl Fn(&EngineStatus) -> bool + Send + Sync + 'static) {
        shown::watch_from_page(&self.board, &self.wishes, watcher);
    }

    /// Makes these the settings of every later reply, written with `values` and for the local server with the
    /// settings' own; loads what they name, and no longer what others named. `earlier` are texts that drafts may
    /// repeat.
    pub fn apply_settings(&self, settings: Settings, values: PresetValues, earlier: Vec<String>) {
        self.give_way.all();
        *lock(&self.chosen) = Chosen::by(&settings);
        let revision = self.wishes.status().revision + 1;
        self.wishes.update(|wish| *wish = Wish::of(&settings, revision));
        // The thread lives as long as this handle, so someone is listening.
        let defaults = Box::new(settings.values());
        let settings = Box::new(settings.with(values));
        let _ = self.jobs.send(Job::Settings { settings, defaults, earlier, revision });
    }

    /// Looks for what could compute, on the thread that calls, and shows it beside what `settings` name. One at a time
    /// looks.
    pub fn look_for_devices(&self, settings: &Settings) {
        let _looking = lock(&self.looking);
        devices::look(self.hardware.as_ref(), settings, &self.board);
    }

    /// Looks for models on this computer again: call it when one has come or gone.
    pub fn lister(&self) -> impl Fn() + Send + Sync + 'static {
        let jobs = self.jobs.clone();
        move || {
            let _ = jobs.send(Job::List);
        }
    }

    /// What replies for the local server.
    pub fn writer(&self) -> Arc<dyn Writer> {
        let (jobs, give_way) = (self.jobs.clone(), Arc::clone(&self.give_way));
        Arc::new(ServerWriter { jobs, give_way, board: Arc::clone(&self.board) })
    }

    /// Queues a reply to `messages`, written with `values`, and returns where its outcome will arrive.
    pub fn reply(
        &self,
        messages: Vec<ChatMessage>,
        values: PresetValues,
        on: OnReply,
        cancel: Cancel,
    ) -> mpsc::Receiver<Result<Ending>> {
        self.begin(|done| Job::Reply { messages, values: Box::new(values), on, cancel, done })
    }

    /// Queues the question how long the prompt of `messages` is with `values`.
    pub fn measure(
        &self,
        messages: Vec<ChatMessage>,
        values: PresetValues,
    ) -> mpsc::Receiver<Result<PromptSize>> {
        self.begin(|done| Job::Measure { messages, values: Box::new(values), done })
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

    /// Queues what goes before trials of drafts and titles.
    fn begin<T>(&self, job: impl FnOnce(mpsc::Sender<Result<T>>) -> Job) -> mpsc::Receiver<Result<T>> {
        let (done, outcome) = mpsc::channel();
        self.give_way.all();
        let _ = self.jobs.send(job(done));
        outcome
    }

    /// Queues a trial of every draft on `text`, a conversation, and returns where the end of it will arrive.
    pub fn advise(&self, text: Vec<ChatMessage>, on_advice: OnAdvice) -> mpsc::Receiver<Result<()>> {
        let (done, outcome) = mpsc::channel();
        self.give_way.title.end();
        let cancel = self.give_way.trials.begin();
        let _ = self.jobs.send(Job::Advise { text, on_advice, cancel, done });
        outcome
    }

    /// Ends trials that are queued or under way, after the present pass.
    pub fn stop_advising(&self) {
        self.give_way.trials.end();
    }

    /// Queues a title for `messages`, a conversation that ends with a reply and is written with `values`, and returns
    /// where the answer will arrive; `None` where there is none, for anything else that is asked for ends it.
    pub fn title(
        &self,
        messages: Vec<ChatMessage>,
        values: PresetValues,
    ) -> mpsc::Receiver<Result<Option<String>>> {
        let (done, outcome) = mpsc::channel();
        let cancel = self.give_way.title.begin();
        let _ = self.jobs.send(Job::Title { messages, values: Box::new(values), cancel, done });
        outcome
    }
}
