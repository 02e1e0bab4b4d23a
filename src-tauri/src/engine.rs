//! The engine thread: owns the loaded models, carries out one job after the other, and keeps the
//! board up to date. Knows neither the store nor the window.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use foretoken_engine::Error;
use foretoken_engine::decoder::{Decoder, Progress, Reply, Request};
use foretoken_engine::device::{default_device, label};
use foretoken_engine::draft::{Drafter, ModelDrafter, NgramDrafter};
use foretoken_engine::forward::load;
use foretoken_engine::model::{ChatMessage, ChatTemplate, ModelSource, Role, Special};
use foretoken_engine::sampling::Mode;
use foretoken_engine::trace::LengthReason;

use crate::board::Board;
use crate::error::Result;
use crate::ipc::{
    CommandError, DRAFT_NGRAM, DRAFT_NONE, EnginePhase, ErrorCode, ModelEntry, Settings, Speculating, Why,
};
use crate::models::{Models, Place, entry};

/// Hears of a reply while it is written, on the engine thread.
pub trait Listener: Send {
    /// The prompt is sound and the reply begins, by the models with these labels. An error ends it
    /// before anything is written.
    fn admitted(&mut self, target: &str, draft: Option<&str>) -> Result<()>;

    fn progress(&mut self, progress: Progress<'_>);
}

enum Job {
    Settle(Settings),
    Reply { messages: Vec<ChatMessage>, listener: Box<dyn Listener>, done: mpsc::Sender<Result<Reply>> },
}

/// The way to the engine thread. Dropping it ends the thread after the job under way.
pub struct Engine {
    jobs: mpsc::Sender<Job>,
    stop: Arc<AtomicBool>,
    board: Arc<Board>,
}

impl Engine {
    /// Starts the thread; the models that `settings` name are loaded there.
    pub fn start(models: Models, settings: Settings) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let board = Arc::new(Board::new(label(&default_device())));
        let desk = Desk {
            models,
            settings: Settings::default(),
            target: None,
            draft: None,
            listed: Vec::new(),
            listed_for: None,
            stop: Arc::clone(&stop),
            board: Arc::clone(&board),
        };
        thread::Builder::new().name("engine".to_owned()).spawn(move || desk.work(queue))?;
        let engine = Self { jobs, stop, board };
        engine.settle(settings);
        Ok(engine)
    }

    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Makes these the settings of every later reply; loads what they name.
    pub fn settle(&self, settings: Settings) {
        // The choice shows at once, also while a reply is under way.
        self.board.update(|status| status.draft.clone_from(&settings.draft));
        // The thread lives as long as this handle, so someone is listening.
        let _ = self.jobs.send(Job::Settle(settings));
    }

    /// Queues a reply to `messages` and returns where its outcome will arrive.
    pub fn reply(
        &self,
        messages: Vec<ChatMessage>,
        listener: Box<dyn Listener>,
    ) -> mpsc::Receiver<Result<Reply>> {
        let (done, outcome) = mpsc::channel();
        self.stop.store(false, Ordering::Relaxed);
        let _ = self.jobs.send(Job::Reply { messages, listener, done });
        outcome
    }

    /// Stops the reply under way after its present round.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A target ready to reply.
struct Target {
    id: String,
    entry: ModelEntry,
    source: ModelSource,
    decoder: Decoder,
    template: ChatTemplate,
}

/// A drafter ready to draft.
struct Draft {
    id: String,
    label: String,
    drafter: Box<dyn Drafter>,
}

/// What the engine thread works with.
struct Desk {
    models: Models,
    settings: Settings,
    target: Option<Target>,
    /// For the present target; `None` when none is chosen or it cannot be used.
    draft: Option<Draft>,
    /// The models the board lists, and the id of the target that the drafts there were compared with.
    listed: Vec<Place>,
    listed_for: Option<String>,
    stop: Arc<AtomicBool>,
    board: Arc<Board>,
}

impl Desk {
    fn work(mut self, queue: mpsc::Receiver<Job>) {
        for job in queue {
            let done = catch_unwind(AssertUnwindSafe(|| self.carry_out(job)));
            if done.is_err() {
                self.give_up();
            }
        }
    }

    fn carry_out(&mut self, job: Job) {
        match job {
            Job::Settle(settings) => self.settle(settings),
            Job::Reply { messages, mut listener, done } => {
                let outcome = self.reply(&messages, listener.as_mut());
                // Whoever asked may have gone.
                let _ = done.send(outcome);
            }
        }
    }

