//! The engine thread: owns the loaded models, carries out one job after the other, and keeps the
//! board up to date. Knows neither the store nor the window. Loading models and going on after a device
//! failed, choosing drafts and trials of them, checks of replies, the arena and the why line are its children's.

mod advise;
mod arena;
mod check;
mod choosing;
mod hardware;
mod loading;
mod recovery;
mod why;

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use foretoken_engine::decoder::{Decoder, Progress, Reply, Request};
use foretoken_engine::device::{DeviceChoice, Gpu, Opened};
use foretoken_engine::draft::Drafters;
use foretoken_engine::model::{ChatMessage, ChatTemplate, ModelSource, Role, Special, Tokenizer};
use foretoken_engine::sampling::Mode;
use foretoken_engine::speculation::{DrafterChoice, Speculation};
use foretoken_engine::trace::TokenId;
use foretoken_library::{Folders, Learned, STARTER};

pub use self::arena::OnArena;
pub use self::check::{OnCheck, Stored};
use self::choosing::Choice;
pub use self::hardware::{Hardware, ThisComputer};
use self::recovery::Remedy;
use self::why::{Reporter, off};
use crate::board::Board;
use crate::drafts::Candidate;
use crate::error::Result;
use crate::ipc::{
    Advice, Arena, ArenaRequest, CommandError, DRAFT_NGRAM, EnginePhase, ErrorCode, ModelEntry, ReplyCheck,
    Settings,
};
use crate::lock::lock;
use crate::memory;
use crate::models::{Models, Place};

/// Hears of a reply while it is written, on the engine thread.
pub trait Listener: Send {
    /// The prompt is sound and the reply begins, by the models with these labels. An error ends it
    /// before anything is written.
    fn admitted(&mut self, target: &str, draft: Option<&str>) -> Result<()>;

    fn progress(&mut self, progress: Progress<'_>);
}

/// Hears what is found out about a draft, on the engine thread.
pub type OnAdvice = Box<dyn Fn(Advice) + Send>;

enum Job {
    Settle { settings: Box<Settings>, earlier: Vec<String> },
    List,
    Advise { text: Vec<ChatMessage>, on_advice: OnAdvice, done: mpsc::Sender<Result<()>> },
    Reply { messages: Vec<ChatMessage>, listener: Box<dyn Listener>, done: mpsc::Sender<Result<Reply>> },
    Check { stored: Box<Stored>, on_progress: OnCheck, done: mpsc::Sender<Result<ReplyCheck>> },
    Arena { request: Box<ArenaRequest>, on_event: OnArena, done: mpsc::Sender<Result<Arena>> },
}

/// The way to the engine thread. Dropping it ends the thread after the job under way.
pub struct Engine {
    jobs: mpsc::Sender<Job>,
    stop: Arc<AtomicBool>,
    /// Whether drafts shall be tried on; anything else that is asked for ends that.
    advising: Arc<AtomicBool>,
    chosen: Arc<Mutex<Chosen>>,
    board: Arc<Board>,
}

/// What was asked to be loaded, and where. What is being loaded and is no longer wanted is given up.
#[derive(Debug, Clone, Default, PartialEq)]
struct Chosen {
    target: (String, DeviceChoice),
    /// See [`Settings::drafts`].
    drafts: (BTreeMap<String, String>, DeviceChoice),
}

impl Chosen {
    fn by(settings: &Settings) -> Self {
        Self {
            target: (settings.target.clone(), settings.device),
            drafts: (settings.drafts.clone(), settings.draft_device),
        }
    }
}

impl Engine {
    /// Starts the thread; the models that `settings` name are loaded there, onto `hardware`. What is learned about
    /// them is kept in `folders`.
    pub fn start(
        folders: Folders,
        models: Models,
        hardware: Box<dyn Hardware>,
        settings: Settings,
        earlier: Vec<String>,
    ) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let advising = Arc::new(AtomicBool::new(false));
        let chosen = Arc::new(Mutex::new(Chosen::default()));
        let board = Arc::new(Board::starting());
        let desk = Desk {
            folders,
            models,
            hardware,
            settings: Settings::default(),
            wanted: Chosen::default(),
            earlier: Vec::new(),
            target: None,
            draft: None,
            choice: None,
            remedy: None,
            listed: Vec::new(),
            listed_for: None,
            candidates: Vec::new(),
            trials: HashMap::new(),
            stop: Arc::clone(&stop),
            advising: Arc::clone(&advising),
            chosen: Arc::clone(&chosen),
            board: Arc::clone(&board),
        };
        thread::Builder::new().name("engine".to_owned()).spawn(move || desk.work(queue))?;
        let engine = Self { jobs, stop, advising, chosen, board };
        engine.settle(settings, earlier);
        Ok(engine)
    }

    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Makes these the settings of every later reply; loads what they name, and no longer what others named.
    /// `earlier` are texts that drafts may repeat.
    pub fn settle(&self, settings: Settings, earlier: Vec<String>) {
        self.stop_advising();
        *lock(&self.chosen) = Chosen::by(&settings);
        // The choice shows at once, also while a reply is under way.
        self.board.update(|status| {
            let target = status.target.as_ref().filter(|target| target.id == settings.target);
            if let Some(draft) = target.and_then(|target| settings.drafts.get(&target.id)) {
                status.draft.clone_from(draft);
            }
        });
        // The thread lives as long as this handle, so someone is listening.
        let _ = self.jobs.send(Job::Settle { settings: Box::new(settings), earlier });
    }

