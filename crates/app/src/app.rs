//! The application without a window: every command is a method of [`App`]. It connects store,
//! library and engine; a window or terminal only forwards commands.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use foretoken_documents::DocumentReader;
use foretoken_engine::inspection::Inspector;
use foretoken_engine::session::{Hardware, Host, Learning, ThisComputer};
use foretoken_forward::device::free_memory;
use foretoken_library::{Folders, Library, Secrets};
use foretoken_model::{ProblemKind, Renderer};
use foretoken_persistence::StatsFile;
use foretoken_store::Store;

use crate::cancel::{JobSlot, Latest};
use crate::conversations::document_search::DocumentSearch;
use crate::conversations::pictures::Pictures;
use crate::conversations::running::Running;
use crate::conversations::unstored::Unstored;
use crate::embedding::{Embedder, Unloaded};
use crate::engine::page_status;
use crate::engine::replier::Replier;
use crate::engine::{Engine, OnAdvice, Repliers};
use crate::error::Result;
use crate::ipc::{
    AppInfo, CommandError, ConversationSetup, DRAFT_NONE, EngineChange, EngineStatus, ErrorCode, Folder,
    ModelEntry, PresetValues, Problem, ServerRequest, ServerStatus, Settings,
};
use crate::lock::lock;
use crate::models::hub::FromHub;
use crate::models::inspection::Inspections;
use crate::models::recommend::Computer;
use crate::models::speeds::Speeds;
use crate::models::{InstalledModel, Models};
use crate::save::{downloads, save};
use crate::serving::Serving;
use crate::settings;
use crate::start::StartProblem;
use crate::tools::running::Tools;

/// Most messages of earlier conversations that drafts may repeat.
const MAX_EARLIER: u32 = 200;

/// Longest time for writing contexts before the application ends. A text of 7,000 tokens takes
/// about a second.
const LONGEST_WRITING: Duration = Duration::from_secs(5);

/// The application behind the window.
pub struct App {
    pub(crate) engine: Engine,
    serving: Serving,
    store: Mutex<Store>,
    /// Replies that could not be stored yet.
    pub(crate) unstored: Unstored,
    /// Slot for the running reply, check or arena.
    pub(crate) slot: JobSlot,
    pub(crate) running: Running,
    /// Running import.
    pub(crate) importing: Latest,
    /// Running count of a conversation's attachments.
    pub(crate) counting: Latest,
    pub(crate) pictures: Pictures,
    pub(crate) documents: DocumentReader,
    /// The embedding model of document search and of the local server.
    pub(crate) embedder: Arc<Embedder>,
    pub(crate) document_search: Arc<DocumentSearch>,
    settings: Mutex<Settings>,
    /// Held while settings change, so that store, memory and engine agree on the last ones.
    pub(crate) saving: Mutex<()>,
    /// The open conversation. Locked while `saving` is held, and before the store.
    pub(crate) open: Mutex<OpenConversation>,
    /// The hub; an error if it cannot be used.
    pub(crate) hub: Result<FromHub>,
    pub(crate) library: Library,
    pub(crate) tools: Tools,
    /// Keys of remote servers.
    pub(crate) secrets: Secrets,
    speeds: Speeds,
    /// Inspections of models, shared with the engine's lists.
    inspections: Inspections,
    inspector: Arc<Inspector>,
    folders: Folders,
    /// Notices that the user has not seen yet.
    notices: Mutex<Vec<String>>,
}

/// The active conversation with its own settings: of those that the window shows, the one that the
/// engine is set up for.
#[derive(Default)]
pub(crate) struct OpenConversation {
    /// Id; `None` for a new conversation.
    pub(crate) conversation: Option<i64>,
    pub(crate) setup: ConversationSetup,
    /// Settings of the new conversation while another one is active.
    pub(crate) new: ConversationSetup,
    /// Values that the engine applies.
    pub(crate) applied: Option<PresetValues>,
}

impl App {
    /// Opens the store in `folders` and starts the engine, for a program that supports
    /// [`Renderer::this_program`]. `resources` is the folder of the installed bundled models, if
    /// any.
    ///
    /// # Errors
    /// Returns an error if the folder or the database cannot be used: nothing could be saved then.
    pub fn start(folders: Folders, resources: Option<&Path>) -> Result<Self, StartProblem> {
        Self::start_on(folders, resources, Arc::new(ThisComputer), Renderer::this_program(), None)
    }

