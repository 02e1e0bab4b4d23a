//! Thread of the session, which writes one reply after the other. It loads the model that a request
//! names, unloads an idle one, and loads a model again after a panic or a failed GPU.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foretoken_engine::session::{Remedy, Session, TextBudget};
use foretoken_engine::trace::Summary;
use foretoken_model::Picture;
use foretoken_model::embedding::TextEmbedder;
use foretoken_model::error::{Error as EngineError, Result as EngineResult};
use foretoken_senses::picture::PictureReader;
use foretoken_server::session::write;
use foretoken_server::{Defaults, Order, PromptReader, Refusal, ReplySink, Writer};

use super::models::{ServedModels, form_if_any, not_loaded};
use crate::args::{DraftChoice, TalkArgs};
use crate::error::{Error, Result};
use crate::output;
use crate::ready::{Ready, ready};
use crate::session::{choose_draft, draft_on_cpu};

/// Request for a reply by `model`.
pub struct Job {
    model: String,
    order: Order,
    sink: ReplySink,
}

/// Handle of the session's thread, as the server's writer.
pub struct SessionThread {
    /// Names of the models that requests can name.
    pub names: Vec<String>,
    pub count: Count,
    pub status: Arc<Status>,
    pub jobs: mpsc::Sender<Job>,
    pub embedder: Option<Arc<dyn TextEmbedder>>,
    pub pictures: Arc<PictureReader>,
    /// `true` if the first model sees pictures.
    pub sees: bool,
}

/// Counts the tokens of a prompt for the model of this name.
pub type Count = Box<dyn Fn(&str, &Order) -> std::result::Result<usize, Refusal> + Send + Sync>;

/// Model that replies to requests without a name. `None` while a failed model is loaded again, and
/// after that failed.
pub struct Status(Mutex<Option<String>>);

impl Status {
    pub fn of(model: &str) -> Self {
        Self(Mutex::new(Some(model.to_owned())))
    }

    fn set(&self, model: Option<&str>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = model.map(str::to_owned);
    }

    fn model(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Writer for SessionThread {
    fn model(&self) -> Option<String> {
        self.status.model()
    }

    fn others(&self) -> Vec<String> {
        self.names.clone()
    }

    fn begin(&self, model: &str, order: Order, sink: ReplySink) {
        // If the thread has ended, dropping the sink reports that to the client.
        let _ = self.jobs.send(Job { model: model.to_owned(), order, sink });
    }

    fn count(&self, model: &str, order: Order) -> std::result::Result<usize, Refusal> {
        (self.count)(model, &order)
    }

    fn read_picture(&self, file: &[u8]) -> EngineResult<Picture> {
        self.pictures.read(file)
    }

    fn sees(&self) -> bool {
        self.sees
    }

    fn embedder(&self) -> Option<Arc<dyn TextEmbedder>> {
        self.embedder.clone()
    }
}

/// Reason to load the session again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    Panic,
    Gpu(Remedy),
}

/// A loaded model, which may have to be loaded again.
pub trait Replying: Sized {
    /// Writes a reply and sends its text to `sink`.
    fn write(&mut self, order: Order, sink: &ReplySink) -> EngineResult<Summary>;

    /// Returns whether the draft failed on a GPU in the last reply.
    fn draft_failed(&self) -> bool;

    /// Loads a draft that failed on a GPU onto the CPU; without it, replies go on.
    fn recover_draft(&mut self);

    /// Returns the recovery after an error, if one is necessary.
    fn remedy(&self, error: &EngineError) -> Option<Remedy>;

    /// Loads the model again.
    ///
    /// # Errors
    /// Those of opening and loading models.
    fn recover(self, failure: Failure) -> Result<Self>;
}

/// Loads models by their names.
pub trait Loader {
    type Model: Replying;

    /// # Errors
    /// Those of opening and loading models.
    fn load(&self, name: &str) -> Result<Self::Model>;
}

/// Loads models with the options of `serve`.
pub struct SessionLoader {
    pub models: Arc<ServedModels>,
    /// Defaults of requests; a model without a switch for its reasoning ignores that one.
    pub defaults: Defaults,
    pub budget: TextBudget,
}

impl Loader for SessionLoader {
    type Model = Loaded;

    fn load(&self, name: &str) -> Result<Loaded> {
        let talk = self.models.options(name)?.clone();
        let Ready { draft, mut session, .. } = ready(&talk, form_if_any)?;
        session.keep_texts(self.budget);
        let thinking = talk.thinking.of(session.form());
        self.models.set_reader(name, PromptReader::of(&session, thinking));
        session.device_sentences().for_each(output::note);
        output::note(format_args!("Model {name}, draft {draft}, on {}.", session.devices()));
        let defaults = Defaults { thinking, ..self.defaults.clone() };
        Ok(Loaded { talk, draft, defaults, budget: self.budget, session })
    }
}

/// The session and the options it was loaded with.
pub struct Loaded {
    talk: TalkArgs,
    draft: DraftChoice,
    defaults: Defaults,
    budget: TextBudget,
    session: Session,
}

impl Loaded {
    /// `true` if the model sees pictures.
    pub fn sees(&self) -> bool {
        self.session.sees()
    }
}

impl Replying for Loaded {
    fn write(&mut self, order: Order, sink: &ReplySink) -> EngineResult<Summary> {
        let outcome = write(&mut self.session, order, &self.defaults, sink);
        self.session.save_stats();
        outcome
    }

