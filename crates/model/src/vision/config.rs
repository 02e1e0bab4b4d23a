//! Settings of a vision model.

use std::path::Path;

use crate::error::Result;
use crate::limits::at_most;

/// Limits of untrusted settings, with room above all known models.
const WIDTH: usize = 1 << 14;
const INTERMEDIATE: usize = 1 << 16;
const LAYERS: usize = 256;
const HEADS: usize = 256;
const PATCH: usize = 64;
const GRID: usize = 512;
const MERGE: usize = 16;
const SIDE: usize = 4096;
const PIXELS: usize = 1 << 28;

/// Settings of a vision transformer and of the projector to a language model.
#[derive(Debug, Clone, PartialEq)]
pub struct VisionConfig {
    pub projector: Projector,
    pub width: usize,
    pub intermediate: usize,
    pub layers: usize,
    pub heads: usize,
    pub epsilon: f64,
    /// Pixels per side of a patch.
    pub patch: usize,
    /// Learned positions per side.
    pub grid: usize,
    /// Patches per side that become one embedding.
    pub merge: usize,
    /// Width of an embedding, that of the language model.
    pub output: usize,
    /// Mean and standard deviation of each channel in the training data, of values in 0 to 1.
    pub mean: [f32; 3],
    pub deviation: [f32; 3],
}

/// Kind of vision model, with its rule for the size of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Projector {
    /// SmolVLM, Idefics 3: SigLIP over squares. The longest edge is scaled to `longest`; tiles of
    /// `tile` pixels per side, and the whole picture in one.
    Idefics3 { tile: usize, longest: usize },
    /// Qwen3.5 and its successors: any multiple of a merged patch per side, within this number of
    /// pixels.
    Qwen3Vl { least: usize, most: usize },
}

impl VisionConfig {
    /// Pixels per side of an embedding's square.
    pub fn unit(&self) -> usize {
        self.patch * self.merge
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
            ("positions per side", self.grid, GRID),
            ("merged patches per side", self.merge, MERGE),
            ("numbers of an embedding", self.output, WIDTH),
        ];
        for (what, found, limit) in sizes {
            positive(path, what, found)?;
            at_most(path, what, found, limit)?;
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
        }
        divides(path, "the vision model's width by its heads", self.width, self.heads)?;
        Ok(self)
    }
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