    /// After a panic, which has been logged, nothing is known about the models' caches. Choosing a
    /// target loads it anew.
    fn give_up(&mut self) {
        (self.target, self.draft) = (None, None);
        self.board.update(|status| {
            status.phase = EnginePhase::Failed;
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
        self.settings = settings;
        // Before the target is loaded: if that fails, others can be chosen.
        self.list_targets();
        let problem = self.settle_target().err();
        let why = self.settle_draft();
        self.list_drafts();
        let target = self.target.as_ref();
        self.board.update(|status| {
            status.phase = if target.is_some() { EnginePhase::Ready } else { EnginePhase::Failed };
            status.message = problem.map(|error| error.message);
            status.target = target.map(|target| target.entry.clone());
            status.draft = self.settings.draft.clone();
            status.why = why;
        });
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

    /// Compares them with the target, unless it is the one they were compared with.
    fn list_drafts(&mut self) {
        let Some(target) = &self.target else { return };
        if self.listed_for.as_ref() != Some(&target.id) {
            let listed = self.listed.iter().zip(self.board.status().targets);
            let drafts = self.models.drafts(listed, target.source.path(), target.decoder.tokenizer());
            self.board.update(|status| status.drafts = drafts);
            self.listed_for = Some(target.id.clone());
        }
    }

    /// Loads the chosen target unless it is loaded. The old one stays until the new one is ready,
    /// and if the new one fails.
    fn settle_target(&mut self) -> Result<()> {
        let id = self.settings.target.clone();
        if self.target.as_ref().is_some_and(|target| target.id == id) {
            return Ok(());
        }
        let path = self.models.path(&id)?;
        let entry = self.entry(&id, &path);
        self.board.update(|status| {
            status.phase = EnginePhase::Loading;
            status.message = Some(format!("Loading {}", entry.label));
        });
        let source = ModelSource::open(&path)?;
        let template = source.template()?;
        let tokenizer = Arc::new(source.tokenizer()?);
        let decoder = Decoder::new(load(&source, &default_device())?, tokenizer);
        self.target = Some(Target { id, entry, source, decoder, template });
        self.draft = None;
        Ok(())
    }

    /// Makes the chosen draft ready and says why replies will be drafted or not.
    fn settle_draft(&mut self) -> Why {
        let id = self.settings.draft.clone();
        let Some(target) = &self.target else {
            return off("no model is loaded");
        };
        if id == DRAFT_NONE {
            self.draft = None;
            return off("no draft is chosen");
        }
        let ready = self.draft.take().filter(|draft| draft.id == id);
        match ready.map_or_else(|| self.open_draft(&id, target), Ok) {
            Ok(draft) => speculating(self.draft.insert(draft), &self.settings),
            Err(error) => off(&error.message),
        }
    }

    fn open_draft(&self, id: &str, target: &Target) -> Result<Draft> {
        if id == DRAFT_NGRAM {
            let drafter = Box::new(NgramDrafter::default());
            return Ok(Draft { id: id.to_owned(), label: "n-gram".to_owned(), drafter });
        }
        let source = ModelSource::open(&self.models.path(id)?)?;
        let drafter = ModelDrafter::open(&source, &default_device(), target.decoder.tokenizer());
        let drafter = drafter.map_err(|error| match error {
            // The why line says already that the draft is not used.
            Error::Incompatible(reason) => CommandError::new(ErrorCode::BadModel, reason),
            other => other.into(),
        })?;
        let label = self.entry(id, source.path()).label;
        Ok(Draft { id: id.to_owned(), label, drafter: Box::new(drafter) })
    }

    /// The model as it is listed; one that is not, by a look into its file.
    fn entry(&self, id: &str, path: &Path) -> ModelEntry {
        let listed = self.board.status().targets.into_iter().find(|entry| entry.id == id);
        listed.unwrap_or_else(|| entry(id, path, false))
    }

    fn reply(&mut self, messages: &[ChatMessage], listener: &mut dyn Listener) -> Result<Reply> {
        let Some(target) = &mut self.target else {
            let message = "No model is loaded: expected a target to reply with. Choose one in the settings.";
            return Err(CommandError::new(ErrorCode::NoTarget, message));
        };
        let request = request(target, messages, &self.settings)?;
        request.admit(target.decoder.target().config().context)?;
        let draft = self.draft.as_ref().map(|draft| draft.label.as_str());
        listener.admitted(&target.entry.label, draft)?;

        self.board.update(|status| status.phase = EnginePhase::Replying);
        let mut failed = false;
        let mut on_progress = |progress: Progress<'_>| {
            if let Progress::Round(round) = progress {
                failed |= round.reason == LengthReason::DrafterFailed;
            }
            listener.progress(progress);
            if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let drafter: Option<&mut dyn Drafter> = match &mut self.draft {
            Some(draft) => Some(draft.drafter.as_mut()),
            None => None,
        };
        let reply = target.decoder.reply(&request, drafter, &mut on_progress);
        let why = self.draft.as_ref().map(|draft| match failed {
            true => Why {
                state: Speculating::Paused,
                text: "paused: the draft failed in the last reply; the next one tries again".to_owned(),
            },
            false => speculating(draft, &self.settings),
        });
        self.board.update(|status| {
            status.phase = EnginePhase::Ready;
            status.why = why.unwrap_or_else(|| status.why.clone());
        });
        Ok(reply?)
    }
}

fn off(reason: &str) -> Why {
    Why { state: Speculating::Off, text: format!("off: {reason}") }
}

fn speculating(draft: &Draft, settings: &Settings) -> Why {
    let text = format!("speculating, K = {}, drafted by {}", settings.draft_length, draft.label);
    Why { state: Speculating::On, text }
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
        draft_length: settings.draft_length as usize,
        max_tokens: (settings.max_tokens > 0).then_some(settings.max_tokens as usize),
        ..Request::new(prompt)
    })
}
