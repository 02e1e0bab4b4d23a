//! Projectors: states of several neighbouring patches become one embedding of the language model.

use candle_core::Tensor;
use foretoken_model::error::Result;
use foretoken_model::{Projector, VisionSource};

use super::linear::{Linear, Norm};
use super::patches::Patches;

/// Layers of a projector.
pub(super) enum ProjectorLayers {
    /// Neighbours side by side (pixel shuffle), then a matrix.
    Idefics3 { merge: usize, matrix: Linear },
    /// A norm, neighbours side by side, two matrices with GELU between.
    Qwen3Vl { merge: usize, norm: Norm, first: Linear, second: Linear },
}

impl ProjectorLayers {
    /// # Errors
    /// As [`VisionSource::tensor`].
    pub fn load(source: &VisionSource) -> Result<Self> {
        let merge = source.config().merge;
        Ok(match source.config().projector {
            Projector::Idefics3 { .. } => {
                Self::Idefics3 { merge, matrix: Linear::load(source, "mm.model.fc")? }
            }
            Projector::Qwen3Vl { .. } => Self::Qwen3Vl {
                merge,
                norm: Norm::load(source, "v.post_ln")?,
                first: Linear::load(source, "mm.0")?,
                second: Linear::load(source, "mm.2")?,
            },
        })
    }

    /// Embeddings of a picture, `[embeddings, hidden]`, from the states of its patches.
    ///
    /// # Errors
    /// `Error::Compute` without memory.
    pub fn run(&self, states: &Tensor, patches: &Patches) -> Result<Tensor> {
        let (count, width) = states.dims2()?;
        match self {
            Self::Idefics3 { merge, matrix } => {
                let merge = *merge;
                let (rows, columns) = (patches.rows / merge, patches.columns / merge);
                // [rows, row in block, columns, column in block and number]
                let blocks = states.reshape((rows, merge, columns, merge * width))?.transpose(1, 2)?;
                let merged = blocks.contiguous()?.reshape((rows * columns, merge * merge * width))?;
                matrix.forward(&merged)
            }
            Self::Qwen3Vl { merge, norm, first, second } => {
                let unit = merge * merge;
                let merged = norm.forward(states)?.reshape((count / unit, unit * width))?;
                second.forward(&first.forward(&merged)?.gelu_erf()?)
            }
        }
    }
}
