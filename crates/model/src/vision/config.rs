//! Settings of a vision model.

use std::path::Path;

use super::options::{LearnedPositions, VisionActivation};
use crate::config::ModelConfig;
use crate::error::Result;
use crate::limits::at_most;

/// Limits of untrusted settings, with room above all known models.
const WIDTH: usize = 1 << 14;
const INTERMEDIATE: usize = 1 << 16;
const LAYERS: usize = 256;
const HEADS: usize = 256;
const PATCH: usize = 64;
const GRID: usize = 512;
const TABLE: usize = 1 << 16;
const MERGE: usize = 16;
const SIDE: usize = 4096;
const PIXELS: usize = 1 << 28;

/// Embeddings of a picture for Gemma 4, at most.
pub const GEMMA_EMBEDDINGS: usize = 1120;
/// Embeddings per side of such a picture, where one side is 200 times the other.
const GEMMA_SIDE: usize = (200 * GEMMA_EMBEDDINGS).isqrt();

/// Settings of a vision transformer and of the projector to a language model.
#[derive(Debug, Clone, PartialEq)]
pub struct VisionConfig {
    pub projector: Projector,
    pub width: usize,
    pub intermediate: usize,
    pub layers: usize,
    pub heads: usize,
    pub activation: VisionActivation,
    pub epsilon: f64,
    /// Pixels per side of a patch.
    pub patch: usize,
    /// Learned positions per side, or of each axis; 0 without.
    pub grid: usize,
    /// Patches per side that become one embedding.
    pub merge: usize,
    /// Width of an embedding, that of the language model.
    pub output: usize,
    /// Layers whose states become further embeddings, which the language model adds to its states
    /// after as many layers (DeepStack, Meng et al. 2024). Ascending.
    pub deepstack: Vec<usize>,
    /// Inputs and outputs of the transformer's matrices are clamped.
    pub clamps: bool,
    /// States are standardised before the projector.
    pub standardised: bool,
    /// The projector's matrices have biases.
    pub projector_biases: bool,
    /// Mean and standard deviation of each channel in the training data, of values in 0 to 1.
    pub mean: [f32; 3],
    pub deviation: [f32; 3],
}

/// Kind of vision model, with its rule for the size of pictures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Projector {
    /// SmolVLM, Idefics 3: SigLIP over squares. The longest edge is scaled to `longest`; tiles of
    /// `tile` pixels per side, and the whole picture in one.
    Idefics3 { tile: usize, longest: usize },
    /// Qwen3-VL, Qwen3.5 and its successors: any multiple of a merged patch per side, within this
    /// number of pixels.
    Qwen3Vl { least: usize, most: usize },
    /// Gemma 4: as many merged patches as fit into this number of embeddings.
    Gemma4 { embeddings: usize },
    /// Pixtral, in Mistral Small 3 and Ministral 3: sides of at most `longest` pixels, up to whole
    /// merged patches. `epsilon` is that of the projector's norm.
    Pixtral { longest: usize, epsilon: f64 },
}

impl VisionConfig {
    /// Pixels per side of an embedding's square.
    pub fn unit(&self) -> usize {
        self.patch * self.merge
    }

    /// Returns whether embeddings are as wide as the states of a language model, with its number of
    /// DeepStack layers.
    pub fn fits(&self, language: &ModelConfig) -> bool {
        self.output == language.hidden && self.has_levels_of(language)
    }

    /// Returns whether the language model adds embeddings of this model's DeepStack layers.
    pub fn has_levels_of(&self, language: &ModelConfig) -> bool {
        language.deepstack.is_none_or(|layers| layers == self.deepstack.len())
    }

