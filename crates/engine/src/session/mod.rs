//! Session: a loaded target, its drafters and their devices. Window and terminal reply through it.
//! Loads models onto devices, tokenizes prompts, replies, saves statistics, and recovers from
//! device failures. Prints nothing; the client decides on models, settings and files.
//!
//! - [`Host`]: services of the computer: [`Hardware`], [`Learning`], a [`Renderer`]
//! - [`Form`]: from messages to tokens; [`ToolUse`]: tools of a reply
//! - [`choose`]: the fastest device
//! - [`TextBudget`]: memory for texts put aside, to which the session returns
//! - [`Draft`]: the drafters; [`Remedy`]: recovery of a target whose GPU failed

mod draft;
#[cfg(test)]
mod failures;
mod fastest;
mod hardware;
mod learning;
mod prompt;
mod remedy;
mod saved_pictures;
mod saved_text;
mod shelf;
mod spellings;
#[cfg(test)]
mod tests;
mod tool_use;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use self::draft::{Draft, DraftSource};
use self::draft::{DraftDevice, next_number, without_model};
use self::fastest::beside;
pub use self::fastest::choose;
pub use self::hardware::{Hardware, ThisComputer};
pub use self::learning::{Learning, Pair, TokenTimes};
pub use self::prompt::{Form, PromptEncoder, estimated_tokens, whole_text};
pub use self::remedy::Remedy;
use self::saved_pictures::SavedPictures;
pub use self::saved_text::{ContextFiles, Hash, TextToSave};
use self::saved_text::{Reader, identity};
pub use self::shelf::TextBudget;
use self::shelf::{Loaded, Shelf};
pub use self::tool_use::{ToolChoice, ToolUse};
use foretoken_forward::Media;
use foretoken_forward::device::{
    DeviceChoice, DeviceFact, DeviceNote, DeviceRemark, Gpu, Opened, Role, place,
};
use foretoken_model::error::{Error, Result};
use foretoken_model::token::TokenId;
use foretoken_model::{
    Conversation, KvDtype, ModelSource, PlacedPicture, Renderer, Special, Thinking, Tokenizer,
};

use crate::constraint::Opening;
use crate::decoder::{Decoder, Progress, Reply, Request};
use crate::draft::{Drafter, Drafters, ModelDrafter, caught, head_drafter};
use crate::governor::{CostClass, RowRatios};
use crate::owner::Owner;
use crate::vision::{PictureIds, VisionModel, sees_nothing};

/// Services of the computer that a session uses.
#[derive(Clone)]
pub struct Host {
    pub hardware: Arc<dyn Hardware>,
    /// Saved statistics; `None` to save nothing.
    pub learning: Option<Arc<dyn Learning>>,
    /// Compiles and renders chat templates: see [`Form::chat`].
    pub renderer: Arc<Renderer>,
}

/// See the module.
pub struct Session {
    host: Host,
    /// File of the target, whether it was converted to eight bits, and the format of its KV cache.
    path: PathBuf,
    eight_bits: bool,
    kv_dtype: KvDtype,
    form: Arc<Form>,
    /// Chosen device of the target, and the one in use.
    choice: DeviceChoice,
    opened: Opened,
    /// True if the target did not fit the wanted device.
    fell_back: bool,
    /// True if the context was loaded shorter than the model's own.
    limited: bool,
    /// Limit of the context in tokens, if one was set.
    context_limit: Option<usize>,
    /// Class of the target among models whose passes are assumed to cost alike.
    class: CostClass,
    /// Hash of the target's files and of the program.
    identity: Hash,
    /// Texts put aside, and memory for them.
    shelf: Shelf,
    budget: TextBudget,
    /// Texts of other conversations that drafts of the person's replies may repeat.
    earlier: Vec<Vec<TokenId>>,
    /// Vision model of the target, and the embeddings of pictures.
    vision: Option<Box<dyn VisionModel>>,
    media: Arc<Media>,
    pub decoder: Decoder,
    pub draft: Draft,
}

impl Session {
    /// Loads a target onto the chosen device, or onto the CPU if that is not available. No drafters
    /// are set. `form` is the form of its prompts.
    ///
    /// # Errors
    /// Errors of loading a model.
    pub fn load(
        host: &Host,
        source: &ModelSource,
        form: impl Into<Arc<Form>>,
        choice: DeviceChoice,
    ) -> Result<Self> {
        let wanted = choose(host, source, Role::Target, &choice);
        Self::load_onto(host, source, form, choice, &wanted)
    }

