//! Models on this computer: loads those that the settings name and keeps the status up to date.
//! Loading and recovery, the choice of drafts and trials, replies, checks and the arena are in
//! files of their own.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use foretoken_engine::session::{Host, Remedy, Session};
use foretoken_engine::trace::Summary;
use foretoken_forward::Bandwidth;
use foretoken_forward::device::{DeviceChoice, Gpu, Opened};
use foretoken_library::STARTER;
use foretoken_model::sampling::ModelPenalties;
use foretoken_server::PromptReader;

use super::saved_contexts::SavedContexts;
use crate::error::Result;
use crate::ipc::{
    CommandError, EngineMessage, EnginePhase, ErrorCode, MemoryUse, ModelEntry, OffReason, PresetValues,
    Settings, Why,
};
use crate::lock::lock;
use crate::models::drafts::Candidate;
use crate::models::memory;
use crate::models::servers::{self, is_remote};
use crate::models::speeds::Speeds;
use crate::models::{InstalledModel, Models};
use crate::observable::Observable;

/// Number of bandwidth measurements, and their longest duration.
const BANDWIDTH_RUNS: usize = 5;
const BANDWIDTH_TIME: Duration = Duration::from_millis(80);

/// Models to load, and their devices. Loading stops when the choice changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Chosen {
    pub(super) target: (String, DeviceChoice),
    /// Chosen drafts, see [`Settings::drafts`].
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

/// A target ready to reply.
pub(super) struct Target {
    pub(super) id: String,
    pub(super) entry: ModelEntry,
    pub(super) session: Session,
    /// Default of the reasoning switch, see
    /// [`EngineStatus::thinks`](crate::ipc::EngineStatus::thinks).
    pub(super) thinks: Option<bool>,
    /// [`EngineStatus::merges_system`](crate::ipc::EngineStatus::merges_system).
    pub(super) merges_system: bool,
}

/// The draft of the loaded target.
pub(super) struct Choice {
    pub(super) id: String,
    /// Draft in the settings when it was chosen.
    pub(super) asked: Option<String>,
}

/// Models on this computer; see the module.
pub(super) struct Local {
    pub(super) host: Host,
    pub(super) models: Models,
    pub(super) settings: Settings,
    /// Values for the local server: the settings without any conversation's own values.
    pub(super) defaults: PresetValues,
    /// Revision of the settings.
    pub(super) revision: u64,
    /// Models in the settings, before a replacement for a missing one.
    pub(super) wanted: Chosen,
    /// Texts of earlier conversations that drafts may repeat.
    pub(super) earlier: Vec<String>,
    pub(super) target: Option<Target>,
    /// Draft of the current target; `None` before one was chosen.
    pub(super) choice: Option<Choice>,
    /// Recovery for a target that failed in the current job.
    pub(super) remedy: Option<Remedy>,
    /// Models on this computer; `listed_for` is the target that the candidates were compared with.
    pub(super) listed: Vec<(InstalledModel, ModelEntry)>,
    pub(super) listed_for: Option<String>,
    pub(super) candidates: Vec<Candidate>,
    /// Measured speed-up over plain decoding, by the ids of target and draft.
    pub(super) trials: HashMap<(String, String), f64>,
    /// Device at the last bandwidth measurement.
    measured: Option<String>,
    pub(super) chosen: Arc<Mutex<Chosen>>,
    pub(super) contexts: SavedContexts,
    pub(super) status: Arc<Observable>,
    /// Reader of prompts for the target, shared with threads that count tokens while the engine is
    /// busy.
    pub(super) prompts: Arc<Mutex<Option<PromptReader>>>,
}