    /// Looks for models on this computer again: call it when one has come or gone.
    pub fn lister(&self) -> impl Fn() + Send + Sync + 'static {
        let jobs = self.jobs.clone();
        move || {
            let _ = jobs.send(Job::List);
        }
    }

    /// Queues a reply to `messages` and returns where its outcome will arrive.
    pub fn reply(
        &self,
        messages: Vec<ChatMessage>,
        listener: Box<dyn Listener>,
    ) -> mpsc::Receiver<Result<Reply>> {
        self.begin(|done| Job::Reply { messages, listener, done })
    }

    /// Queues a check of a stored reply.
    pub fn check(&self, stored: Stored, on_progress: OnCheck) -> mpsc::Receiver<Result<ReplyCheck>> {
        self.begin(|done| Job::Check { stored: Box::new(stored), on_progress, done })
    }

    /// Queues an arena.
    pub fn arena(&self, request: ArenaRequest, on_event: OnArena) -> mpsc::Receiver<Result<Arena>> {
        self.begin(|done| Job::Arena { request: Box::new(request), on_event, done })
    }

    /// Queues what [`Self::stop`] can end.
    fn begin<T>(&self, job: impl FnOnce(mpsc::Sender<Result<T>>) -> Job) -> mpsc::Receiver<Result<T>> {
        let (done, outcome) = mpsc::channel();
        self.stop_advising();
        self.stop.store(false, Ordering::Relaxed);
        let _ = self.jobs.send(job(done));
        outcome
    }

    /// Queues a trial of every draft on `text`, a conversation, and returns where the end of it will arrive.
    pub fn advise(&self, text: Vec<ChatMessage>, on_advice: OnAdvice) -> mpsc::Receiver<Result<()>> {
        let (done, outcome) = mpsc::channel();
        self.advising.store(true, Ordering::Relaxed);
        let _ = self.jobs.send(Job::Advise { text, on_advice, done });
        outcome
    }

    /// Ends the trials after the present pass.
    pub fn stop_advising(&self) {
        self.advising.store(false, Ordering::Relaxed);
    }

    /// Stops the reply, the check or the arena under way after its present round.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A target ready to reply.
struct Target {
    id: String,
    entry: ModelEntry,
    /// What was chosen to compute, and what does.
    chosen: DeviceChoice,
    opened: Opened,
    /// Its context is shorter than the model's own.
    limited: bool,
    source: ModelSource,
    decoder: Decoder,
    template: ChatTemplate,
}

/// Who is ready to draft.
struct Draft {
    id: String,
    label: String,
    drafters: Drafters,
    /// Where what they learn is kept; `None` where nobody drafts.
    learned: Option<Learned>,
    /// What was chosen to compute for the draft model, and what does; `None` where there is no model.
    place: Option<(DeviceChoice, Opened)>,
}

impl Draft {
    fn opened(&self) -> Option<&Opened> {
        self.place.as_ref().map(|(_, opened)| opened)
    }
}

/// What the engine thread works with.
struct Desk {
    folders: Folders,
    models: Models,
    hardware: Box<dyn Hardware>,
    settings: Settings,
    /// What these named before anything took a missing model's place.
    wanted: Chosen,
    /// Texts of earlier conversations that drafts may repeat.
    earlier: Vec<String>,
    target: Option<Target>,
    /// For the present target; `None` when none is chosen or it cannot be used.
    draft: Option<Draft>,
    /// For the present target; `None` before one was chosen.
    choice: Option<Choice>,
    /// What is to be done about a target that failed in the present job.
    remedy: Option<Remedy>,
    /// The models the board lists, and the id of the target that the drafts there were compared with.
    listed: Vec<Place>,
    listed_for: Option<String>,
    candidates: Vec<Candidate>,
    /// Tokens per second over those without drafts, by the ids of target and draft, where that was tried.
    trials: HashMap<(String, String), f64>,
    stop: Arc<AtomicBool>,
    advising: Arc<AtomicBool>,
    chosen: Arc<Mutex<Chosen>>,
    board: Arc<Board>,
}

