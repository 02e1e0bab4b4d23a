//! Loading target and draft, each onto its device, and what becomes of them when that device fails.

use std::ops::ControlFlow;
use std::sync::Arc;

use foretoken_engine::Error;
use foretoken_engine::decoder::Decoder;
use foretoken_engine::device::{DeviceChoice, Opened, Role, place};
use foretoken_engine::draft::{Drafter, Drafters, ModelDrafter, NgramDrafter, RecyclingDrafter};
use foretoken_engine::model::ModelSource;
use foretoken_engine::trace::DrafterKind;
use foretoken_library::Learned;

use super::recovery::Remedy;
use super::why::{off, ready_to_speculate};
use super::{Desk, Draft, Target, tokens, told};
use crate::error::Result;
use crate::ipc::{CommandError, DRAFT_NGRAM, DRAFT_NONE, EnginePhase, ErrorCode, Loading, Why};
use crate::lock::lock;

/// Said of a draft whose GPU failed.
const DRAFT_FAILED: &str = "The draft runs on the CPU: it failed on the GPU.";

impl Desk {
    /// Loads the chosen target unless it is loaded, and where it shall be. The old one stays until the new one
    /// is ready, and if the new one fails. Returns what is to be said about where it went.
    pub(super) fn settle_target(&mut self) -> Result<Option<String>> {
        let (id, chosen) = (self.settings.target.clone(), self.settings.device);
        let loaded = |target: &&mut Target| target.id == id;
        if self.target.as_mut().filter(loaded).is_some_and(|target| target.chosen == chosen) {
            return Ok(None);
        }
        let wanted = self.hardware.open(chosen);
        let in_place = |target: &&mut Target| !target.limited && target.opened.gpu == wanted.gpu;
        if let Some(target) = self.target.as_mut().filter(loaded).filter(in_place) {
            (target.chosen, target.opened.remark) = (chosen, wanted.remark);
            return Ok(None);
        }
        self.load_target(&id, chosen, &wanted, None)
    }

    /// Loads a target with a context of at most `limit` tokens.
    fn load_target(
        &mut self,
        id: &str,
        chosen: DeviceChoice,
        wanted: &Opened,
        limit: Option<usize>,
    ) -> Result<Option<String>> {
        let path = self.models.path(id)?;
        let mut entry = self.entry(id, &path);
        self.board.update(|status| {
            status.phase = EnginePhase::Loading;
            status.message = Some(format!("Loading {}", entry.label));
            status.loading = Some(Loading { label: entry.label.clone(), percent: 0, draft: false });
        });
        let source = ModelSource::open(&path)?.limited_to(limit.unwrap_or(usize::MAX));
        let source = self.watched(source, &entry.label, false);
        let template = source.template()?;
        let tokenizer = Arc::new(source.tokenizer()?);
        let (model, opened) = place(wanted, Role::Target, |opened| self.hardware.load(&source, opened))?;
        entry.context = model.config().context as u32;
        // The draft may take as long again.
        self.board.update(|status| {
            (status.target, status.loading) = (Some(entry.clone()), None);
            // Those of the target before.
            (status.drafts, status.draft) = (Vec::new(), String::new());
        });
        let moved = opened.remark.clone().filter(|_| opened.gpu != wanted.gpu);
        let (id, decoder, limited) = (id.to_owned(), Decoder::new(model, tokenizer), limit.is_some());
        self.target = Some(Target { id, entry, chosen, opened, limited, source, decoder, template });
        (self.draft, self.choice) = (None, None);
        Ok(moved)
    }

    /// Makes the chosen draft ready and says why replies will be drafted or not.
    pub(super) fn settle_draft(&mut self) -> Why {
        let id = self.chosen_draft().to_owned();
        let Some(target) = &self.target else {
            return off("no model is loaded");
        };
        if id == DRAFT_NONE {
            self.draft = None;
            return off("no draft is chosen");
        }
        let ready = self.draft.take().filter(|draft| draft.id == id);
        let ready = ready.and_then(|draft| self.in_place(draft, target));
        if self.settings.speculation.is_off() {
            return off("the draft length is 0");
        }
        match ready.map_or_else(|| self.open_draft(&id, target, &self.draft_device(target)), Ok) {
            Ok(draft) => self.employ(draft),
            Err(error) if error.code == ErrorCode::Cancelled => off(&error.message),
            Err(error) => self.do_without(&error),
        }
    }

