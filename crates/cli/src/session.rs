//! A loaded target, who drafts for it, and replies under way. Prints nothing.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use foretoken_engine::decoder::{Decoder, Progress, Reply, Request};
use foretoken_engine::device::{self, DeviceChoice, Opened, Role, place};
use foretoken_engine::draft::{Drafter, Drafters, ModelDrafter, NgramDrafter, RecyclingDrafter, Vocabulary};
use foretoken_engine::forward::{CpuModel, TensorModel, load};
use foretoken_engine::model::{ModelSource, Tokenizer};
use foretoken_engine::trace::Round;
use foretoken_library::{Folders, Learned, Library};

use crate::args::{DraftChoice, PairDeviceArgs};
use crate::error::Result;
use crate::interrupt::Interrupt;

/// Every model on this computer.
pub fn library() -> Result<Library> {
    Ok(Library::new(&Folders::locate()?, None))
}

/// Opens a model by path or name; reads its header only.
pub fn open(name: &str) -> Result<ModelSource> {
    Ok(ModelSource::open(&library()?.resolve(name)?)?)
}

pub struct Session {
    /// What computes for the target.
    device: Opened,
    draft_choice: Option<DeviceChoice>,
    /// What computes for the draft model, where there is one.
    draft_device: Option<Opened>,
    /// Drafts are loaded like the target.
    eight_bits: bool,
    /// The target's file and those of the models that draft.
    paths: Vec<PathBuf>,
    /// Where what is learned is kept; `None` where it is not.
    learned: Option<Learned>,
    pub decoder: Decoder,
    pub drafters: Drafters,
}

impl Session {
    /// Loads a target; nobody drafts for it yet.
    pub fn load(source: &ModelSource, devices: &PairDeviceArgs) -> Result<Self> {
        let tokenizer = Arc::new(source.tokenizer()?);
        let wanted = device::open(devices.target.device());
        let (model, device) = place(&wanted, Role::Target, |opened| load(source, &opened.device))?;
        Ok(Self {
            draft_choice: devices.draft_device(),
            eight_bits: source.eight_bits(),
            paths: vec![source.path().to_owned()],
            ..Self::of(device, Decoder::new(model, tokenizer), Drafters::default())
        })
    }

    /// "CPU, 8 threads, AVX-512", and the draft model's device where it is another.
    pub fn device(&self) -> String {
        let target = &self.device.label;
        match self.draft_device.as_ref().map(|device| &device.label) {
            Some(draft) if draft != target => format!("{target}; the draft on {draft}"),
            _ => target.clone(),
        }
    }

    /// Why something else computes than what was asked for, each in sentences.
    pub fn remarks(&self) -> impl Iterator<Item = &str> {
        let draft = self.draft_device.as_ref().and_then(|device| device.remark.as_deref());
        // One that is said of the target is not said again of a draft in the same place.
        let target = self.device.remark.as_deref();
        target.into_iter().chain(draft.filter(|draft| Some(*draft) != target))
    }

    /// Loads a target onto the CPU.
    pub fn on_the_cpu(target: &ModelSource) -> Result<Self> {
        let decoder = Decoder::new(Box::new(CpuModel::load(target)?), Arc::new(target.tokenizer()?));
        Ok(Self::of(Opened::cpu(), decoder, Drafters::default()))
    }

    /// Loads a target and the one model that drafts for it onto tensors, on the CPU, too.
    pub fn on_tensors(target: &ModelSource, draft: &ModelSource, device: &Opened) -> Result<Self> {
        let tokenizer = Arc::new(target.tokenizer()?);
        let draft = Box::new(TensorModel::load(draft, &device.device)?);
        let drafter = ModelDrafter::new(draft, Vocabulary::Same(tokenizer.vocabulary()), tokenizer.ends());
        let decoder = Decoder::new(Box::new(TensorModel::load(target, &device.device)?), tokenizer);
        Ok(Self::of(device.clone(), decoder, Drafters::one(drafter)))
    }

    fn of(device: Opened, decoder: Decoder, drafters: Drafters) -> Self {
        let (paths, learned) = Default::default();
        Self {
            device,
            draft_choice: None,
            draft_device: None,
            eight_bits: false,
            paths,
            learned,
            decoder,
            drafters,
        }
    }

