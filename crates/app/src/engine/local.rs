//! The models on this computer: keeps those loaded that the settings name, and the board up to date. Loading and
//! going on after a device failed, choosing drafts and trials of them, replies, checks of them and the arena are in
//! files of their own.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use foretoken_engine::device::{DeviceChoice, Gpu, Opened};
use foretoken_engine::forward::Bandwidth;
use foretoken_engine::model::Tokenizer;
use foretoken_engine::sampling::ModelPenalties;
use foretoken_engine::session::{Host, Remedy, Session};
use foretoken_engine::trace::Summary;
use foretoken_library::STARTER;

use super::why::off;
use crate::board::Board;
use crate::drafts::Candidate;
use crate::error::Result;
use crate::ipc::{CommandError, EnginePhase, ErrorCode, ModelEntry, PresetValues, Settings};
use crate::lock::lock;
use crate::memory;
use crate::models::{InstalledModel, Models};
use crate::servers::{self, is_remote};
use crate::speeds::Speeds;

/// How often weights are read to measure how fast that is, and how long at most.
const TURNS: usize = 5;
const MEASURING: Duration = Duration::from_millis(80);

/// What was asked to be loaded, and where. What is being loaded and is no longer wanted is given up.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Chosen {
    pub(super) target: (String, DeviceChoice),
    /// See [`Settings::drafts`].
    pub(super) drafts: (BTreeMap<String, String>, DeviceChoice),
}

impl Chosen {
    pub(super) fn by(settings: &Settings) -> Self {
        Self {
            target: (settings.target.clone(), settings.device.clone()),
            drafts: (settings.drafts.clone(), settings.draft_device.clone()),
        }
    }
}

/// A target ready to reply, and who drafts for it.
pub(super) struct Target {
    pub(super) id: String,
    pub(super) entry: ModelEntry,
    pub(super) session: Session,
    /// See [`EngineStatus::thinks`](crate::ipc::EngineStatus::thinks).
    pub(super) thinks: Option<bool>,
}

/// Who drafts for the loaded target.
pub(super) struct Choice {
    pub(super) id: String,
    /// What had been asked for when it was chosen.
    pub(super) asked: Option<String>,
}

/// See the module.
pub(super) struct Local {
    pub(super) host: Host,
    pub(super) models: Models,
    pub(super) settings: Settings,
    /// What the local server writes with: what these would be where nothing is chosen for a conversation.
    pub(super) defaults: PresetValues,
    /// The number of these.
    pub(super) revision: u64,
    /// What these named before anything took a missing model's place.
    pub(super) wanted: Chosen,
    /// Texts of earlier conversations that drafts may repeat.
    pub(super) earlier: Vec<String>,
    pub(super) target: Option<Target>,
    /// For the present target; `None` before one was chosen.
    pub(super) choice: Option<Choice>,
    /// What is to be done about a target that failed in the present job.
    pub(super) remedy: Option<Remedy>,
    /// The models on this computer, and the id of the target that the candidates were compared with.
    pub(super) listed: Vec<(InstalledModel, ModelEntry)>,
    pub(super) listed_for: Option<String>,
    pub(super) candidates: Vec<Candidate>,
    /// Tokens per second over those without drafts, by the ids of target and draft, where that was tried.
    pub(super) trials: HashMap<(String, String), f64>,
    /// What computed when it was last measured how fast this computer reads weights.
    measured: Option<String>,
    pub(super) chosen: Arc<Mutex<Chosen>>,
    pub(super) board: Arc<Board>,
    /// That of the loaded target, for who counts tokens meanwhile.
    pub(super) tokenizer: Arc<Mutex<Option<Arc<Tokenizer>>>>,
}

impl Local {
    /// Has no model loaded before settings name one.
    pub(super) fn new(host: Host, models: Models, chosen: Arc<Mutex<Chosen>>, board: Arc<Board>) -> Self {
        Self {
            host,
            models,
            settings: Settings::default(),
            defaults: PresetValues::default(),
            revision: 0,
            wanted: Chosen::default(),
            earlier: Vec::new(),
            target: None,
            choice: None,
            remedy: None,
            listed: Vec::new(),
            listed_for: None,
            candidates: Vec::new(),
            trials: HashMap::new(),
            measured: None,
            chosen,
            board,
            tokenizer: Arc::default(),
        }
    }

