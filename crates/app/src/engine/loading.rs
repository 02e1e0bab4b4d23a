//! Loading the target and the draft that the settings name, and recovering when their device fails.

use std::ops::ControlFlow;
use std::sync::Arc;

use foretoken_engine::session::{Draft, DraftSource, Form, Remedy, Session, choose};
use foretoken_forward::device::{DeviceChoice, DeviceRemark, Opened, Role};
use foretoken_model::{Error, KvDtype, ModelConfig, ModelSource, VisionSource};
use foretoken_senses::vision::Tower;
use foretoken_server::PromptReader;

use super::local::{Local, Target, message, no_target};
use super::why::ready_to_speculate;
use crate::error::Result;
use crate::ipc::{
    CommandError, DRAFT_MTP, DRAFT_NGRAM, DRAFT_NONE, DraftRemark, EngineMessage, EnginePhase, ErrorCode,
    Loading, MTP_NAME, ModelEntry, NGRAM_NAME, OffReason, Settings, Why,
};
use crate::lock::lock;
use crate::models::servers::{self, is_remote};

/// Remark about a draft that failed on its GPU.
const DRAFT_FAILED: DeviceRemark = DeviceRemark::Failed { role: Role::Draft };

impl Local {
    /// Loads the chosen target on its device unless it is loaded there. The old one stays until the
    /// new one is ready, and if loading fails. Returns a remark about its device.
    pub(super) fn load_target(&mut self) -> Result<Option<EngineMessage>> {
        let (id, choice) = (self.settings.target.clone(), self.settings.device.clone());
        if is_remote(&id) {
            servers::chosen(&self.settings)?;
        }
        let has_dtype = |session: &Session, settings: &Settings| {
            let config = session.decoder.target().config();
            session.kv_dtype() == kv_dtype(settings, &id, config, session.device())
        };
        let loaded = self.target.as_ref().filter(|target| target.id == id);
        if loaded.is_some_and(|Target { session, .. }| {
            *session.device_choice() == choice && has_dtype(session, &self.settings)
        }) {
            return Ok(None);
        }
        let path = self.models.path(&id)?;
        let entry = self.entry(&id, &path);
        // Finding the faster device also takes time.
        self.show_loading(&entry);
        let source = ModelSource::open(&path)?;
        let wanted = match self.target.as_mut().filter(|target| target.id == id) {
            Some(Target { session, .. }) => {
                let elsewhere = session.move_target(&choice)?;
                elsewhere.or_else(|| (!has_dtype(session, &self.settings)).then(|| session.device().clone()))
            }
            None => Some(choose(&self.host, &source, Role::Target, &choice)),
        };
        let Some(wanted) = wanted else { return Ok(None) };
        let dtype = kv_dtype(&self.settings, &id, source.config()?, &wanted);
        let source = self.watched(source.with_kv_dtype(dtype), &entry.label, false);
        let mut session = Session::load_onto(
            &self.host,
            &source,
            Form::chat(&source, &self.host.renderer)?,
            choice,
            &wanted,
        )?;
        open_vision(&mut session);
        Ok(self.set_target(id, entry, session))
    }

    /// Gives the loaded target a vision file that has arrived since it was loaded.
    pub(super) fn load_vision(&mut self) {
        let Some(Target { id, session, entry, .. }) = &mut self.target else { return };
        let listed = self.listed.iter().find(|(model, listed)| model.id == *id && listed.sees);
        if session.sees() || listed.is_none() {
            return;
        }
        open_vision(session);
        entry.sees = session.sees();
        let (sees, thinking) = (entry.sees, self.settings.thinking);
        *lock(&self.prompts) = Some(PromptReader::of(session, thinking));
        self.status.update(|status| status.sees = sees);
    }

    fn show_loading(&self, entry: &ModelEntry) {
        self.status.update(|status| {
            status.phase = EnginePhase::Loading;
            status.message = None;
            status.loading = Some(Loading { label: entry.label.clone(), percent: 0, draft: false });
        });
    }