    /// Starts the application with models on `hardware` and chat templates rendered by `renderer`.
    /// A `replier` replaces the models.
    ///
    /// # Errors
    /// Same as [`Self::start`].
    pub fn start_on(
        folders: Folders,
        resources: Option<&Path>,
        hardware: Arc<dyn Hardware>,
        renderer: Arc<Renderer>,
        replier: Option<Box<dyn Replier>>,
    ) -> Result<Self, StartProblem> {
        folders.create()?;
        let mut store = Store::open(&folders.database())?;
        store.lose_calls()?;
        let library = Library::new(&folders, resources);
        let (mut settings, unreadable) = Settings::load(&store, &library)?;
        settings.forget_gone_models();
        let speeds = Speeds(folders.clone());
        let (inspections, inspector) = (Inspections::default(), Arc::new(Inspector::beside(&renderer)));
        let models = Models::new(
            Library::new(&folders, resources),
            speeds.clone(),
            inspections.clone(),
            Arc::clone(&inspector),
        );
        let earlier = earlier(&store, &settings)?;
        let learning: Arc<dyn Learning> = Arc::new(StatsFile(folders.clone()));
        let pictures = Pictures::new(renderer.child_program());
        let documents = DocumentReader::new(renderer.child_program());
        let host = Host { hardware, learning: Some(learning), renderer };
        let secrets = Secrets::new(&folders);
        let repliers = Repliers { remote: secrets.clone(), instead: replier };
        let engine = Engine::start(host, &folders, models, repliers, settings.clone(), earlier)
            .map_err(|error| CommandError::new(ErrorCode::Internal, error))?;
        let hub = FromHub::open(&folders, &settings.hub_address, engine.lister());
        let embedder = Arc::<Embedder>::default();
        embedder.choose(Unloaded::of(&settings, &library));
        let serving = Serving::new(engine.writer(Arc::clone(&embedder), Arc::clone(pictures.reader())));
        serving.apply(|| settings.server.clone());
        Ok(Self {
            engine,
            serving,
            hub,
            library,
            tools: Tools::new(&folders),
            secrets,
            speeds,
            inspections,
            inspector,
            store: Mutex::new(store),
            unstored: Unstored::default(),
            slot: JobSlot::default(),
            running: Running::default(),
            importing: Latest::default(),
            counting: Latest::default(),
            pictures,
            documents,
            document_search: Arc::new(DocumentSearch::new(Arc::clone(&embedder))),
            embedder,
            settings: Mutex::new(settings),
            saving: Mutex::new(()),
            open: Mutex::default(),
            folders,
            notices: Mutex::new(settings::notice(&unreadable).into_iter().collect()),
        })
    }

    /// Calls `start` until it works; `None` if the user quits. After each failure `ask` shows the
    /// problem and returns whether to retry with its remedy. A problem without a remedy ends the
    /// loop.
    pub fn start_with_recovery(
        start: impl Fn() -> Result<Self, StartProblem>,
        ask: impl Fn(&StartProblem) -> bool,
    ) -> Option<Self> {
        let mut notices = Vec::new();
        let go_on = |problem: &StartProblem| {
            tracing::error!("the start failed: {}", problem.text);
            ask(problem)
        };
        loop {
            let problem = match start() {
                Ok(app) => {
                    notices.into_iter().for_each(|notice| app.notify(notice));
                    return Some(app);
                }
                Err(problem) => problem,
            };
            if !go_on(&problem) {
                return None;
            }
            match problem.remedy?.apply() {
                Ok(notice) => notices.extend(notice),
                Err(failed) if go_on(&failed) => (),
                Err(_) => return None,
            }
        }
    }

    /// Queues a notice for the user, which the page shows when it is loaded next.
    pub fn notify(&self, notice: String) {
        lock(&self.notices).push(notice);
    }

