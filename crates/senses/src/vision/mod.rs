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
use foretoken_model::{Detail, ModelConfig, Picture, Tokenizer, VisionConfig, VisionSource};

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
    /// Opens the vision model at `path` for the language model `language` with `tokenizer`. Loads no
    /// weights.
    ///
    /// # Errors
    /// As [`VisionSource::open`]; `Error::BadModel` for a vision model of another language model.
    pub fn open(path: &Path, tokenizer: &Tokenizer, language: &ModelConfig) -> Result<Self> {
        let source = VisionSource::open(path)?;
        let other = |expected: String, found: String| Error::BadModel {
            path: path.to_owned(),
            expected,
            found,
            hint: "Choose the vision file (mmproj) of this model.",
        };
        let VisionConfig { output, deepstack, .. } = source.config();
        if *output != language.hidden {
            let expected = format!("embeddings of {} numbers, as the language model has", language.hidden);
            return Err(other(expected, output.to_string()));
        }
        if !source.config().has_levels_of(language) {
            let expected = "as many DeepStack layers as the language model has".to_owned();
            return Err(other(expected, deepstack.len().to_string()));
        }
        let layout = Arc::new(Layout::new(&source, tokenizer)?);
        Ok(Self { source, layout, network: None })
    }

    /// Normalised pixels of a picture's patches, in the order in which the transformer reads them.
    ///
    /// # Errors
    /// `Error::Picture` for a size that the model cannot see.
    pub fn pixels(&self, picture: &Picture, detail: Detail) -> Result<Vec<f32>> {
        let mut pixels = Vec::new();
        for patches in self.patches(picture, detail)? {
            pixels.extend(patches.pixels.flatten_all()?.to_vec1::<f32>()?);
        }
        Ok(pixels)
    }

    /// Patches of each tile of a picture.
    fn patches(&self, picture: &Picture, detail: Detail) -> Result<Vec<Patches>> {
        let config = self.source.config();
        let tiles = Tiling::of(config, picture.width(), picture.height(), detail)?.tiles(picture)?;
        tiles.iter().map(|tile| Patches::of(tile, config)).collect()
    }

    /// Embeddings of a picture in 32 bits, `[embeddings, hidden]`. Those of DeepStack's layers follow
    /// in the same rows.
    ///
    /// # Errors
    /// As [`VisionModel::encode`].
    pub fn embed(
        &mut self,
        picture: &Picture,
        detail: Detail,
        on_progress: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Tensor> {
        let tiles = self.patches(picture, detail)?;
        let network = match &mut self.network {
            Some(network) => network,
            none => none.insert(Network::load(&self.source)?),
        };
        let count = tiles.len() as f32;
        let mut embeddings = Vec::new();
        for (number, patches) in tiles.iter().enumerate() {
            let progress = &mut |share: f32| on_progress((number as f32 + share) / count);
            let states = network.vit.run(patches, progress)?;
            embeddings.push(network.projector.run(&states, patches)?);
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
        let numbers = embeddings.flatten_all()?.to_vec1::<f32>()?;
        Embeddings::new(&numbers, self.source.config().output, embeddings.dim(1)?)
    }
}