    /// Loads a target like [`Self::load`], onto a device that is open.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_onto(
        host: &Host,
        source: &ModelSource,
        form: impl Into<Arc<Form>>,
        choice: DeviceChoice,
        wanted: &Opened,
    ) -> Result<Self> {
        source.check_target()?;
        let form = form.into();
        let mut tokenizer = source.tokenizer()?;
        form.turn_end(&tokenizer).into_iter().for_each(|end| tokenizer.add_end(end));
        let tokenizer = Arc::new(tokenizer);
        let (mut model, opened) = place(wanted, Role::Target, |opened| host.hardware.load(source, opened))?;
        let media = Arc::default();
        model.set_media(&media);
        let class = cost_class(source, &opened);
        let decoder = Decoder::new(model, tokenizer).with_penalties(source.penalties());
        Ok(Self {
            host: host.clone(),
            path: source.path().to_owned(),
            eight_bits: source.eight_bits(),
            kv_dtype: source.config()?.kv_dtype,
            form,
            choice,
            fell_back: opened.gpu != wanted.gpu,
            opened,
            limited: false,
            context_limit: None,
            class,
            identity: identity(&[source], None),
            shelf: Shelf::default(),
            budget: TextBudget::default(),
            earlier: Vec::new(),
            vision: None,
            media,
            decoder: match host.renderer.child_program() {
                Some(program) => decoder.with_grammars(program, source.path()),
                None => decoder,
            },
            draft: Draft::default(),
        })
    }

    /// File or folder of the target.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Form of its prompts.
    pub fn form(&self) -> &Arc<Form> {
        &self.form
    }

    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        self.decoder.tokenizer()
    }

    /// Maximum length of prompt and reply together, in tokens.
    pub fn context(&self) -> usize {
        self.decoder.target().config().context
    }

    /// Limits [`Self::context`] to so many tokens; `None` for as many as in training.
    pub fn limit_context(&mut self, tokens: Option<usize>) {
        if self.context_limit != tokens {
            self.put_text_aside();
            self.context_limit = tokens;
            self.decoder.target_mut().limit_context(tokens.unwrap_or(usize::MAX));
        }
    }

    /// Chosen device of the target.
    pub fn device_choice(&self) -> &DeviceChoice {
        &self.choice
    }

    /// Format of the target's KV cache.
    pub fn kv_dtype(&self) -> KvDtype {
        self.kv_dtype
    }

    /// Device of the target.
    pub fn device(&self) -> &Opened {
        &self.opened
    }

    /// Reason why the target is on the CPU, if another device was wanted when it was loaded.
    pub fn fell_back(&self) -> Option<&DeviceRemark> {
        self.opened.remark.as_ref().filter(|_| self.fell_back)
    }

    /// Devices in use, such as "CPU, 8 threads, AVX-512", with the draft model's if it is another.
    pub fn devices(&self) -> String {
        let target = &self.opened.label;
        match self.draft.device().map(|device| &device.label) {
            Some(draft) if draft != target => format!("{target}; the draft on {draft}"),
            _ => target.to_string(),
        }
    }

    /// Reasons why devices other than the chosen ones are used; a reason that concerns both models
    /// appears once.
    pub fn remarks(&self) -> impl Iterator<Item = &DeviceRemark> {
        let target = self.opened.remark.as_ref();
        let draft = self.draft.device().and_then(|device| device.remark.as_ref());
        target.into_iter().chain(draft.filter(|draft| Some(*draft) != target))
    }

    /// Measurements of devices and the resulting choice.
    pub fn notes(&self) -> impl Iterator<Item = &DeviceNote> {
        let draft = self.draft.device().and_then(|device| device.note.as_ref());
        let target = self.opened.note.as_ref();
        target.into_iter().chain(draft.filter(|draft| Some(*draft) != target))
    }

    /// [Remarks](Self::remarks) and [notes](Self::notes) as sentences.
    pub fn device_sentences(&self) -> impl Iterator<Item = String> {
        self.remarks().map(ToString::to_string).chain(self.notes().map(ToString::to_string))
    }

    /// Changes the chosen device to `choice`, if the target runs there already. Otherwise returns
    /// the device onto which the target has to be loaded.
    ///
    /// # Errors
    /// Errors of opening the target's file.
    pub fn move_target(&mut self, choice: &DeviceChoice) -> Result<Option<Opened>> {
        if self.choice == *choice {
            return Ok(None);
        }
        let source = opened_as(&self.path, self.eight_bits, self.kv_dtype)?;
        let wanted = choose(&self.host, &source, Role::Target, choice);
        if self.limited || !self.opened.is_same(&wanted) {
            return Ok(Some(wanted));
        }
        (self.choice, self.opened.remark, self.opened.note) = (choice.clone(), wanted.remark, wanted.note);
        Ok(None)
    }

    /// Device for a draft model: the target's, opened once, unless another is chosen.
    pub fn draft_device(&self, choice: Option<&DeviceChoice>) -> Opened {
        match choice {
            Some(choice) if !self.opened.is(choice) => self.host.hardware.open(choice),
            _ => self.opened.clone(),
        }
    }

    /// Device for this draft model. For a target on a GPU of any make, this is the CPU if it is
    /// faster.
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

    /// Returns the draft if its model can stay on its device with `choice`.
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

    /// Draft head (MTP) in the target's own files, to be [opened](Self::open_draft) like others;
    /// see [`ModelSource::mtp_head`].
    ///
    /// # Errors
    /// Errors of [`ModelSource::mtp_head`].
    pub fn mtp_head(&self) -> Result<ModelSource> {
        ModelSource::open(&self.path)?.in_eight_bits(self.eight_bits).mtp_head()
    }

    /// Opens drafters. A model is loaded onto the device chosen for drafts; `None` for the
    /// target's. The session changes only when the result becomes its [`Self::draft`].
    ///
    /// # Errors
    /// Errors of loading a model; `Error::Incompatible` for a vocabulary that shares too little
    /// with the target's; `Error::OtherTarget` for a draft head of another target.
    pub fn open_draft(&self, source: &DraftSource, choice: Option<&DeviceChoice>) -> Result<Draft> {
        self.open_draft_onto(source, choice, &self.draft_device_for(source, choice))
    }

    /// Opens drafters like [`Self::open_draft`], onto a device that is open.
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
        let mut pair = Pair { models: vec![self.path.clone()], devices: vec![self.opened.label.to_string()] };
        let (mut device, mut share, mut hash) = (None, None, None);
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
            let reads = source.read_bytes().ok().filter(|_| opened.is_same(&self.opened));
            share =
                reads.filter(|_| self.class.bytes > 0).map(|bytes| bytes as f64 / self.class.bytes as f64);
            let sources: Vec<&ModelSource> = stage.iter().chain([source]).collect();
            hash = Some(identity(&sources, Some(&self.identity)));
            pair.devices.push(opened.label.to_string());
            device = Some(DraftDevice { choice: choice.cloned(), opened });
        }
        if self.eight_bits {
            pair.devices.push("eight bits".to_owned());
        }
        if self.kv_dtype != KvDtype::F16 {
            pair.devices.push(format!("KV cache in {}", self.kv_dtype));
        }
        let mut drafters = Drafters::new(drafters);
        drafters.assume(RowRatios::shipped(&self.class), share);
        Ok(Draft { drafters, device, pair, share, number: next_number(), hash, ..Draft::default() })
    }

    /// Loads a draft model or draft head; returns its device, too.
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

    /// Loads a draft model; returns its device, too.
    ///
    /// # Errors
    /// As [`Self::open_draft`].
    pub fn load_draft(&self, source: &ModelSource, wanted: &Opened) -> Result<(ModelDrafter, Opened)> {
        let (drafter, opened) = caught(|| {
            place(wanted, Role::Draft, |opened| {
                let load = |source: &ModelSource| self.host.hardware.load(source, opened);
                ModelDrafter::open_by(source, self.tokenizer(), load)
            })
        })?;
        let drafter = drafter.limited_to(self.scored());
        check_vocabulary(drafter.vocabulary(), self.scored())?;
        Ok((drafter, opened))
    }

    /// Number of tokens that the target scores.
    fn scored(&self) -> usize {
        self.decoder.target().config().vocabulary
    }

    fn load_head(&self, source: &ModelSource, wanted: &Opened) -> Result<(Box<dyn Drafter>, Opened)> {
        let source = source.for_target(&ModelSource::open(&self.path)?)?;
        let guessed = source.guessed_tokens()?.and_then(|tokens| tokens.last().copied());
        let guessed = guessed.map_or(source.config()?.vocabulary, |last| last as usize + 1);
        check_vocabulary(guessed, self.scored())?;
        caught(|| {
            let load = |opened: &Opened| self.host.hardware.load(&source, opened);
            let (mut model, opened) = place(wanted, Role::Draft, load)?;
            model.set_media(&self.media);
            Ok((head_drafter(&source, model, self.tokenizer().ends())?, opened))
        })
    }

    /// Replaces the texts of other conversations that the drafters may repeat.
    pub fn repeat(&mut self, texts: &[String]) {
        let tokenizer = self.decoder.tokenizer();
        // Texts that the tokenizer cannot encode are left out.
        let texts = texts.iter().filter_map(|text| tokenizer.encode(text, Special::Ignore).ok());
        self.earlier = texts.collect();
        self.remember();
    }

    /// Passes the texts that the loaded text's owner may repeat to the drafters.
    fn remember(&mut self) {
        let may = self.shelf.owner() == Owner::Person;
        self.draft.drafters.remember(if may { &self.earlier } else { &[] });
    }

    /// Sets the memory for texts put aside. Without it, the session keeps only the loaded text.
    pub fn keep_texts(&mut self, budget: TextBudget) {
        self.budget = budget;
        self.shelf.shrink(budget);
    }

    /// Bytes of the texts put aside.
    pub fn text_bytes(&self) -> usize {
        self.shelf.bytes()
    }

    /// Puts the loaded text aside before work that replaces it.
    pub fn put_text_aside(&mut self) {
        let (shelf, loaded) = self.texts();
        shelf.put_aside(&loaded);
        self.shelf.shrink(self.budget);
    }

    /// Hash of the target, whose saved texts are meant.
    pub fn identity(&self) -> Hash {
        self.identity
    }

    /// The person's loaded text, to be saved; `None` if there is none, and if its engine cannot
    /// share it.
    pub fn text_to_save(&mut self) -> Option<TextToSave> {
        let (target, draft, media) = (self.identity, self.draft.hash, Arc::clone(&self.media));
        let (shelf, loaded) = self.texts();
        Some(TextToSave { text: shelf.own_text(&loaded)?, target, draft, media })
    }

    /// Puts the text that was saved under `name` beside those in memory, unless one of them is as
    /// good. `go_on` is called between pages.
    ///
    /// # Errors
    /// The reason why it could not be read; `ErrorKind::Interrupted` once `go_on` returned `false`.
    pub fn restore(
        &mut self,
        name: &str,
        files: &dyn ContextFiles,
        go_on: &dyn Fn() -> bool,
    ) -> std::io::Result<()> {
        let (target, draft, media) = (self.identity, self.draft.hash, Arc::clone(&self.media));
        let (_, loaded) = self.texts();
        let Some(text) = loaded.park(Owner::Person) else { return Ok(()) };
        let like = TextToSave { text, target, draft, media };
        let bytes = files.text(name)?;
        let mut reader = Reader { bytes: &bytes, files, go_on, pictures: SavedPictures::default() };
        reader.pictures(&like.media)?;
        let parts = reader.bytes;
        let tokens = reader.tokens()?;
        reader.bytes = parts;
        if self.held(&tokens) + 1 < tokens.len() {
            let text = reader.text(&like)?;
            self.shelf.put(text);
            self.shelf.shrink(self.budget);
        }
        Ok(())
    }

    /// Number of tokens of the person's `prompt` that a reply would not run again.
    pub fn held(&mut self, prompt: &[TokenId]) -> usize {
        let (shelf, loaded) = self.texts();
        shelf.held(prompt, &loaded)
    }

    /// The texts put aside, and the loaded one.
    fn texts(&mut self) -> (&mut Shelf, Loaded<'_>) {
        let Draft { drafters, number, .. } = &mut self.draft;
        (&mut self.shelf, Loaded { target: self.decoder.target_mut(), drafters, draft: *number })
    }

    /// Loads the owner's text that saves most of the prompt.
    fn turn_to(&mut self, request: &Request) {
        let before = self.shelf.owner();
        let (shelf, mut loaded) = self.texts();
        shelf.turn_to(request.owner, &request.prompt, &mut loaded);
        self.shelf.shrink(self.budget);
        if before != request.owner {
            self.remember();
        }
    }

    /// Restores saved statistics of the drafters. Without any, the first reply learns from its own
    /// rounds, beginning with what other models of the same class taught on this device. Does
    /// nothing without drafters or if they are known.
    pub fn prepare(&mut self) {
        let Draft { drafters, pair, saves_stats, share, .. } = &mut self.draft;
        *saves_stats = true;
        if drafters.is_empty() || drafters.governor().is_some() {
            return;
        }
        let Some(learning) = &self.host.learning else { return };
        if let Some(ratios) = learning.load_ratios(&self.class.key()) {
            drafters.assume(ratios, *share);
        }
        drafters.restore(learning.load(pair).as_ref());
    }

    /// Saves the drafters' statistics, if [`Self::prepare`] was called for them. A failure is only
    /// logged.
    pub fn save_stats(&self) {
        let Draft { drafters, pair, saves_stats, .. } = &self.draft;
        let Some(learning) = self.host.learning.as_ref().filter(|_| *saves_stats) else { return };
        let Some(governor) = drafters.governor() else { return };
        let saved = learning.save(pair, &governor.saved_stats()).and_then(|()| match governor.row_ratios() {
            Some(ratios) => learning.save_ratios(&self.class.key(), &ratios),
            None => Ok(()),
        });
        if let Err(error) = saved {
            tracing::warn!("what was learned about the models is not kept: {error}");
        }
    }

    /// Tokenizes a user's text, as the first message of a conversation or raw.
    ///
    /// # Errors
    /// Errors of [`Form::said`] and [`Form::tokens`].
    pub fn text(&self, text: &str) -> Result<Vec<TokenId>> {
        self.conversation(&Conversation::of(&[self.form.said(text)?], None))
    }

    /// Tokenizes a conversation up to the start of the next reply.
    ///
    /// # Errors
    /// Errors of [`Form::tokens`].
    pub fn conversation(&self, conversation: &Conversation<'_>) -> Result<Vec<TokenId>> {
        self.conversation_unless(conversation, &|| false)
    }

    /// Tokenizes a conversation as [`Self::conversation`] does, unless `stop` returns `true`
    /// meanwhile.
    ///
    /// # Errors
    /// Errors of [`Form::tokens`].
    pub fn conversation_unless(
        &self,
        conversation: &Conversation<'_>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<TokenId>> {
        self.form.tokens(&self.encoder(), conversation, stop)
    }

    /// Encoder of its prompts.
    pub fn encoder(&self) -> PromptEncoder {
        PromptEncoder {
            tokenizer: Arc::clone(self.tokenizer()),
            context: self.context(),
            pictures: self
                .vision
                .as_ref()
                .map(|vision| PictureIds { layout: vision.layout(), media: Arc::clone(&self.media) }),
        }
    }

    /// Generates a reply, see [`Decoder::reply`].
    ///
    /// # Errors
    /// Errors of [`Decoder::reply`]. [`Self::remedy`] returns the recovery.
    pub fn reply(
        &mut self,
        request: &Request,
        on_progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Reply> {
        self.turn_to(request);
        let reply = self.decoder.reply(request, &mut self.draft.drafters, on_progress);
        if matches!(reply, Err(Error::NoMemory { .. })) {
            // The next reply has this memory.
            self.shelf.shrink(TextBudget::Bytes(0));
        }
        reply
    }

    /// Sets the vision model of the target; `None` for a target that sees no pictures.
    pub fn set_vision(&mut self, vision: Option<Box<dyn VisionModel>>) {
        self.vision = vision;
    }

    /// Returns true if prompts may have pictures.
    pub fn sees(&self) -> bool {
        self.vision.is_some()
    }

    /// Computes the embeddings of pictures in a conversation that are not in memory, before a
    /// reply. `on_progress` receives the share that is done; `Break` ends the work.
    ///
    /// # Errors
    /// As [`VisionModel::encode`].
    pub fn see(
        &mut self,
        conversation: &Conversation<'_>,
        on_progress: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<()> {
        let ids = self.encoder().pictures;
        let pictures: Vec<&PlacedPicture> = conversation.pictures().collect();
        for (number, placed) in pictures.iter().enumerate() {
            let (Some(ids), Some(vision)) = (&ids, &mut self.vision) else { return Err(sees_nothing()) };
            let key = ids.key(placed);
            if self.media.has(key) {
                continue;
            }
            ids.tokens(placed, self.decoder.tokenizer())?;
            let progress = &mut |share: f32| on_progress((number as f32 + share) / pictures.len() as f32);
            let embeddings = vision.encode(&placed.picture, placed.detail, progress)?;
            self.media.insert(key, embeddings)?;
        }
        Ok(())
    }

    /// Returns the tags around the model's reasoning, and whether a reply to `request` begins
    /// within it.
    pub fn reasoning(&self, request: &Request) -> (Option<Thinking>, bool) {
        let Form::Chat(template) = self.form().as_ref() else { return (None, false) };
        let tags = template.thinking();
        let opening = tags.and_then(|tags| Opening::after(&request.prompt, self.tokenizer(), tags));
        (tags, opening.is_some_and(|opening| opening.open.is_none()))
    }

    /// Recovery from an error of the target; `None` if the GPU did not cause it.
    pub fn remedy(&self, error: &Error) -> Option<Remedy> {
        self.opened.gpu?;
        let model = self.decoder.target();
        Remedy::of(error, model.config().context, model.cached().len())
    }

    /// Loads the target again after its GPU failed, by `remedy`; no drafters are set. `watch`
    /// receives the opened model before it is loaded.
    ///
    /// # Errors
    /// As [`Self::load`]; the session is lost then.
    pub fn recover(self, remedy: Remedy, watch: impl FnOnce(ModelSource) -> ModelSource) -> Result<Self> {
        let Self {
            host,
            path,
            eight_bits,
            kv_dtype,
            form,
            choice,
            opened,
            decoder,
            draft,
            context_limit,
            vision,
            ..
        } = self;
        // GPU memory is freed first.
        drop((decoder, draft));
        let wanted = match remedy {
            Remedy::Shorter(_) => opened,
            Remedy::Cpu => Opened::cpu_because(DeviceRemark::Failed { role: Role::Target }),
        };
        let source = opened_as(&path, eight_bits, kv_dtype)?;
        let source = watch(source.limited_to(remedy.context().unwrap_or(usize::MAX)));
        let mut session = Self::load_onto(&host, &source, form, choice, &wanted)?;
        session.limit_context(context_limit);
        session.vision = vision;
        Ok(Self { limited: remedy.context().is_some(), ..session })
    }
}

/// Opens a target again as it was loaded.
fn opened_as(path: &Path, eight_bits: bool, kv_dtype: KvDtype) -> Result<ModelSource> {
    Ok(ModelSource::open(path)?.in_eight_bits(eight_bits).with_kv_dtype(kv_dtype))
}

/// Class of a target on a device.
fn cost_class(source: &ModelSource, opened: &Opened) -> CostClass {
    let facts = &opened.label.facts;
    let config = source.config().ok();
    CostClass {
        device: opened.label.to_string(),
        on_gpu: opened.gpu.is_some(),
        instructions: facts.iter().find_map(instructions).unwrap_or_default().to_owned(),
        threads: facts.iter().find_map(threads).unwrap_or_default(),
        format: source.describe().quantisation.unwrap_or_default(),
        bytes: source.read_bytes().unwrap_or_default(),
        has_experts: config.is_some_and(|config| config.experts().is_some()),
        is_recurrent: config.is_some_and(|config| config.recurrence().is_some()),
    }
}

fn instructions(fact: &DeviceFact) -> Option<&str> {
    if let DeviceFact::Instructions { name } = fact { Some(name) } else { None }
}

fn threads(fact: &DeviceFact) -> Option<usize> {
    if let DeviceFact::Threads { count } = fact { Some(*count as usize) } else { None }
}

/// Checks that a draft only guesses tokens that the target scores. A guess of another token would
/// drop the draft in the middle of a reply.
///
/// # Errors
/// `Error::Incompatible`.
fn check_vocabulary(guessed: usize, scored: usize) -> Result<()> {
    if guessed <= scored {
        return Ok(());
    }
    let last = guessed - 1;
    Err(Error::Incompatible(format!(
        "it guesses tokens up to number {last}, and the target has {scored} tokens"
    )))
}