    /// After a panic, which has been logged, nothing is known about the models' caches. Choosing a target loads it
    /// again.
    pub(super) fn give_up(&mut self) {
        (self.target, self.choice, self.remedy) = (None, None, None);
        *lock(&self.tokenizer) = None;
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

    /// Loads what was loaded before the engine failed.
    pub(super) fn load_again(&mut self) {
        self.apply_settings(self.settings.clone(), self.earlier.clone(), self.revision);
        if self.target.is_some() {
            let message = "The engine failed, and the model was loaded again. The log has the reason.";
            self.board.update(|status| status.message = Some(message.to_owned()));
        }
    }

    /// Makes these, which have the number `revision`, the settings of every later reply, and loads what they name.
    /// `earlier` are texts that drafts may repeat.
    pub(super) fn apply_settings(&mut self, settings: Settings, earlier: Vec<String>, revision: u64) {
        self.wanted = Chosen::by(&settings);
        (self.settings, self.earlier, self.revision) = (settings, earlier, revision);
        // Before the target is loaded: if that fails, others can be chosen.
        self.list_targets();
        // What is loaded stays for when it is chosen again.
        let loaded = if servers::entry(&self.settings).is_some() { Ok(None) } else { self.load_target() };
        let failed = loaded.as_ref().is_err_and(|error| error.code != ErrorCode::Cancelled);
        if failed {
            // The choice stays what it is: the model may be on a disk that is back the next time.
            for replacement in [self.models.default_target(), STARTER] {
                if self.target.is_none() || is_remote(&self.settings.target) {
                    self.settings.target = replacement.to_owned();
                    let _ = self.load_target();
                }
            }
        }
        self.announce(loaded.unwrap_or_else(message));
    }

    /// Looks for models on this computer again.
    pub(super) fn list_models(&mut self) {
        self.list_targets();
        self.report_speeds();
        if servers::entry(&self.settings).is_none() {
            self.choose_draft();
        }
    }

    /// Makes the draft ready, and says how things are: `message`, and what is loaded.
    pub(super) fn announce(&mut self, message: Option<String>) {
        if let Some(entry) = servers::entry(&self.settings) {
            return self.announce_elsewhere(entry, message);
        }
        self.choose_draft();
        let why = self.prepare_draft();
        let target = self.target.as_ref();
        let session = target.map(|target| &target.session);
        *lock(&self.tokenizer) = session.map(|session| Arc::clone(session.tokenizer()));
        self.board.update(|status| {
            status.phase = if target.is_some() { EnginePhase::Ready } else { EnginePhase::Failed };
            status.loading = None;
            status.message = message;
            let loaded = target.map(|target| target.entry.clone());
            if status.target != loaded {
                status.reading_rate = None;
            }
            status.target = loaded;
            status.thinks = target.and_then(|target| target.thinks);
            status.penalties = session.map(|session| session.decoder.penalties()).unwrap_or_default();
            status.device = session.map_or_else(String::new, |session| session.device().label.clone());
            status.device_choice = session.map_or(&self.settings.device, Session::device_choice).clone();
            let draft = session.and_then(|session| session.draft.device());
            status.draft_device = draft.map(|device| device.label.clone());
            status.device_remarks =
                session.iter().flat_map(|session| session.remarks()).map(str::to_owned).collect();
            status.device_notes =
                session.iter().flat_map(|session| session.notes()).map(str::to_owned).collect();
            status.why = why;
        });
        self.report_memory();
        self.report_speeds();
    }

    /// The same of a target on a server: nothing is loaded for it, and nothing drafted here.
    fn announce_elsewhere(&mut self, entry: ModelEntry, message: Option<String>) {
        let (device, revision) = (servers::device(&self.settings), self.revision);
        *lock(&self.tokenizer) = None;
        self.board.update(|status| {
            (status.phase, status.loading, status.message) = (EnginePhase::Ready, None, message);
            (status.target, status.device) = (Some(entry), device);
            (status.thinks, status.reading_rate) = (None, None);
            status.penalties = ModelPenalties::default();
            (status.drafts, status.draft, status.draft_device) = (Vec::new(), String::new(), None);
            (status.device_remarks, status.device_notes) = (Vec::new(), Vec::new());
            status.why = off("drafts are made by the server, if it is set up to");
            status.revision = revision;
        });
        self.report_memory();
    }

    pub(super) fn report_memory(&self) {
        let target = self.target.as_ref().map(|target| (target.session.device(), target.entry.memory_bytes));
        let draft = self.target.as_ref().map(|target| &target.session.draft);
        let draft = draft.and_then(|draft| Some((draft.device()?, self.draft_bytes(&draft.id))));
        // What CUDA computes with is in the GPU's own memory.
        let here = |(opened, bytes): (&Opened, u64)| if opened.gpu == Some(Gpu::Cuda) { 0 } else { bytes };
        let gpu = [target, draft].into_iter().flatten().find_map(|(opened, _)| opened.memory());
        let memory = memory::in_use(target.map_or(0, here), draft.map_or(0, here), gpu);
        self.board.update(|status| status.memory = memory);
    }

    /// Says of every model how fast it is on what computes for the target.
    pub(super) fn report_speeds(&mut self) {
        let Some(Target { entry, session, .. }) = &mut self.target else { return };
        let (device, speeds) = (&session.device().label, &self.models.speeds);
        entry.speed = speeds.of(session.path(), entry.read_bytes, device);
        for (model, listed) in &mut self.listed {
            listed.speed = speeds.of(&model.path, listed.read_bytes, device);
        }
        let target = entry.clone();
        let targets = self.targets();
        let elsewhere = is_remote(&self.settings.target);
        self.board.update(|status| {
            status.targets = targets;
            if !elsewhere {
                status.target = Some(target);
            }
        });
    }

    /// The models on this computer as they are listed, and after them those elsewhere.
    fn targets(&self) -> Vec<ModelEntry> {
        let here = self.listed.iter().map(|(_, entry)| entry.clone());
        here.chain(servers::entries(&self.settings)).collect()
    }

    /// Keeps how fast the target wrote a reply.
    pub(super) fn keep_speed(&mut self, reply: &Summary) {
        let Some(Target { session, .. }) = &self.target else { return };
        self.models.speeds.keep(session.path(), &session.device().label, reply);
        self.report_speeds();
    }

    /// Measures how fast this computer reads weights, once in a run of the program, by those of the target: while there
    /// is nothing else to do.
    pub(super) fn measure_reading(&mut self) {
        let Some(Target { entry, session, .. }) = &mut self.target else { return };
        let device = session.device().label.clone();
        let measured = self.measured.as_ref() == Some(&device);
        if measured || session.device().gpu.is_some() || !Speeds::tells(entry.read_bytes) {
            return;
        }
        self.measured = Some(device.clone());
        match Bandwidth::measure(session.decoder.target_mut(), TURNS, MEASURING) {
            Ok(Some(reading)) => self.models.speeds.keep_reading(&reading, &device),
            Ok(None) => {}
            Err(error) => tracing::warn!("how fast weights are read could not be measured: {error}"),
        }
        self.report_speeds();
    }

    /// What running a draft takes that was compared with the target; 0 for drafters that are no model.
    pub(super) fn draft_bytes(&self, id: &str) -> u64 {
        let candidate = self.candidates.iter().find(|candidate| candidate.option.id == id);
        candidate.map_or(0, |candidate| candidate.needs)
    }

    /// Opens the models on this computer, unless they are those that are listed, and lists them before those elsewhere.
    fn list_targets(&mut self) {
        let installed = self.models.installed(&self.settings.added_models);
        if installed.iter().ne(self.listed.iter().map(|(model, _)| model)) {
            let entries = self.models.entries(&installed);
            (self.listed, self.listed_for) = (installed.into_iter().zip(entries).collect(), None);
        }
        let targets = self.targets();
        self.board.update(|status| status.targets = targets);
    }

    fn listed(&self, id: &str) -> Option<&ModelEntry> {
        self.listed.iter().map(|(_, entry)| entry).find(|entry| entry.id == id)
    }

    /// The model as it is listed; one that is not, by a look into its file.
    pub(super) fn entry(&self, id: &str, path: &Path) -> ModelEntry {
        let looked_up = || InstalledModel { id: id.to_owned(), ..InstalledModel::added(path) }.entry();
        self.listed(id).cloned().unwrap_or_else(looked_up)
    }

    pub(super) fn loaded(&mut self) -> Result<&mut Target> {
        self.target.as_mut().ok_or_else(no_target)
    }
}

/// What is said of an error. What nobody wants any more is no problem: other settings are on their way.
pub(super) fn message(error: CommandError) -> Option<String> {
    (error.code != ErrorCode::Cancelled).then_some(error.message)
}

pub(super) fn no_target() -> CommandError {
    let message = "No model is loaded: wait, or choose one in the Library.";
    CommandError::new(ErrorCode::NoTarget, message)
}