    /// Installs a loaded target; returns a remark about its device.
    fn set_target(&mut self, id: String, entry: ModelEntry, session: Session) -> Option<EngineMessage> {
        let reading_rate = self.models.speeds.reading(session.path(), &session.device().label.to_string());
        let (thinks, merges_system) = (session.form().thinks(), session.form().merges_system());
        // The draft may take as long again.
        self.status.update(|status| {
            (status.target, status.thinks, status.loading) = (Some(entry.clone()), thinks, None);
            status.merges_system = merges_system;
            // These belong to the previous target.
            (status.drafts, status.draft) = (Vec::new(), String::new());
            (status.reading_rate, status.read_context) = (reading_rate, None);
        });
        let fell_back = session.fell_back().cloned();
        self.target = Some(Target { id, entry, session, thinks, merges_system });
        self.choice = None;
        fell_back.map(|remark| EngineMessage::Device { remark })
    }

    /// Prepares the chosen draft and returns the state of drafting.
    pub(super) fn prepare_draft(&mut self) -> Why {
        let (id, choice) = (self.chosen_draft().to_owned(), self.draft_device());
        let Some(Target { session, .. }) = &mut self.target else {
            return Why::off(OffReason::NoModel);
        };
        let before = std::mem::take(&mut session.draft);
        if id == DRAFT_NONE {
            return Why::off(OffReason::NoDraft);
        }
        let before = Some(before).filter(|draft| draft.id == id && draft.drafting().is_some());
        let ready = before.and_then(|draft| session.in_place(draft, choice.as_ref()));
        if self.settings.speculation.is_off() {
            return Why::off(OffReason::Settings);
        }
        match ready.map_or_else(|| self.open_draft(&id, None), Ok) {
            Ok(draft) => self.attach_draft(draft),
            Err(error) if error.code == ErrorCode::Cancelled => Why::off(OffReason::Cancelled),
            Err(error) => self.fall_back(&error),
        }
    }

    /// Falls back to another draft because of `error`. Every failing one is excluded, and n-grams
    /// are always available.
    fn fall_back(&mut self, error: &CommandError) -> Why {
        self.refuse_draft(error);
        let mut why = self.prepare_draft();
        why.remark(DraftRemark::Unusable { detail: error.message.clone() });
        why
    }

    /// Attaches `draft` to the target.
    fn attach_draft(&mut self, draft: Draft) -> Why {
        let Some(Target { session, .. }) = &mut self.target else { return Why::off(OffReason::NoModel) };
        session.draft = draft;
        session.repeat(&self.earlier);
        session.prepare();
        let mut why = ready_to_speculate(&session.draft.label, &self.settings);
        // With a target on a GPU, a draft on the CPU needs a remark.
        let beside_gpu = session.draft.device().filter(|_| session.device().gpu.is_some());
        let on_cpu = beside_gpu.filter(|device| device.gpu.is_none());
        if let Some(remark) = on_cpu.and_then(|device| device.remark.clone()) {
            why.remark(DraftRemark::OnCpu { remark });
        }
        if let Some(detail) = session.draft.drafters.failure() {
            why.remark(DraftRemark::Failed { detail });
        }
        why
    }

    /// Returns the device choice of drafts; `None` for the target's device.
    pub(super) fn draft_device(&self) -> Option<DeviceChoice> {
        Some(self.settings.draft_device.clone()).filter(|choice| *choice != DeviceChoice::Auto)
    }

    /// Opens a draft on `device` or on the chosen one.
    pub(super) fn open_draft(&self, id: &str, device: Option<&Opened>) -> Result<Draft> {
        let session = &self.target.as_ref().ok_or_else(no_target)?.session;
        let (label, source) = if id == DRAFT_NGRAM {
            (NGRAM_NAME.to_owned(), DraftSource::WithoutModel)
        } else {
            let source = self.draft_source(id)?;
            let label = match id {
                DRAFT_MTP => MTP_NAME.to_owned(),
                id => self.entry(id, source.path()).label,
            };
            let source = self.watched(source, &label, true);
            (label, DraftSource::Model { source, stage: None })
        };
        let choice = self.draft_device();
        let draft = match device {
            Some(device) => session.open_draft_onto(&source, choice.as_ref(), device),
            None => session.open_draft(&source, choice.as_ref()),
        };
        let draft = draft.map_err(|error| match error {
            // The state of drafting already says that the draft is not used.
            Error::Incompatible(reason) => CommandError::new(ErrorCode::BadModel, reason),
            other => other.into(),
        })?;
        Ok(draft.named(id, &label))
    }

