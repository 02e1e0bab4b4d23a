//! A loaded target, who drafts for it, and replies under way. Prints nothing.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use foretoken_engine::decoder::{Decoder, Progress, Reply, Request};
use foretoken_engine::device::Device;
use foretoken_engine::draft::{Drafter, ModelDrafter, NgramDrafter};
use foretoken_engine::forward::load;
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
    drafter: Option<Box<dyn Drafter>>,
}

impl Session {
    /// Loads a target; nobody drafts for it yet.
    pub fn load(source: &ModelSource, device: Device) -> Result<Self> {
        let tokenizer = Arc::new(source.tokenizer()?);
        let decoder = Decoder::new(load(source, &device)?, tokenizer);
        Ok(Self { device, eight_bits: source.eight_bits(), decoder, drafter: None })
    }

    pub fn tokenizer(&self) -> &Tokenizer {
        self.decoder.tokenizer()
    }

    /// The target and who drafts for it.
    pub fn pair(&mut self) -> (&mut Decoder, Option<&mut dyn Drafter>) {
        let drafter: Option<&mut dyn Drafter> = match &mut self.drafter {
            Some(drafter) => Some(drafter.as_mut()),
            None => None,
        };
        (&mut self.decoder, drafter)
    }

    /// Lets another draft; the target stays loaded with what it has cached. On an error the one before
    /// goes on drafting.
    ///
    /// # Errors
    /// Those of opening and loading a model, and `Error::Incompatible` for one with another vocabulary.
    pub fn choose_draft(&mut self, choice: &DraftChoice) -> Result<()> {
        self.drafter = match choice {
            DraftChoice::None => None,
            DraftChoice::Ngram => Some(Box::new(NgramDrafter::default())),
            DraftChoice::Model(name) => Some(Box::new(self.draft_model(&library()?.resolve(name)?)?)),
        };
        Ok(())
    }

    fn draft_model(&self, path: &Path) -> Result<ModelDrafter> {
        let source = ModelSource::open(path)?.in_eight_bits(self.eight_bits);
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
        interrupt.begin_reply();
        let (decoder, drafter) = self.pair();
        let reply = decoder.reply(request, drafter, &mut on_progress);
        interrupt.end_reply();
        match failed {
            Some(error) => Err(error),
            None => Ok(reply?),
        }
    }
}