    /// Returns the notices, each once.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.notices))
    }

    pub fn info(&self) -> AppInfo {
        AppInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            data_folder: self.folders.root().display().to_string(),
            models_folder: self.folders.models().display().to_string(),
        }
    }

    pub fn folder(&self, folder: Folder) -> PathBuf {
        match folder {
            Folder::Data => self.folders.root().to_owned(),
            Folder::Models => self.folders.models(),
        }
    }

    pub fn settings(&self) -> Settings {
        lock(&self.settings).clone()
    }

    /// Stores `settings` and applies them to all later replies.
    pub fn save_settings(&self, settings: Settings) -> Result<Settings> {
        self.change_settings(|_| settings)
    }

    pub(crate) fn change_settings(&self, change: impl FnOnce(Settings) -> Settings) -> Result<Settings> {
        let saving = lock(&self.saving);
        let before = self.settings();
        let settings = change(before.clone());
        settings.validate()?;
        if settings.hub_address != before.hub_address {
            self.use_hub(&settings.hub_address)?;
        }
        settings.save(&mut self.store())?;
        lock(&self.settings).clone_from(&settings);
        let applied = self.apply_settings(concerns_engine(&before, &settings));
        drop(saving);
        if settings.embedding_model != before.embedding_model {
            self.use_embedding_model()?;
        }
        // Resolving its address may take time, which other changes do not wait for.
        if settings.server != before.server {
            self.serving.apply(|| self.settings().server);
        }
        applied.map(|()| settings)
    }

    /// Returns the status of the local server.
    pub fn server_status(&self) -> ServerStatus {
        self.serving.status()
    }

    /// Calls `watcher` with the local server's current status immediately and with every later one;
    /// it must not wait for this application.
    pub fn watch_server(&self, watcher: impl Fn(&ServerStatus) -> bool + Send + 'static) {
        self.serving.watch(watcher);
    }

    /// Starts or stops the local server, and stores that. A server that could not be started is
    /// tried again.
    pub fn switch_server(&self, on: bool) -> Result<Settings> {
        let switch = |enabled| {
            self.change_settings(|mut settings| {
                settings.server.enabled = enabled;
                settings
            })
        };
        if on && self.settings().server.enabled {
            switch(false)?;
        }
        switch(on)
    }

    /// Returns the latest requests to the local server, the latest first; none while it is stopped.
    pub fn server_requests(&self) -> Vec<ServerRequest> {
        self.serving.requests()
    }

    pub fn watch_engine(&self, watcher: impl Fn(&EngineStatus) -> bool + Send + Sync + 'static) {
        self.engine.watch(watcher);
    }

    /// Watches changes of the engine's status for the page; see
    /// [`crate::observable::Observable::watch_from_page`].
    pub fn watch_engine_changes(&self, watcher: impl Fn(EngineChange) -> bool + Send + Sync + 'static) {
        self.engine.watch_from_page(page_status::changes(watcher));
    }

    /// Looks for devices and lists them in the engine's status; takes a while if GPUs have to be
    /// opened.
    pub fn look_for_devices(&self) {
        self.engine.look_for_devices(&self.settings());
    }

    /// Adds the model at `path` to the lists, if it is a model.
    pub fn add_model(&self, path: &str) -> Result<ModelEntry> {
        let path = std::path::absolute(path.trim()).unwrap_or_else(|_| path.trim().into());
        let added = InstalledModel::added(&path);
        let inspector = Arc::clone(&self.inspector);
        let bad = |problem: Problem| CommandError::new(ErrorCode::BadModel, problem.reason);
        let inspected = self.inspections.one(&path, move || added.entry(&inspector));
        let entry = inspected.flatten().map_err(bad)?;
        // Without a context length it could not be opened, or is a tokenizer alone.
        let is_unusable =
            |problem: &Problem| entry.context == 0 && problem.kind != ProblemKind::EmbeddingModel;
        if let Some(problem) = entry.problem.clone().filter(is_unusable) {
            return Err(bad(problem));
        }
        let id = entry.id.clone();
        self.change_settings(|mut settings| {
            if !settings.added_models.contains(&id) {
                settings.added_models.push(id.clone());
            }
            settings
        })?;
        Ok(entry)
    }

    /// Takes a model off the lists; the file stays. If it was in use, the default replaces it as
    /// the target, and the best fitting draft as the draft.
    pub fn remove_model(&self, id: &str) -> Result<()> {
        let remove = |mut settings: Settings| {
            settings.added_models.retain(|added| added != id);
            if settings.target == id {
                settings.target = self.library.default_target().to_owned();
            }
            settings.drafts.retain(|target, draft| target != id && draft != id);
            settings.model_presets.remove(id);
            if settings.embedding_model == id {
                settings.embedding_model.clear();
            }
            settings
        };
        self.change_settings(remove).map(drop)
    }

    /// Returns the facts about this computer, with the device of the loaded target.
    pub(crate) fn computer(&self) -> Computer {
        let EngineStatus { memory, device, .. } = self.engine.status();
        let has_gpu = memory.gpu_bytes > 0;
        let memory_bytes = match has_gpu {
            true => memory.gpu_free_bytes,
            // Memory of the loaded models counts as free, because they would be unloaded.
            false => free_memory() + memory.target_bytes + memory.draft_bytes,
        };
        let installed = self.library.installed().into_iter().map(|model| model.name).collect();
        let reading = self.speeds.bandwidth(&device.to_string());
        let (disk_bytes, downloading) = (self.library.free_disk(), self.downloading());
        Computer { memory_bytes, disk_bytes, has_gpu, reading, installed, downloading }
    }

    /// Stops the queued or running reply, check or arena after its current round.
    pub fn stop(&self) {
        self.slot.cancel();
    }

    /// Returns whether a reply, check or arena is queued or running, or a client of the local
    /// server waits for a reply.
    pub fn is_busy(&self) -> bool {
        self.slot.is_taken() || self.server_requests().iter().any(|request| request.elapsed_ms.is_none())
    }

    /// Saves what is not saved yet before the application ends. Stops a running reply.
    pub fn quit(&self) {
        self.stop();
        let _ = self.engine.finish_contexts().recv_timeout(LONGEST_WRITING);
        self.store_rest();
    }

    /// Cancels loading: the target returns to the loaded one, if there is one, and the draft to
    /// none.
    pub fn cancel_loading(&self) -> Result<()> {
        let status = self.engine.status();
        let Some(loading) = status.loading else { return Ok(()) };
        self.change_settings(|mut settings| {
            let default = || self.library.default_target().to_owned();
            let target = status.target.map_or_else(default, |target| target.id);
            if loading.draft {
                settings.drafts.insert(target, DRAFT_NONE.to_owned());
            } else {
                settings.target = target;
                settings.device = status.device_choice;
            }
            settings
        })
        .map(drop)
    }

    /// Tries every draft on a conversation, or on a sample; waits for the end.
    ///
    /// # Errors
    /// Returns `NoTarget`, `NotFound`, and errors of the chat template.
    pub fn advise(&self, conversation: Option<i64>, on_advice: OnAdvice) -> Result<()> {
        let messages = match conversation {
            Some(id) => self.seen(id)?,
            None => Vec::new(),
        };
        let outcome = self.engine.advise(messages, on_advice).recv();
        outcome.unwrap_or_else(|error| Err(CommandError::new(ErrorCode::Internal, error)))
    }

    pub fn stop_advice(&self) {
        self.engine.stop_advising();
    }

    /// Writes a file for the user, see [`crate::save`]; into the data folder if there is no other
    /// place.
    pub fn save_file(&self, name: &str, text: &str) -> Result<String> {
        Ok(save(&self.exports(), name, text)?.display().to_string())
    }

    /// Returns the folder for the user's files.
    pub(crate) fn exports(&self) -> PathBuf {
        downloads().unwrap_or_else(|| self.folders.root().join("exports"))
    }

    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        lock(&self.store)
    }
}

/// Returns whether a change concerns more than the page, the server and new conversations.
fn concerns_engine(before: &Settings, settings: &Settings) -> bool {
    let Settings { appearance, server, presets, hidden_presets, model_presets, embedding_model, .. } =
        before.clone();
    *before
        != Settings {
            appearance,
            server,
            presets,
            hidden_presets,
            model_presets,
            embedding_model,
            ..settings.clone()
        }
}

/// Returns the texts of earlier conversations that drafts may repeat.
pub(crate) fn earlier(store: &Store, settings: &Settings) -> Result<Vec<String>> {
    Ok(if settings.learn_from_earlier { store.latest_texts(MAX_EARLIER)? } else { Vec::new() })
}