    pub fn tokenizer(&self) -> &Tokenizer {
        self.decoder.tokenizer()
    }

    /// Lets others draft; the target stays loaded with what it has cached. On an error those before go on
    /// drafting. `stage` drafts for the draft model.
    ///
    /// # Errors
    /// Those of opening and loading a model, and `Error::Incompatible` for one whose vocabulary shares too
    /// little with the target's.
    pub fn choose_draft(&mut self, choice: &DraftChoice, stage: Option<&str>) -> Result<()> {
        let mut drafters: Vec<Box<dyn Drafter>> = Vec::new();
        let mut paths: Vec<PathBuf> = self.paths.iter().take(1).cloned().collect();
        let mut device = None;
        if let DraftChoice::Model(name) = choice {
            let wanted = self.draft_choice.map_or_else(|| self.device.clone(), device::open);
            let (mut model, placed) = self.draft_model(name, &wanted, &mut paths)?;
            if let Some(stage) = stage {
                model = model.drafted_by(self.draft_model(stage, &placed, &mut paths)?.0);
            }
            device = Some(placed);
            drafters.push(Box::new(model));
        }
        if *choice != DraftChoice::None {
            drafters.push(Box::<NgramDrafter>::default());
            drafters.push(Box::<RecyclingDrafter>::default());
        }
        self.drafters = Drafters::new(drafters);
        (self.draft_device, self.paths, self.learned) = (device, paths, None);
        Ok(())
    }

    /// Lets those who draft go on from what was learned about them before, and keeps what they learn from now
    /// on. Where nothing was, it is measured what they cost.
    ///
    /// # Errors
    /// When the target fails, or there is no data folder.
    pub fn remember(&mut self) -> Result<()> {
        if self.drafters.is_empty() {
            return Ok(());
        }
        let draft = self.draft_device.iter().map(|device| device.label.as_str());
        let weights = self.eight_bits.then_some("eight bits");
        let devices = std::iter::once(self.device.label.as_str()).chain(draft).chain(weights);
        let paths = self.paths.iter().map(PathBuf::as_path);
        let learned = Learned::about(&Folders::locate()?, paths, devices);
        self.drafters.recall(learned.recall().as_ref());
        self.learned = Some(learned);
        Ok(self.decoder.measure(&mut self.drafters)?)
    }

    /// Keeps what was learned. It is worth no error.
    fn keep(&self) {
        let knowledge = self.learned.as_ref().zip(self.drafters.knowledge());
        if let Some(Err(error)) = knowledge.map(|(learned, knowledge)| learned.keep(&knowledge)) {
            tracing::warn!("what was learned about the models is not kept: {error}");
        }
    }

    /// Adds its path to `paths`.
    fn draft_model(
        &self,
        name: &str,
        wanted: &Opened,
        paths: &mut Vec<PathBuf>,
    ) -> Result<(ModelDrafter, Opened)> {
        let source = ModelSource::open(&library()?.resolve(name)?)?.in_eight_bits(self.eight_bits);
        paths.push(source.path().to_owned());
        let open = |opened: &Opened| ModelDrafter::open(&source, &opened.device, self.tokenizer());
        Ok(place(wanted, Role::Draft, open)?)
    }

    /// Writes a reply and shows every round as it is done. `interrupt` may stop it.
    ///
    /// # Errors
    /// Those of the engine, and what `on_round` reports, which ends the reply.
    pub fn reply(
        &mut self,
        request: &Request,
        interrupt: &Interrupt,
        on_round: &mut dyn FnMut(&Round) -> Result<()>,
    ) -> Result<Reply> {
        let mut failed = None;
        let mut on_progress = |progress: Progress<'_>| {
            if let Progress::Round(round) = progress
                && let Err(error) = on_round(round)
            {
                failed = Some(error);
                return ControlFlow::Break(());
            }
            if interrupt.stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        interrupt.begin();
        let reply = self.decoder.reply(request, &mut self.drafters, &mut on_progress);
        interrupt.end();
        self.keep();
        match failed {
            Some(error) => Err(error),
            None => Ok(reply?),
        }
    }
}