    /// Makes another draft ready where the chosen one cannot be loaded for this reason. Every one that fails is
    /// off the list, on which n-grams always are.
    fn do_without(&mut self, error: &CommandError) -> Why {
        self.refuse_draft(error);
        let mut why = self.settle_draft();
        why.text = format!("{}. Not what was chosen: {}", why.text, error.message.trim_end_matches('.'));
        why
    }

    /// Lets `draft` draft for the target.
    fn employ(&mut self, mut draft: Draft) -> Why {
        let Some(target) = &mut self.target else { return off("no model is loaded") };
        draft.drafters.remember(&tokens(&self.earlier, target.decoder.tokenizer()));
        let known = draft.drafters.governor().is_some();
        if !known {
            let learned = draft.learned.as_ref().and_then(Learned::recall);
            draft.drafters.recall(learned.as_ref());
        }
        let measured = if known { Ok(()) } else { target.decoder.measure(&mut draft.drafters) };
        let mut why = ready_to_speculate(&draft.label, &self.settings);
        // Beside a target on a GPU it is not where one expects it.
        let elsewhere = draft.opened().filter(|opened| opened.gpu.is_none() && target.opened.gpu.is_some());
        if let Some(remark) = elsewhere.and_then(|opened| opened.remark.as_deref()) {
            why.text = format!("{}. {}", why.text, remark.trim_end_matches('.'));
        }
        self.draft = Some(draft);
        match measured {
            Ok(()) => why,
            Err(error) => off(&self.failed(error).message),
        }
    }

    /// The draft, unless it has to be loaded onto another device for what is chosen now.
    fn in_place(&self, mut draft: Draft, target: &Target) -> Option<Draft> {
        if let Some((chosen, opened)) = &mut draft.place
            && *chosen != self.settings.draft_device
        {
            let wanted = self.draft_device(target);
            if wanted.gpu != opened.gpu {
                return None;
            }
            (*chosen, opened.remark) = (self.settings.draft_device, wanted.remark);
        }
        Some(draft)
    }

    /// What shall compute for the draft of `target`: its own device, opened once, unless another is chosen.
    pub(super) fn draft_device(&self, target: &Target) -> Opened {
        let chosen = self.settings.draft_device;
        if chosen == DeviceChoice::Auto || target.opened.is(chosen) {
            return target.opened.clone();
        }
        self.hardware.open(chosen)
    }

    pub(super) fn open_draft(&self, id: &str, target: &Target, wanted: &Opened) -> Result<Draft> {
        let id = id.to_owned();
        if id == DRAFT_NGRAM {
            let (label, drafters) = ("n-gram".to_owned(), Drafters::new(without_model()));
            let learned = Some(self.learned(target, None));
            return Ok(Draft { id, label, drafters, learned, place: None });
        }
        let source = ModelSource::open(&self.models.path(&id)?)?;
        let label = self.entry(&id, source.path()).label;
        let source = self.watched(source, &label, true);
        let drafter = self.load_draft(&source, target, wanted);
        let (drafter, opened) = drafter.map_err(|error| match error {
            // The why line says already that the draft is not used.
            Error::Incompatible(reason) => CommandError::new(ErrorCode::BadModel, reason),
            other => other.into(),
        })?;
        let mut drafters = without_model();
        drafters.push(Box::new(drafter));
        let learned = Some(self.learned(target, Some((&source, &opened))));
        let place = Some((self.settings.draft_device, opened));
        Ok(Draft { id, label, drafters: Drafters::new(drafters), learned, place })
    }