    /// Checks sizes that decide how much is computed and allocated.
    ///
    /// # Errors
    /// `Error::BadModel` for a size of 0 or above its limit, and for sizes that do not divide.
    pub(super) fn checked(self, path: &Path) -> Result<Self> {
        let sizes = [
            ("width of the vision model", self.width, WIDTH),
            ("width of its feed-forward networks", self.intermediate, INTERMEDIATE),
            ("layers of the vision model", self.layers, LAYERS),
            ("attention heads of the vision model", self.heads, HEADS),
            ("pixels per side of a patch", self.patch, PATCH),
            ("merged patches per side", self.merge, MERGE),
            ("numbers of an embedding", self.output, WIDTH),
        ];
        for (what, found, limit) in sizes {
            positive(path, what, found)?;
            at_most(path, what, found, limit)?;
        }
        match self.projector.options().positions {
            LearnedPositions::None => {}
            LearnedPositions::Grid => {
                positive(path, "positions per side", self.grid)?;
                at_most(path, "positions per side", self.grid, GRID)?;
            }
            LearnedPositions::Tables => {
                at_most(path, "positions per axis", self.grid, TABLE)?;
                at_most(path, "positions that are needed per axis", GEMMA_SIDE * self.merge, self.grid)?;
            }
        }
        match self.projector {
            Projector::Idefics3 { tile, longest } => {
                at_most(path, "pixels per side of a tile", tile, SIDE)?;
                at_most(path, "pixels of the longest edge", longest, SIDE)?;
                positive(path, "pixels per side of a tile", tile)?;
                divides(path, "pixels of a tile by merged patches", tile, self.unit())?;
                divides(path, "pixels of a tile by positions", tile, self.patch * self.grid)?;
                positive(path, "pixels of the longest edge", longest)?;
            }
            Projector::Qwen3Vl { least, most } => {
                at_most(path, "pixels", most, PIXELS)?;
                at_most(path, "pixels of the smallest picture", least, most)?;
                positive(path, "pixels", least)?;
            }
            Projector::Gemma4 { embeddings } => {
                positive(path, "embeddings of a picture", embeddings)?;
                at_most(path, "embeddings of a picture", embeddings, GEMMA_EMBEDDINGS)?;
            }
            Projector::Pixtral { longest, epsilon } => {
                positive(path, "pixels of the longest edge", longest)?;
                at_most(path, "pixels of the longest edge", longest, SIDE)?;
                fraction(path, Some(epsilon))?;
            }
        }
        fraction(path, Some(self.epsilon))?;
        if !self.deepstack.is_sorted_by(|one, next| one < next)
            || self.deepstack.last().is_some_and(|&last| last >= self.layers)
        {
            let found = format!("{:?}", self.deepstack);
            return Err(bad(path, format!("DeepStack layers below {}", self.layers), found));
        }
        let parts = if self.projector.options().rotation.is_some() { 4 * self.heads } else { self.heads };
        divides(path, "the vision model's width by what rotates together", self.width, parts)?;
        divides(path, "the vision model's width by its heads", self.width, self.heads)?;
        Ok(self)
    }
}

/// Returns a number between 0 and 1, such as an epsilon.
///
/// # Errors
/// `Error::BadModel` for others.
pub(super) fn fraction(path: &Path, found: Option<f64>) -> Result<f64> {
    let expected = || bad(path, "an epsilon between 0 and 1".to_owned(), format!("{found:?}"));
    found.filter(|number| *number > 0.0 && *number < 1.0).ok_or_else(expected)
}

fn positive(path: &Path, what: &str, found: usize) -> Result<()> {
    if found > 0 { Ok(()) } else { Err(bad(path, format!("a number above 0 of {what}"), "0".to_owned())) }
}

fn divides(path: &Path, what: &str, number: usize, by: usize) -> Result<()> {
    if number.is_multiple_of(by) {
        return Ok(());
    }
    Err(bad(path, format!("a whole number: {what}"), format!("{number} / {by}")))
}

/// Error for a vision model that is not as `expected`.
pub(super) fn bad(path: &Path, expected: String, found: String) -> crate::error::Error {
    let hint = "Choose another file of this model.";
    crate::error::Error::BadModel { path: path.to_owned(), expected, found, hint }
}