impl Desk {
    fn work(mut self, queue: mpsc::Receiver<Job>) {
        let devices = self.hardware.survey();
        self.board.update(|status| status.devices = devices);
        for job in queue {
            let done = catch_unwind(AssertUnwindSafe(|| {
                self.carry_out(job);
                self.recover();
            }));
            if done.is_err() {
                self.give_up();
            }
        }
    }

    fn carry_out(&mut self, job: Job) {
        match job {
            Job::Settle { settings, earlier } => {
                self.earlier = earlier;
                self.settle(*settings);
            }
            Job::List => {
                self.list_targets();
                self.choose_draft();
            }
            Job::Advise { text, on_advice, done } => {
                let _ = done.send(self.advise(&text, &on_advice));
            }
            Job::Reply { messages, mut listener, done } => {
                let outcome = self.reply(&messages, listener.as_mut());
                // Whoever asked may have gone.
                let _ = done.send(outcome);
                self.keep_learned();
            }
            Job::Check { stored, on_progress, done } => {
                let _ = done.send(self.check(&stored, &on_progress));
            }
            Job::Arena { request, on_event, done } => {
                let _ = done.send(self.arena(&request, &on_event));
            }
        }
    }

    /// After a panic, which has been logged, nothing is known about the models' caches. Choosing a
    /// target loads it anew.
    fn give_up(&mut self) {
        (self.target, self.draft, self.choice, self.remedy) = (None, None, None, None);
        self.board.update(|status| {
            status.phase = EnginePhase::Failed;
            status.loading = None;
            status.target = None;
            status.why = off("no model is loaded");
            status.message = Some(
                "The engine failed on this model: the log has the reason. Choose another, or change a setting \
                 to load the same again."
                    .to_owned(),
            );
        });
    }

    fn settle(&mut self, settings: Settings) {
        self.wanted = Chosen::by(&settings);
        self.settings = settings;
        // Before the target is loaded: if that fails, others can be chosen.
        self.list_targets();
        let settled = self.settle_target();
        let failed = settled.as_ref().is_err_and(|error| error.code != ErrorCode::Cancelled);
        if failed {
            // The choice stays what it is: the model may be on a disk that is back the next time.
            for replacement in [self.models.default_target(), STARTER] {
                if self.target.is_none() {
                    self.settings.target = replacement.to_owned();
                    let _ = self.settle_target();
                }
            }
        }
        self.announce(settled.unwrap_or_else(told));
    }

    /// Sees to the draft, and says how things are: `message`, and what is loaded.
    fn announce(&mut self, message: Option<String>) {
        self.choose_draft();
        let why = self.settle_draft();
        let target = self.target.as_ref();
        let draft = self.draft.as_ref().and_then(Draft::opened);
        let mut remarks: Vec<String> =
            target.iter().filter_map(|target| target.opened.remark.clone()).collect();
        remarks.extend(draft.and_then(|opened| opened.remark.clone()));
        // One for both in the same place.
        remarks.dedup();
        self.board.update(|status| {
            status.phase = if target.is_some() { EnginePhase::Ready } else { EnginePhase::Failed };
            status.loading = None;
            status.message = message;
            status.target = target.map(|target| target.entry.clone());
            status.device = target.map_or_else(String::new, |target| target.opened.label.clone());
            status.device_choice = target.map_or(self.settings.device, |target| target.chosen);
            status.draft_device = draft.map(|opened| opened.label.clone());
            status.device_remarks = remarks;
            status.why = why;
        });
        self.report_memory();
    }

    fn report_memory(&self) {
        let target = self.target.as_ref().map(|target| (&target.opened, target.entry.memory_bytes));
        let draft = self.draft.as_ref();
        let draft = draft.and_then(|draft| Some((draft.opened()?, self.listed_bytes(&draft.id))));
        // What CUDA computes with is in the GPU's own memory.
        let here = |(opened, bytes): (&Opened, u64)| if opened.gpu == Some(Gpu::Cuda) { 0 } else { bytes };
        let gpu = [target, draft].into_iter().flatten().find_map(|(opened, _)| opened.memory());
        let memory = memory::in_use(target.map_or(0, here), draft.map_or(0, here), gpu);
        self.board.update(|status| status.memory = memory);
    }

    /// What running a listed model takes; 0 for drafters that are no model.
    fn listed_bytes(&self, id: &str) -> u64 {
        let targets = self.board.status().targets;
        targets.iter().find(|entry| entry.id == id).map_or(0, |entry| entry.memory_bytes)
    }

