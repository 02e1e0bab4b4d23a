//! A loaded target, who drafts for it, and replies under way. Prints nothing.

use std::ops::ControlFlow;
use std::sync::Arc;

use foretoken_engine::decoder::{Decoder, Progress, Reply, Request};
use foretoken_engine::device::Device;
use foretoken_engine::draft::{Drafter, Drafters, ModelDrafter, NgramDrafter, RecyclingDrafter, Vocabulary};
use foretoken_engine::forward::{TensorModel, load};
use foretoken_engine::model::{ModelSource, Tokenizer};
use foretoken_engine::trace::Round;
use foretoken_library::{Folders, Library};

use crate::args::DraftChoice;
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
    device: Device,
    /// Drafts are loaded like the target.
    eight_bits: bool,
    pub decoder: Decoder,
    pub drafters: Drafters,
}

impl Session {
    /// Loads a target; nobody drafts for it yet.
    pub fn load(source: &ModelSource, device: Device) -> Result<Self> {
        let tokenizer = Arc::new(source.tokenizer()?);
        let decoder = Decoder::new(load(source, &device)?, tokenizer);
        Ok(Self { device, eight_bits: source.eight_bits(), decoder, drafters: Drafters::default() })
    }

    /// Loads a target and the one model that drafts for it onto tensors, on the CPU, too.
    pub fn on_tensors(target: &ModelSource, draft: &ModelSource, device: &Device) -> Result<Self> {
        let tokenizer = Arc::new(target.tokenizer()?);
        let draft = Box::new(TensorModel::load(draft, device)?);
        let drafter = ModelDrafter::new(draft, Vocabulary::Same(tokenizer.vocabulary()), tokenizer.ends());
        Ok(Self {
            device: device.clone(),
            eight_bits: false,
            decoder: Decoder::new(Box::new(TensorModel::load(target, device)?), tokenizer),
            drafters: Drafters::one(drafter),
        })
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
        if let DraftChoice::Model(name) = choice {
            let mut model = self.draft_model(name)?;
            if let Some(stage) = stage {
                model = model.drafted_by(self.draft_model(stage)?);
            }
            drafters.push(Box::new(model));
        }
        if *choice != DraftChoice::None {
            drafters.push(Box::<NgramDrafter>::default());
            drafters.push(Box::<RecyclingDrafter>::default());
        }
        self.drafters = Drafters::new(drafters);
        Ok(())
    }

    fn draft_model(&self, name: &str) -> Result<ModelDrafter> {
        let source = ModelSource::open(&library()?.resolve(name)?)?.in_eight_bits(self.eight_bits);
        Ok(ModelDrafter::open(&source, &self.device, self.tokenizer())?)
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
        match failed {
            Some(error) => Err(error),
            None => Ok(reply?),
        }
    }
}