    /// Where it is kept what was learned about this target and who drafts for it.
    fn learned(&self, target: &Target, draft: Option<(&ModelSource, &Opened)>) -> Learned {
        let models = std::iter::once(target.source.path()).chain(draft.map(|(source, _)| source.path()));
        let devices = std::iter::once(&target.opened).chain(draft.map(|(_, opened)| opened));
        Learned::about(&self.folders, models, devices.map(|opened| opened.label.as_str()))
    }

    pub(super) fn load_draft(
        &self,
        source: &ModelSource,
        target: &Target,
        wanted: &Opened,
    ) -> foretoken_engine::Result<(ModelDrafter, Opened)> {
        place(wanted, Role::Draft, |opened| {
            let load = |source: &ModelSource| self.hardware.load(source, opened);
            ModelDrafter::open_by(source, target.decoder.tokenizer(), load)
        })
    }

    /// A model whose loading is on the board, and ends when another is chosen; a draft's also when another
    /// target is.
    fn watched(&self, source: ModelSource, label: &str, draft: bool) -> ModelSource {
        let (board, label) = (Arc::clone(&self.board), label.to_owned());
        let (chosen, mine) = (Arc::clone(&self.chosen), self.wanted.clone());
        source.watched_by(Arc::new(move |done, total| {
            let chosen = lock(&chosen).clone();
            if chosen.target != mine.target || draft && chosen.drafts != mine.drafts {
                return ControlFlow::Break(());
            }
            let percent = (done * 100 / total.max(1)) as u32;
            board.update(|status| status.loading = Some(Loading { label: label.clone(), percent, draft }));
            ControlFlow::Continue(())
        }))
    }

    /// An error of the target, with what will be done about it where that was its GPU's.
    pub(super) fn failed(&mut self, error: Error) -> CommandError {
        let on_gpu = self.target.as_ref().filter(|target| target.opened.gpu.is_some());
        let remedy = on_gpu.and_then(|target| {
            let model = target.decoder.target();
            Remedy::of(&error, model.config().context, model.cached().len())
        });
        let mut told = CommandError::from(error);
        if let Some(remedy) = remedy {
            told.message = format!("{} {}", told.message, remedy.announcement());
            self.remedy = Some(remedy);
        }
        told
    }

    /// After a job: loads anew what failed in it on a GPU.
    pub(super) fn recover(&mut self) {
        while let Some(remedy) = self.remedy.take() {
            // What fills the GPU goes first.
            self.draft = None;
            let Some(Target { id, chosen, opened, .. }) = self.target.take() else { return };
            let wanted = match remedy {
                Remedy::Shorter(_) => opened,
                Remedy::Cpu => Opened::cpu_because(remedy.message()),
            };
            let message = match self.load_target(&id, chosen, &wanted, remedy.context()) {
                Ok(moved) => moved.or_else(|| Some(remedy.message())),
                Err(error) => told(error),
            };
            self.announce(message);
        }
        self.recover_draft();
    }

    /// Drafters that fail are left out of the reply; a draft model does better on the CPU from then on.
    fn recover_draft(&mut self) {
        let failed = |draft: &Draft| {
            let on_gpu = draft.opened().is_some_and(|opened| opened.gpu.is_some());
            on_gpu && draft.drafters.has_failed(DrafterKind::Model)
        };
        let Some(Draft { id, .. }) = self.draft.take_if(|draft| failed(draft)) else { return };
        let Some(target) = &self.target else { return };
        let cpu = Opened::cpu_because(DRAFT_FAILED.to_owned());
        match self.open_draft(&id, target, &cpu) {
            Ok(draft) => self.draft = Some(draft),
            Err(error) => tracing::warn!("the draft could not be loaded anew: {}", error.message),
        }
        self.announce(Some(DRAFT_FAILED.to_owned()));
    }
}

/// The drafters that need no model.
fn without_model() -> Vec<Box<dyn Drafter>> {
    vec![Box::<NgramDrafter>::default(), Box::<RecyclingDrafter>::default()]
}
