//! Vision models: from a picture to embeddings of a language model, on candle tensors in 32 bits.
//!
//! - `sizes`: to which sizes a picture is resized, and into which tiles
//! - `layout`: the tokens around its embeddings
//! - `patches`: from pixels to the numbers that a transformer reads
//! - `vit`: the transformer; `projector`: from its states to embeddings
//! - [`Tower`]: all of it

mod activation;
mod layout;
mod linear;
mod patches;
mod projector;
mod sizes;
mod vit;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use candle_core::Tensor;
use foretoken_engine::vision::{PictureLayout, VisionModel};
use foretoken_forward::Embeddings;
use foretoken_model::error::{Error, Result};
use foretoken_model::{Detail, Picture, Tokenizer, VisionSource};

use self::layout::Layout;
use self::patches::Patches;
use self::projector::ProjectorLayers;
use self::sizes::Tiling;
use self::vit::Vit;

/// A vision model, whose weights are loaded with the first picture.
pub struct Tower {
    source: VisionSource,
    layout: Arc<Layout>,
    network: Option<Network>,
}

struct Network {
    vit: Vit,
    projector: ProjectorLayers,
}

impl Tower {
    /// Opens the vision model at `path` for a language model with `tokenizer` and states of `hidden`
    /// numbers. Loads no weights.
    ///
    /// # Errors
    /// As [`VisionSource::open`]; `Error::BadModel` for a vision model of another language model.
    pub fn open(path: &Path, tokenizer: &Tokenizer, hidden: usize) -> Result<Self> {
        let source = VisionSource::open(path)?;
        let output = source.config().output;
        if output != hidden {
            return Err(Error::BadModel {
                path: path.to_owned(),
                expected: format!("embeddings of {hidden} numbers, as the language model has"),
                found: format!("{output}"),
                hint: "Choose the vision file (mmproj) of this model.",
            });
        }
        let layout = Arc::new(Layout::new(&source, tokenizer)?);
        Ok(Self { source, layout, network: None })
    }

    /// Embeddings of a picture in 32 bits, `[embeddings, hidden]`.
    ///
    /// # Errors
    /// As [`VisionModel::encode`].
    pub fn embed(
        &mut self,
        picture: &Picture,
        detail: Detail,
        on_progress: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Tensor> {
        let config = self.source.config().clone();
        let tiles = Tiling::of(&config, picture.width(), picture.height(), detail)?.tiles(picture)?;
        let network = match &mut self.network {
            Some(network) => network,
            none => none.insert(Network::load(&self.source)?),
        };
        let count = tiles.len() as f32;
        let mut embeddings = Vec::new();
        for (number, tile) in tiles.iter().enumerate() {
            let patches = Patches::of(tile, &config)?;
            let progress = &mut |share: f32| on_progress((number as f32 + share) / count);
            let states = network.vit.run(&patches, progress)?;
            embeddings.push(network.projector.run(&states, &patches)?);
        }
        Ok(Tensor::cat(&embeddings, 0)?)
    }
}

impl Network {
    fn load(source: &VisionSource) -> Result<Self> {
        Ok(Self { vit: Vit::load(source)?, projector: ProjectorLayers::load(source)? })
    }
}

impl VisionModel for Tower {
    fn layout(&self) -> Arc<dyn PictureLayout> {
        Arc::clone(&self.layout) as Arc<dyn PictureLayout>
    }

    fn encode(
        &mut self,
        picture: &Picture,
        detail: Detail,
        on_progress: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Embeddings> {
        let embeddings = self.embed(picture, detail, on_progress)?;
        let width = embeddings.dim(1)?;
        Embeddings::new(&embeddings.flatten_all()?.to_vec1::<f32>()?, width)
    }
}
