//! A loaded target, who drafts for it, and where each computes: what the window and the terminal reply
//! with. Loads models onto their devices, puts words into tokens, replies, keeps what was learned, and goes on after
//! a device failed. Prints nothing; which models there are, what is set and where files lie is for its clients.
//!
//! - [`Host`]: what a session needs of the computer: [`Hardware`], [`Learning`], a [`Renderer`]
//! - [`Form`]: from words to tokens
//! - [`choose`]: which device is the faster one
//! - [`Draft`]: who drafts; [`Remedy`]: what becomes of a target whose GPU failed

mod draft;
#[cfg(test)]
mod failures;
mod fastest;
mod hardware;
mod learning;
mod prompt;
mod remedy;
mod spellings;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use self::draft::{Draft, DraftSource};
use self::draft::{DraftDevice, without_model};
use self::fastest::beside;
pub use self::fastest::choose;
pub use self::hardware::{Hardware, ThisComputer};
pub use self::learning::{Learning, Pair, TokenTimes};
pub use self::prompt::{Form, whole_text};
pub use self::remedy::Remedy;
use crate::decoder::{Decoder, Progress, Reply, Request};
use crate::device::{DeviceChoice, Gpu, Opened, Role, place};
use crate::draft::{Drafter, Drafters, ModelDrafter, head_drafter};
use crate::error::{Error, Result};
use crate::model::{ChatMessage, ModelSource, Renderer, Special, Tokenizer};
use crate::token::TokenId;

/// What a session needs of the computer it runs on.
#[derive(Clone)]
pub struct Host {
    pub hardware: Arc<dyn Hardware>,
    /// `None` where nothing is remembered.
    pub learning: Option<Arc<dyn Learning>>,
    /// Who compiles and renders the chat templates of models: see [`Form::chat`].
    pub renderer: Arc<Renderer>,
}

/// See the module.
pub struct Session {
    host: Host,
    /// The target's file, and how it was read.
    path: PathBuf,
    eight_bits: bool,
    form: Form,
    /// What was chosen to compute for the target, and what does.
    choice: DeviceChoice,
    opened: Opened,
    /// Another device was to compute and could not take the target.
    fell_back: bool,
    /// The context is shorter than the model's own.
    limited: bool,
    pub decoder: Decoder,
    pub draft: Draft,
}

impl Session {
    /// Loads a target onto what was chosen, or onto the CPU where that cannot be had; nobody drafts for it yet.
    /// `form` is what its prompts take.
    ///
    /// # Errors
    /// Those of loading a model.
    pub fn load(host: &Host, source: &ModelSource, form: Form, choice: DeviceChoice) -> Result<Self> {
        let wanted = choose(host, source, Role::Target, &choice);
        Self::load_onto(host, source, form, choice, &wanted)
    }

