//! Projectors: states of several neighbouring patches become one embedding of the language model.

use candle_core::{D, Tensor};
use foretoken_model::error::Result;
use foretoken_model::{Projector, VisionSource};

use super::linear::{Linear, Norm};
use super::patches::Patches;
use super::vit::States;

/// Layers of a projector.
pub(super) enum ProjectorLayers {
    /// Neighbours side by side (pixel shuffle), then a matrix.
    Idefics3 { merge: usize, matrix: Linear },
    /// Mergers of the last states, and of those of inner layers.
    Qwen3Vl { last: Merger, inner: Vec<Merger> },
    /// Means of neighbours, standardised in some models; a norm and a matrix.
    Gemma4 { merge: usize, standard: Option<Standard>, norm: Norm, matrix: Linear },
    /// A norm, a matrix for neighbours, two matrices with GELU between.
    Pixtral { merge: usize, norm: Norm, merger: Linear, first: Linear, second: Linear },
}

/// A norm, neighbours side by side, two matrices with GELU between.
pub(super) struct Merger {
    /// Neighbours per embedding.
    unit: usize,
    norm: Norm,
    /// The norm is that of neighbours side by side.
    merges_first: bool,
    first: Linear,
    second: Linear,
}

/// Standardisation `(x - bias) * scale`.
pub(super) struct Standard {
    bias: Tensor,  // [width]
    scale: Tensor, // [width]
}

impl ProjectorLayers {
    /// # Errors
    /// As [`VisionSource::tensor`].
    pub fn load(source: &VisionSource) -> Result<Self> {
        let config = source.config();
        let merge = config.merge;
        Ok(match config.projector {
            Projector::Idefics3 { .. } => {
                Self::Idefics3 { merge, matrix: Linear::load(source, "mm.model.fc")? }
            }
            Projector::Qwen3Vl { .. } => {
                let inner = |layer: &usize| {
                    let names = ["norm", "fc1", "fc2"].map(|part| format!("v.deepstack.{layer}.{part}"));
                    Merger::load(source, &names, true)
                };
                Self::Qwen3Vl {
                    last: Merger::load(source, &["v.post_ln", "mm.0", "mm.2"].map(str::to_owned), false)?,
                    inner: config.deepstack.iter().map(inner).collect::<Result<_>>()?,
                }
            }
            Projector::Gemma4 { .. } => Self::Gemma4 {
                merge,
                standard: config.standardised.then(|| Standard::load(source)).transpose()?,
                norm: Norm::plain(config.width, config.epsilon)?,
                matrix: Linear::load(source, "mm.input_projection")?,
            },
            Projector::Pixtral { epsilon, .. } => Self::Pixtral {
                merge,
                norm: Norm::load(source, "mm.input_norm")?.with_epsilon(epsilon),
                merger: Linear::load(source, "mm.patch_merger")?,
                first: Linear::load(source, "mm.1")?,
                second: Linear::load(source, "mm.2")?,
            },
        })
    }

    /// Embeddings of a picture from the states of its patches, `[embeddings, hidden]`. Those of
    /// inner layers follow in the same rows.
    ///
    /// # Errors
    /// `Error::Compute` without memory.
    pub fn run(&self, states: &States, patches: &Patches) -> Result<Tensor> {
        let last = &states.last;
        match self {
            Self::Idefics3 { merge, matrix } => {
                matrix.forward(&blocks(last, patches, *merge)?.flatten_from(1)?)
            }
            Self::Qwen3Vl { last: merger, inner } => {
                let mut embeddings = vec![merger.run(last)?];
                for (merger, states) in inner.iter().zip(&states.inner) {
                    embeddings.push(merger.run(states)?);
                }
                Ok(Tensor::cat(&embeddings, 1)?)
            }
            Self::Gemma4 { merge, standard, norm, matrix } => {
                let means = blocks(last, patches, *merge)?.mean(1)?;
                let mut pooled = (means * (last.dim(D::Minus1)? as f64).sqrt())?;
                if let Some(Standard { bias, scale }) = standard {
                    pooled = pooled.broadcast_sub(bias)?.broadcast_mul(scale)?;
                }
                matrix.forward(&norm.forward(&pooled)?)
            }
            Self::Pixtral { merge, norm, merger, first, second } => {
                let blocks = blocks(&norm.forward(last)?, patches, *merge)?;
                // The neighbours of a number are side by side.
                let merged = blocks.transpose(1, 2)?.contiguous()?.flatten_from(1)?;
                second.forward(&first.forward(&merger.forward(&merged)?)?.gelu_erf()?)
            }
        }
    }
}

/// States of neighbouring patches together, `[blocks, neighbours, width]`: blocks row by row, and
/// row by row within them.
fn blocks(states: &Tensor, patches: &Patches, merge: usize) -> Result<Tensor> {
    let (rows, columns) = (patches.rows / merge, patches.columns / merge);
    let width = states.dim(D::Minus1)?;
    // [rows, row in block, columns, column in block and number]
    let blocks = states.reshape((rows, merge, columns, merge * width))?.transpose(1, 2)?;
    Ok(blocks.contiguous()?.reshape((rows * columns, merge * merge, width))?)
}

impl Merger {
    fn load(source: &VisionSource, [norm, first, second]: &[String; 3], merges_first: bool) -> Result<Self> {
        Ok(Self {
            unit: source.config().merge * source.config().merge,
            norm: Norm::load(source, norm)?,
            merges_first,
            first: Linear::load(source, first)?,
            second: Linear::load(source, second)?,
        })
    }

    /// `[patches, width]` to `[patches / unit, hidden]`, where neighbours follow each other.
    fn run(&self, states: &Tensor) -> Result<Tensor> {
        let (count, width) = states.dims2()?;
        let merged = |x: &Tensor| x.reshape((count / self.unit, self.unit * width));
        let normed = match self.merges_first {
            true => self.norm.forward(&merged(states)?)?,
            false => merged(&self.norm.forward(states)?)?,
        };
        self.second.forward(&self.first.forward(&normed)?.gelu_erf()?)
    }
}

impl Standard {
    fn load(source: &VisionSource) -> Result<Self> {
        Ok(Self { bias: source.tensor("v.std_bias")?, scale: source.tensor("v.std_scale")? })
    }
}