    fn draft_failed(&self) -> bool {
        self.session.draft.failed_on_gpu()
    }

    fn recover_draft(&mut self) {
        let Self { talk, draft, session, .. } = self;
        let stage = talk.speculation.stage.as_deref();
        match draft_on_cpu(session, draft, stage, &talk.device) {
            Ok(()) => output::note("The draft runs on the CPU because it failed on the GPU."),
            Err(error) => tracing::warn!("the draft could not be loaded again: {error}"),
        }
    }

    fn remedy(&self, error: &EngineError) -> Option<Remedy> {
        self.session.remedy(error)
    }

    fn recover(self, failure: Failure) -> Result<Self> {
        let Self { talk, draft, defaults, budget, session } = self;
        let mut session = match failure {
            Failure::Panic => {
                // Two models may not fit in memory.
                drop(session);
                ready(&talk, form_if_any)?.session
            }
            Failure::Gpu(remedy) => {
                let mut session = session.recover(remedy, |source| source)?;
                let stage = talk.speculation.stage.as_deref();
                // Replies go on without a draft that fails as well.
                match choose_draft(&mut session, &draft, stage, &talk.device) {
                    Ok(_) if !talk.speculation.cold => session.prepare(),
                    Ok(_) => {}
                    Err(error) => tracing::warn!("the draft could not be loaded again: {error}"),
                }
                session
            }
        };
        session.keep_texts(budget);
        Ok(Self { talk, draft, defaults, budget, session })
    }
}

/// Place for one loaded model.
pub struct Slot<L: Loader> {
    pub loader: L,
    /// Name of the model that is loaded, or was loaded last.
    pub name: String,
    /// `None` after an idle model was unloaded, and after one could not be loaded.
    pub loaded: Option<L::Model>,
}

impl<L: Loader> Slot<L> {
    /// Returns the model `name`, which is loaded in place of another one if necessary. Two models
    /// may not fit in memory, so the other one is unloaded first.
    ///
    /// # Errors
    /// Those of the loader, and `Error::Unrecovered` after a panic.
    fn model(&mut self, name: &str) -> Result<&mut L::Model> {
        if self.name != name {
            self.loaded = None;
        }
        let model = match self.loaded.take() {
            Some(model) => model,
            None => {
                output::note(format_args!("Loading {name}."));
                let loaded = catch_unwind(AssertUnwindSafe(|| self.loader.load(name)));
                loaded.unwrap_or(Err(Error::Unrecovered))?
            }
        };
        name.clone_into(&mut self.name);
        Ok(self.loaded.insert(model))
    }

    fn unload(&mut self) {
        self.loaded = None;
        output::note(format_args!("Unloaded {}; the next request loads it again.", self.name));
    }

    /// Loads the model again after a failure, while requests are refused. A panic while it is
    /// loaded would recur.
    ///
    /// # Errors
    /// The reason why it could not be loaded.
    fn recover(&mut self, failure: Failure, status: &Status) -> Result<()> {
        status.set(None);
        output::note("The engine failed; reloading the model.");
        if let Some(model) = self.loaded.take() {
            let recovered = catch_unwind(AssertUnwindSafe(|| model.recover(failure)));
            self.loaded = Some(recovered.unwrap_or(Err(Error::Unrecovered))?);
        }
        status.set(Some(&self.name));
        Ok(())
    }

    /// Writes a reply.
    ///
    /// # Errors
    /// The reason why a model that failed could not be loaded again.
    fn write(&mut self, job: Job, status: &Status) -> Result<()> {
        let Job { model: name, order, sink } = job;
        let model = match self.model(&name) {
            Ok(model) => model,
            Err(error) => {
                tracing::warn!("{name} cannot be loaded: {error}");
                sink.end(Err(not_loaded(&name, &error)));
                return Ok(());
            }
        };
        status.set(Some(&name));
        let outcome = catch_unwind(AssertUnwindSafe(|| model.write(order, &sink)));
        let failure = match &outcome {
            Err(_) => Some(Failure::Panic),
            Ok(Err(error)) => {
                tracing::warn!("no reply: {error}");
                model.remedy(error).map(Failure::Gpu)
            }
            Ok(Ok(_)) => None,
        };
        // The end of the reply starts the next request.
        if failure.is_some() {
            status.set(None);
        }
        let failed =
            || Refusal::failed("The engine failed on this request; the server's log has the reason.");
        sink.end(outcome.map_or_else(|_| Err(failed()), |outcome| outcome.map_err(Into::into)));
        // A panic while the draft is loaded discards the session.
        let draft_panicked = failure.is_none()
            && model.draft_failed()
            && catch_unwind(AssertUnwindSafe(|| model.recover_draft())).is_err();
        let failure = failure.or(draft_panicked.then_some(Failure::Panic));
        failure.map_or(Ok(()), |failure| self.recover(failure, status))
    }
}

/// Writes one reply after the other until the sender is dropped. Unloads a model without requests
/// for the time `idle`. After a failure of the engine the model is loaded again.
///
/// # Errors
/// Returns the reason why the model could not be loaded again.
pub fn write_all<L: Loader>(
    mut slot: Slot<L>,
    status: &Status,
    jobs: mpsc::Receiver<Job>,
    idle: Option<Duration>,
) -> Result<()> {
    loop {
        let next = match idle.filter(|_| slot.loaded.is_some()) {
            Some(idle) => jobs.recv_timeout(idle),
            None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(job) => slot.write(job, status)?,
            Err(RecvTimeoutError::Timeout) => slot.unload(),
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}