    /// The same, onto a device that is open.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_onto(
        host: &Host,
        source: &ModelSource,
        form: Form,
        choice: DeviceChoice,
        wanted: &Opened,
    ) -> Result<Self> {
        source.check_target()?;
        let tokenizer = Arc::new(source.tokenizer()?);
        let (model, opened) = place(wanted, Role::Target, |opened| host.hardware.load(source, opened))?;
        Ok(Self {
            host: host.clone(),
            path: source.path().to_owned(),
            eight_bits: source.eight_bits(),
            form,
            choice,
            fell_back: opened.gpu != wanted.gpu,
            opened,
            limited: false,
            decoder: Decoder::new(model, tokenizer).with_penalties(source.penalties()),
            draft: Draft::default(),
        })
    }

    /// The target's file or folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What its prompts take.
    pub fn form(&self) -> &Form {
        &self.form
    }

    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        self.decoder.tokenizer()
    }

    /// Tokens that prompt and reply may have together.
    pub fn context(&self) -> usize {
        self.decoder.target().config().context
    }

    /// What was chosen to compute for the target.
    pub fn device_choice(&self) -> &DeviceChoice {
        &self.choice
    }

    /// What computes for the target.
    pub fn device(&self) -> &Opened {
        &self.opened
    }

    /// Why the target is on the CPU, where another device was wanted when it was loaded.
    pub fn fell_back(&self) -> Option<&str> {
        self.opened.remark.as_deref().filter(|_| self.fell_back)
    }

    /// "CPU, 8 threads, AVX-512", and the draft model's device where it is another.
    pub fn devices(&self) -> String {
        let target = &self.opened.label;
        match self.draft.device().map(|device| &device.label) {
            Some(draft) if draft != target => format!("{target}; the draft on {draft}"),
            _ => target.clone(),
        }
    }

    /// Why something else computes than what was chosen, each in sentences; one for both in the same place.
    pub fn remarks(&self) -> impl Iterator<Item = &str> {
        let target = self.opened.remark.as_deref();
        let draft = self.draft.device().and_then(|device| device.remark.as_deref());
        target.into_iter().chain(draft.filter(|draft| Some(*draft) != target))
    }

    /// What was measured of devices, and which one follows from it, each in a sentence.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        let draft = self.draft.device().and_then(|device| device.note.as_deref());
        let target = self.opened.note.as_deref();
        target.into_iter().chain(draft.filter(|draft| Some(*draft) != target))
    }

    /// Makes `choice` what is chosen for the target, if that is where it is already. Otherwise the target has to be
    /// loaded again, onto the device that is returned.
    ///
    /// # Errors
    /// Those of opening the target's file.
    pub fn move_target(&mut self, choice: &DeviceChoice) -> Result<Option<Opened>> {
        if self.choice == *choice {
            return Ok(None);
        }
        let source = ModelSource::open(&self.path)?.in_eight_bits(self.eight_bits);
        let wanted = choose(&self.host, &source, Role::Target, choice);
        if self.limited || !self.opened.is_same(&wanted) {
            return Ok(Some(wanted));
        }
        (self.choice, self.opened.remark, self.opened.note) = (choice.clone(), wanted.remark, wanted.note);
        Ok(None)
    }

    /// What shall compute for a draft model: the target's own device, opened once, unless another is chosen.
    pub fn draft_device(&self, choice: Option<&DeviceChoice>) -> Opened {
        match choice {
            Some(choice) if !self.opened.is(choice) => self.host.hardware.open(choice),
            _ => self.opened.clone(),
        }
    }

    /// The same for this model: beside a target on a GPU of any make it is the CPU, where that is faster.
    fn draft_device_for(&self, source: &DraftSource, choice: Option<&DeviceChoice>) -> Opened {
        let DraftSource::Model { source, .. } = source else { return self.draft_device(choice) };
        match choice {
            Some(choice) if !self.opened.is(choice) => choose(&self.host, source, Role::Draft, choice),
            None if self.opened.gpu == Some(Gpu::Any) && !source.is_draft_head() => {
                beside(&self.host, source, &self.opened)
            }
            _ => self.opened.clone(),
        }
    }

    /// The draft, unless its model has to be loaded onto another device for what is chosen now.
    pub fn in_place(&self, mut draft: Draft, choice: Option<&DeviceChoice>) -> Option<Draft> {
        if let Some(device) = draft.device.as_mut().filter(|device| device.choice.as_ref() != choice) {
            let wanted = self.draft_device(choice);
            if !wanted.is_same(&device.opened) {
                return None;
            }
            device.choice = choice.cloned();
            (device.opened.remark, device.opened.note) = (wanted.remark, wanted.note);
        }
        Some(draft)
    }

    /// The draft head that the target has in its own files, to be [opened](Self::open_draft) as others are; see
    /// [`ModelSource::mtp_head`].
    ///
    /// # Errors
    /// As there.
    pub fn mtp_head(&self) -> Result<ModelSource> {
        ModelSource::open(&self.path)?.in_eight_bits(self.eight_bits).mtp_head()
    }

    /// Opens who shall draft; a model is loaded onto what was chosen for drafts, `None` for the target's device.
    /// Nothing changes for the session before it is its [`Self::draft`].
    ///
    /// # Errors
    /// Those of loading a model, `Error::Incompatible` for one whose vocabulary shares too little with the
    /// target's, and `Error::OtherTarget` for a draft head that was made for another.
    pub fn open_draft(&self, source: &DraftSource, choice: Option<&DeviceChoice>) -> Result<Draft> {
        self.open_draft_onto(source, choice, &self.draft_device_for(source, choice))
    }

    /// The same, onto a device that is open.
    ///
    /// # Errors
    /// As [`Self::open_draft`].
    pub fn open_draft_onto(
        &self,
        source: &DraftSource,
        choice: Option<&DeviceChoice>,
        wanted: &Opened,
    ) -> Result<Draft> {
        let mut drafters = without_model();
        let mut pair = Pair { models: vec![self.path.clone()], devices: vec![self.opened.label.clone()] };
        let mut device = None;
        if let DraftSource::Model { source, stage } = source {
            pair.models.push(source.path().to_owned());
            let (drafter, opened) = match stage.as_ref().filter(|_| !source.is_draft_head()) {
                None => self.load_drafter(source, wanted)?,
                Some(stage) => {
                    let (model, opened) = self.load_draft(source, wanted)?;
                    let model = model.drafted_by(self.load_draft(stage, &opened)?.0);
                    pair.models.push(stage.path().to_owned());
                    (Box::new(model) as Box<dyn Drafter>, opened)
                }
            };
            drafters.insert(0, drafter);
            pair.devices.push(opened.label.clone());
            device = Some(DraftDevice { choice: choice.cloned(), opened });
        }
        if self.eight_bits {
            pair.devices.push("eight bits".to_owned());
        }
        Ok(Draft { drafters: Drafters::new(drafters), device, pair, ..Draft::default() })
    }

    /// Loads a model that can draft for the target, or a draft head that was made for it; returns where it is, too.
    ///
    /// # Errors
    /// As [`Self::open_draft`].
    pub fn load_drafter(&self, source: &ModelSource, wanted: &Opened) -> Result<(Box<dyn Drafter>, Opened)> {
        if source.is_draft_head() {
            return self.load_head(source, wanted);
        }
        let (model, opened) = self.load_draft(source, wanted)?;
        Ok((Box::new(model), opened))
    }

    /// Loads a model that can draft for the target; returns where it is, too.
    ///
    /// # Errors
    /// As [`Self::open_draft`].
    pub fn load_draft(&self, source: &ModelSource, wanted: &Opened) -> Result<(ModelDrafter, Opened)> {
        place(wanted, Role::Draft, |opened| {
            let load = |source: &ModelSource| self.host.hardware.load(source, opened);
            ModelDrafter::open_by(source, self.tokenizer(), load)
        })
    }

    fn load_head(&self, source: &ModelSource, wanted: &Opened) -> Result<(Box<dyn Drafter>, Opened)> {
        let source = source.for_target(&ModelSource::open(&self.path)?)?;
        let (model, opened) = place(wanted, Role::Draft, |opened| self.host.hardware.load(&source, opened))?;
        Ok((head_drafter(&source, model, self.tokenizer().ends())?, opened))
    }

    /// Lets the drafters repeat texts of other conversations, in place of those before.
    pub fn repeat(&mut self, texts: &[String]) {
        let tokenizer = self.decoder.tokenizer();
        // Those that the tokenizer can read.
        let texts = texts.iter().filter_map(|text| tokenizer.encode(text, Special::Ignore).ok());
        self.draft.drafters.remember(&texts.collect::<Vec<_>>());
    }

    /// Lets those who draft go on from what was learned about them before; where nothing was, measures what they
    /// cost. Nothing happens where nobody drafts, or that is known already.
    ///
    /// # Errors
    /// When the target fails.
    pub fn prepare(&mut self) -> Result<()> {
        let Draft { drafters, pair, remembered, .. } = &mut self.draft;
        *remembered = true;
        if drafters.is_empty() || drafters.governor().is_some() {
            return Ok(());
        }
        let known = self.host.learning.as_ref().and_then(|learning| learning.recall(pair));
        drafters.recall(known.as_ref());
        self.decoder.measure(drafters)
    }

    /// Keeps what was learned about those who draft, for the next start, where [`Self::prepare`] was called for them.
    pub fn keep_learned(&self) {
        let Draft { drafters, pair, remembered, .. } = &self.draft;
        let learning = self.host.learning.as_ref().filter(|_| *remembered);
        if let Some((learning, knowledge)) = learning.zip(drafters.knowledge()) {
            // Worth no error.
            if let Err(error) = learning.keep(pair, &knowledge) {
                tracing::warn!("what was learned about the models is not kept: {error}");
            }
        }
    }

    /// The tokens of what a person said, as the first message of a conversation or as it is.
    ///
    /// # Errors
    /// Those of [`Form::said`] and [`Form::tokens`].
    pub fn text(&self, text: &str) -> Result<Vec<TokenId>> {
        self.conversation(&[self.form.said(text)?], None)
    }

    /// The tokens of a conversation up to where the next reply begins; `thinking` as for [`Form::conversation`].
    ///
    /// # Errors
    /// Those of [`Form::tokens`].
    pub fn conversation(&self, messages: &[ChatMessage], thinking: Option<bool>) -> Result<Vec<TokenId>> {
        self.form.tokens(self.tokenizer(), messages, thinking)
    }

    /// Writes a reply, see [`Decoder::reply`].
    ///
    /// # Errors
    /// As there. [`Self::remedy`] says what can be done about them.
    pub fn reply(
        &mut self,
        request: &Request,
        on_progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Reply> {
        self.decoder.reply(request, &mut self.draft.drafters, on_progress)
    }

    /// What is to be done about an error of the target; `None` for one that is not its GPU's.
    pub fn remedy(&self, error: &Error) -> Option<Remedy> {
        self.opened.gpu?;
        let model = self.decoder.target();
        Remedy::of(error, model.config().context, model.cached().len())
    }

    /// Loads the target again after its GPU failed, as `remedy` says; nobody drafts for it then. `watch` gets the
    /// opened model before it is loaded.
    ///
    /// # Errors
    /// As [`Self::load`]; the session is gone then.
    pub fn recover(self, remedy: Remedy, watch: impl FnOnce(ModelSource) -> ModelSource) -> Result<Self> {
        let Self { host, path, eight_bits, form, choice, opened, decoder, draft, .. } = self;
        // What fills the GPU goes first.
        drop((decoder, draft));
        let wanted = match remedy {
            Remedy::Shorter(_) => opened,
            Remedy::Cpu => Opened::cpu_because(remedy.message()),
        };
        let source = ModelSource::open(&path)?.in_eight_bits(eight_bits);
        let source = watch(source.limited_to(remedy.context().unwrap_or(usize::MAX)));
        let session = Self::load_onto(&host, &source, form, choice, &wanted)?;
        Ok(Self { limited: remedy.context().is_some(), ..session })
    }
}