    /// Opens the models on this computer, unless they are those that are listed.
    fn list_targets(&mut self) {
        let places = self.models.places(&self.settings.added_models);
        if places != self.listed {
            let targets = places.iter().map(Place::entry).collect();
            self.board.update(|status| status.targets = targets);
            (self.listed, self.listed_for) = (places, None);
        }
    }

    /// The model as it is listed; one that is not, by a look into its file.
    fn entry(&self, id: &str, path: &Path) -> ModelEntry {
        let listed = self.board.status().targets.into_iter().find(|entry| entry.id == id);
        listed.unwrap_or_else(|| Place { id: id.to_owned(), ..Place::added(path) }.entry())
    }

    fn reply(&mut self, messages: &[ChatMessage], listener: &mut dyn Listener) -> Result<Reply> {
        let speculation = speculation(self.chosen_draft(), &self.settings.speculation);
        let target = self.target.as_mut().ok_or_else(no_target)?;
        let request = Request { speculation, ..request(target, messages, &self.settings)? };
        request.admit(target.decoder.target().config().context)?;
        let draft = self.draft.as_ref().map(|draft| draft.label.as_str());
        listener.admitted(&target.entry.label, draft)?;

        self.board.update(|status| status.phase = EnginePhase::Replying);
        let mut reporter = Reporter::new(draft.unwrap_or_default());
        let mut on_progress = |progress: Progress<'_>| {
            if let Progress::Round(round) = progress {
                reporter.hear(round, &self.board);
            }
            listener.progress(progress);
            if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut nobody = Drafters::default();
        let drafters = self.draft.as_mut().map_or(&mut nobody, |draft| &mut draft.drafters);
        let reply = target.decoder.reply(&request, drafters, &mut on_progress);
        self.board.update(|status| {
            status.phase = EnginePhase::Ready;
            status.why = reporter.said.unwrap_or_else(|| status.why.clone());
        });
        self.report_memory();
        let mut reply = reply.map_err(|error| self.failed(error))?;
        if let Some(settings) = &mut reply.summary.settings {
            settings.system_prompt.clone_from(&self.settings.system_prompt);
        }
        Ok(reply)
    }

    /// Keeps what was learned about who drafts, for the next start. It is worth no error.
    fn keep_learned(&self) {
        let Some(Draft { drafters, learned: Some(learned), .. }) = &self.draft else { return };
        if let Some(Err(error)) = drafters.knowledge().map(|knowledge| learned.keep(&knowledge)) {
            tracing::warn!("what was learned about the models is not kept: {error}");
        }
    }

    fn loaded(&mut self) -> Result<&mut Target> {
        self.target.as_mut().ok_or_else(no_target)
    }
}

/// What of an error is told. What nobody wants any more is no problem: other settings are on their way.
fn told(error: CommandError) -> Option<String> {
    (error.code != ErrorCode::Cancelled).then_some(error.message)
}

fn no_target() -> CommandError {
    let message = "No model is loaded: expected a target to reply with. Choose one in the settings.";
    CommandError::new(ErrorCode::NoTarget, message)
}

/// Those that the tokenizer can read.
fn tokens(texts: &[String], tokenizer: &Tokenizer) -> Vec<Vec<TokenId>> {
    texts.iter().filter_map(|text| tokenizer.encode(text, Special::Ignore).ok()).collect()
}

/// The conversation in the model's own form.
fn request(target: &Target, messages: &[ChatMessage], settings: &Settings) -> Result<Request> {
    let system = settings.system_prompt.trim();
    let system = (!system.is_empty()).then(|| ChatMessage { role: Role::System, content: system.to_owned() });
    let messages: Vec<ChatMessage> = system.into_iter().chain(messages.iter().cloned()).collect();
    let text = target.template.render(&messages, true)?;
    let prompt = target.decoder.tokenizer().encode(&text, Special::Parse)?;
    let mut sampling = settings.sampling.clone();
    if sampling.seed.is_some() {
        // Whoever fixes a seed wants the same text again, also with another draft.
        sampling.mode = Mode::Reproducible;
    }
    Ok(Request {
        sampling,
        speculation: settings.speculation.clone(),
        max_tokens: (settings.max_tokens > 0).then_some(settings.max_tokens as usize),
        ..Request::new(prompt)
    })
}

/// What was asked for; without a draft model, of the others.
fn speculation(draft: &str, asked: &Speculation) -> Speculation {
    if draft == DRAFT_NGRAM && asked.drafter == DrafterChoice::Model {
        return Speculation { drafter: DrafterChoice::Combined, ..asked.clone() };
    }
    asked.clone()
}