    /// Returns the source of the draft model or head with this id.
    pub(super) fn draft_source(&self, id: &str) -> Result<ModelSource> {
        Ok(match id {
            DRAFT_MTP => self.target.as_ref().ok_or_else(no_target)?.session.mtp_head()?,
            id => ModelSource::open(&self.models.path(id)?)?,
        })
    }

    /// Shows a model's loading progress in the status, and cancels it when another is chosen; a
    /// draft's also when another target is.
    fn watched(&self, source: ModelSource, label: &str, draft: bool) -> ModelSource {
        let (status, label) = (Arc::clone(&self.status), label.to_owned());
        let (chosen, mine) = (Arc::clone(&self.chosen), self.wanted.clone());
        source.watched_by(Arc::new(move |done, total| {
            let chosen = lock(&chosen).clone();
            if chosen.target != mine.target || draft && chosen.drafts != mine.drafts {
                return ControlFlow::Break(());
            }
            let percent = (done * 100 / total.max(1)) as u32;
            status.update(|status| status.loading = Some(Loading { label: label.clone(), percent, draft }));
            ControlFlow::Continue(())
        }))
    }

    /// Converts an error of the target; if its GPU failed, adds what will be done about it.
    pub(super) fn failed(&mut self, error: Error) -> CommandError {
        let remedy = self.target.as_ref().and_then(|target| target.session.remedy(&error));
        let mut shown = CommandError::from(error);
        if let Some(remedy) = remedy {
            shown.message = format!("{} {}", shown.message, remedy.announcement());
            self.remedy = Some(remedy);
        }
        shown
    }

    /// Reloads what failed on a GPU during a job.
    pub(super) fn recover(&mut self) {
        while let Some(remedy) = self.remedy.take() {
            let Some(Target { id, entry, session, .. }) = self.target.take() else { return };
            self.show_loading(&entry);
            let message = match session.recover(remedy, |source| self.watched(source, &entry.label, false)) {
                Ok(session) => self.set_target(id, entry, session).or_else(|| Some(reloaded(remedy))),
                Err(error) => message(error.into()),
            };
            self.announce(message);
        }
        self.recover_draft();
    }

    /// Moves a draft model that failed on a GPU to the CPU.
    fn recover_draft(&mut self) {
        let failed = |target: &&mut Target| target.session.draft.failed_on_gpu();
        let Some(target) = self.target.as_mut().filter(failed) else { return };
        let id = std::mem::take(&mut target.session.draft).id;
        let opened = self.open_draft(&id, Some(&Opened::cpu_because(DRAFT_FAILED)));
        match (opened, &mut self.target) {
            (Ok(draft), Some(target)) => target.session.draft = draft,
            (Err(error), _) => tracing::warn!("the draft could not be loaded again: {}", error.message),
            _ => {}
        }
        self.announce(Some(EngineMessage::Device { remark: DRAFT_FAILED }));
    }
}

/// Format of the KV cache that the settings choose for the target `id`, where model and device
/// allow it.
fn kv_dtype(settings: &Settings, id: &str, config: &ModelConfig, device: &Opened) -> KvDtype {
    let is_possible = device.gpu.is_none() && config.int8_kv_bytes().is_some();
    if is_possible { settings.kv_dtype(id) } else { KvDtype::F16 }
}

/// Returns the message about a target that was reloaded after its GPU failed.
fn reloaded(remedy: Remedy) -> EngineMessage {
    match remedy {
        Remedy::Shorter(tokens) => EngineMessage::ShorterContext { tokens: tokens as u32 },
        Remedy::Cpu => EngineMessage::Device { remark: DeviceRemark::Failed { role: Role::Target } },
    }
}

/// Gives a session the vision model beside its target, if there is one. One that cannot be used is
/// only reported: the target still answers texts.
fn open_vision(session: &mut Session) {
    let language = session.decoder.target().config();
    let Some(path) = VisionSource::beside(session.path(), language) else { return };
    match Tower::open(&path, session.tokenizer(), language) {
        Ok(tower) => session.set_vision(Some(Box::new(tower))),
        Err(error) => tracing::warn!("{} is not used: {error}", path.display()),
    }
}