impl Local {
    /// Creates an empty list without loaded models.
    pub(super) fn new(
        host: Host,
        models: Models,
        contexts: SavedContexts,
        chosen: Arc<Mutex<Chosen>>,
        status: Arc<Observable>,
    ) -> Self {
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
            contexts,
            status,
            prompts: Arc::default(),
        }
    }

    /// Drops the models after a panic, which has been logged: their caches may be inconsistent.
    /// Choosing a target loads it again.
    pub(super) fn unload(&mut self) {
        (self.target, self.choice, self.remedy) = (None, None, None);
        *lock(&self.prompts) = None;
        self.status.update(|status| {
            status.phase = EnginePhase::Failed;
            status.loading = None;
            status.target = None;
            status.why = Why::off(OffReason::NoModel);
            status.message = Some(EngineMessage::Failed);
        });
    }

    /// Reloads the models after a failure of the engine.
    pub(super) fn reload(&mut self) {
        self.apply_settings(self.settings.clone(), self.earlier.clone(), self.revision);
        if self.target.is_some() {
            self.status.update(|status| status.message = Some(EngineMessage::Reloaded));
        }
    }

    /// Applies `settings` (number `revision`) to all later replies, and loads the models they name.
    /// `earlier` are texts that drafts may repeat.
    pub(super) fn apply_settings(&mut self, settings: Settings, earlier: Vec<String>, revision: u64) {
        self.wanted = Chosen::by(&settings);
        let limit_changed = self.settings.context_disk_gb != settings.context_disk_gb || self.revision == 0;
        (self.settings, self.earlier, self.revision) = (settings, earlier, revision);
        if limit_changed {
            self.tidy_contexts();
        }
        // Listed before the target is loaded: if that fails, others can be chosen.
        self.list_targets();
        // A loaded local target stays for when it is chosen again.
        let loaded = if servers::entry(&self.settings).is_some() { Ok(None) } else { self.load_target() };
        let failed = loaded.as_ref().is_err_and(|error| error.code != ErrorCode::Cancelled);
        if failed {
            // The settings keep the choice: the model may be on a disk that returns later.
            for replacement in [self.models.default_target(), STARTER] {
                if self.target.is_none() || is_remote(&self.settings.target) {
                    self.settings.target = replacement.to_owned();
                    let _ = self.load_target();
                }
            }
        }
        self.announce(loaded.unwrap_or_else(message));
    }

    /// Lists the models on this computer again.
    pub(super) fn list_models(&mut self) {
        self.list_targets();
        self.load_vision();
        self.report_speeds();
        if servers::entry(&self.settings).is_none() {
            self.choose_draft();
        }
    }

    /// Prepares the draft, and updates the status with `message` and the loaded models.
    pub(super) fn announce(&mut self, message: Option<EngineMessage>) {
        if let Some(entry) = servers::entry(&self.settings) {
            return self.announce_remote(entry, message);
        }
        self.choose_draft();
        let why = self.prepare_draft();
        let budget = self.settings.text_budget();
        let mut is_resized = false;
        if let Some(Target { id, session, entry, .. }) = &mut self.target {
            session.keep_texts(budget);
            session.limit_context(self.settings.context_length(id));
            let context = session.context() as u32;
            is_resized = std::mem::replace(&mut entry.context, context) != context;
        }
        let target = self.target.as_ref();
        let session = target.map(|target| &target.session);
        let thinking = self.settings.thinking;
        *lock(&self.prompts) = session.map(|session| PromptReader::of(session, thinking));
        self.status.update(|status| {
            status.phase = if target.is_some() { EnginePhase::Ready } else { EnginePhase::Failed };
            status.loading = None;
            status.message = message;
            status.target = target.map(|target| target.entry.clone());
            status.read_context = status.read_context.filter(|_| !is_resized);
            status.thinks = target.and_then(|target| target.thinks);
            status.merges_system = target.is_some_and(|target| target.merges_system);
            status.sees = session.is_some_and(Session::sees);
            status.penalties = session.map(|session| session.decoder.penalties()).unwrap_or_default();
            status.device = session.map(|session| session.device().label.clone()).unwrap_or_default();
            status.device_choice = session.map_or(&self.settings.device, Session::device_choice).clone();
            let draft = session.and_then(|session| session.draft.device());
            status.draft_device = draft.map(|device| device.label.clone());
            status.device_remarks = session.iter().flat_map(|session| session.remarks()).cloned().collect();
            status.device_notes = session.iter().flat_map(|session| session.notes()).cloned().collect();
            status.why = why;
        });
        self.report_memory();
        self.report_speeds();
    }

    /// Updates the status for a target on a server: nothing is loaded or drafted here.
    fn announce_remote(&mut self, entry: ModelEntry, message: Option<EngineMessage>) {
        let (device, revision) = (servers::device(&self.settings), self.revision);
        let sees = servers::sees(&self.settings);
        *lock(&self.prompts) = None;
        self.status.update(|status| {
            (status.phase, status.loading, status.message) = (EnginePhase::Ready, None, message);
            (status.target, status.device) = (Some(entry), device);
            (status.thinks, status.merges_system, status.sees) = (None, false, sees);
            (status.reading_rate, status.read_context) = (None, None);
            status.penalties = ModelPenalties::default();
            (status.drafts, status.draft, status.draft_device) = (Vec::new(), String::new(), None);
            (status.device_remarks, status.device_notes) = (Vec::new(), Vec::new());
            status.why = Why::off(OffReason::Server);
            status.revision = revision;
        });
        self.report_memory();
    }

    pub(super) fn report_memory(&self) {
        let target = self.target.as_ref().map(|target| (target.session.device(), target.entry.memory_bytes));
        let draft = self.target.as_ref().map(|target| &target.session.draft);
        let draft = draft.and_then(|draft| Some((draft.device()?, self.draft_bytes(&draft.id))));
        // Memory of CUDA is the GPU's own.
        let here = |(opened, bytes): (&Opened, u64)| if opened.gpu == Some(Gpu::Cuda) { 0 } else { bytes };
        let gpu = [target, draft].into_iter().flatten().find_map(|(opened, _)| opened.memory());
        let contexts = self.target.as_ref().map_or(0, |target| target.session.text_bytes());
        let memory = memory::in_use(target.map_or(0, here), draft.map_or(0, here), gpu);
        let memory = MemoryUse { contexts_bytes: contexts as u64, ..memory };
        self.status.update(|status| status.memory = memory);
    }

    /// Updates the speed of every model on the target's device.
    pub(super) fn report_speeds(&mut self) {
        let Some(Target { entry, session, .. }) = &mut self.target else { return };
        let (device, speeds) = (&session.device().label.to_string(), &self.models.speeds);
        entry.speed = speeds.of(session.path(), entry.read_bytes, device);
        for (model, listed) in &mut self.listed {
            listed.speed = speeds.of(&model.path, listed.read_bytes, device);
        }
        let target = entry.clone();
        let targets = self.targets();
        let remote = is_remote(&self.settings.target);
        self.status.update(|status| {
            status.targets = targets;
            if !remote {
                status.target = Some(target);
            }
        });
    }

    /// Returns the listed models on this computer, followed by remote ones.
    fn targets(&self) -> Vec<ModelEntry> {
        let here = self.listed.iter().map(|(_, entry)| entry.clone());
        here.chain(servers::entries(&self.settings)).collect()
    }

    /// Records the target's speed in a reply.
    pub(super) fn keep_speed(&mut self, reply: &Summary) {
        let Some(Target { session, .. }) = &self.target else { return };
        let (speeds, device) = (&self.models.speeds, session.device().label.to_string());
        speeds.keep(session.path(), &device, reply);
        if let Some(rate) = self.status.get().reading_rate {
            speeds.keep_reading(session.path(), &device, rate);
        }
        self.report_speeds();
    }

    /// Measures the memory bandwidth with the target's weights, once per run of the program, while
    /// idle.
    pub(super) fn measure_bandwidth(&mut self) {
        let Some(Target { entry, session, .. }) = &mut self.target else { return };
        let device = session.device().label.to_string();
        let measured = self.measured.as_ref() == Some(&device);
        if measured || session.device().gpu.is_some() || !Speeds::is_significant(entry.read_bytes) {
            return;
        }
        self.measured = Some(device.clone());
        match Bandwidth::measure(session.decoder.target_mut(), BANDWIDTH_RUNS, BANDWIDTH_TIME) {
            Ok(Some(reading)) => self.models.speeds.keep_bandwidth(&reading, &device),
            Ok(None) => {}
            Err(error) => tracing::warn!("the memory bandwidth could not be measured: {error}"),
        }
        self.report_speeds();
    }

    /// Returns the bytes needed to run a compared draft; 0 for drafters without a model.
    pub(super) fn draft_bytes(&self, id: &str) -> u64 {
        let candidate = self.candidates.iter().find(|candidate| candidate.option.id == id);
        candidate.map_or(0, |candidate| candidate.needs)
    }

    /// Opens the models on this computer, unless they are listed already, and lists them before
    /// remote ones.
    fn list_targets(&mut self) {
        let installed = self.models.installed(&self.settings.added_models);
        if installed.iter().ne(self.listed.iter().map(|(model, _)| model)) {
            let entries = self.models.entries(&installed);
            (self.listed, self.listed_for) = (installed.into_iter().zip(entries).collect(), None);
        }
        let targets = self.targets();
        self.status.update(|status| status.targets = targets);
    }

    fn listed(&self, id: &str) -> Option<&ModelEntry> {
        self.listed.iter().map(|(_, entry)| entry).find(|entry| entry.id == id)
    }

    /// Returns the model's entry; opens its file if it is not listed.
    pub(super) fn entry(&self, id: &str, path: &Path) -> ModelEntry {
        let looked_up =
            || self.models.entry(InstalledModel { id: id.to_owned(), ..InstalledModel::added(path) });
        self.listed(id).cloned().unwrap_or_else(looked_up)
    }

    pub(super) fn loaded(&mut self) -> Result<&mut Target> {
        self.target.as_mut().ok_or_else(no_target)
    }
}

/// Returns the message of an error; none for a cancelled job, because newer settings follow.
pub(super) fn message(error: CommandError) -> Option<EngineMessage> {
    let CommandError { code, message: detail, .. } = error;
    (code != ErrorCode::Cancelled).then_some(EngineMessage::Error { code, detail })
}

pub(super) fn no_target() -> CommandError {
    let message = "No model is loaded. Wait, or choose one in the Library.";
    CommandError::new(ErrorCode::NoTarget, message)
}
