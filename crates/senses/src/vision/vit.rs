//! Vision transformer (Dosovitskiy et al. 2021): patches to states.

use std::ops::ControlFlow;

use candle_core::{D, DType, Device, Tensor};
use candle_nn::ops::softmax_last_dim;
use foretoken_model::error::{Error, Result};
use foretoken_model::{Projector, VisionConfig, VisionSource};

use super::activation::gelu;
use super::linear::{Linear, Norm};
use super::patches::Patches;

/// Rows of scores that are computed at once: all of a picture would take gigabytes.
const QUERIES: usize = 512;

/// Base of the angles of two-dimensional RoPE.
const THETA: f32 = 10_000.0;

/// A vision transformer.
pub(super) struct Vit {
    config: VisionConfig,
    patch_embedding: Linear,
    positions: Tensor, // [grid * grid, width]
    layers: Vec<Layer>,
    /// `None` if the projector begins with this norm.
    output_norm: Option<Norm>,
}

struct Layer {
    attention_norm: Norm,
    heads: Heads,
    output: Linear,
    feed_norm: Norm,
    up: Linear,
    down: Linear,
}

/// Projections to queries, keys and values.
enum Heads {
    Apart([Linear; 3]),
    Fused(Linear),
}

/// Cosines and sines of two-dimensional RoPE, `[patches, 1, head size]`.
struct Angles {
    cosines: Tensor,
    sines: Tensor,
}

impl Vit {
    /// # Errors
    /// As [`VisionSource::tensor`].
    pub fn load(source: &VisionSource) -> Result<Self> {
        let config = source.config().clone();
        let layers = (0..config.layers).map(|index| Layer::load(source, index)).collect::<Result<_>>()?;
        let has_output_norm = matches!(config.projector, Projector::Idefics3 { .. });
        Ok(Self {
            patch_embedding: patch_embedding(source)?,
            positions: source.tensor("v.position_embd.weight")?,
            layers,
            output_norm: has_output_norm.then(|| Norm::load(source, "v.post_ln")).transpose()?,
            config,
        })
    }

    /// States of all patches, `[patches, width]`. `on_progress` receives the share that is done.
    ///
    /// # Errors
    /// `Error::Compute` without memory; `Error::Cancelled` after `Break`.
    pub fn run(
        &self,
        patches: &Patches,
        on_progress: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Tensor> {
        let mut x = (self.patch_embedding.forward(&patches.pixels)? + self.positions(patches)?)?;
        let angles = match self.config.projector {
            Projector::Idefics3 { .. } => None,
            Projector::Qwen3Vl { .. } => Some(Angles::of(patches, &self.config)?),
        };
        for (number, layer) in self.layers.iter().enumerate() {
            if on_progress(number as f32 / self.layers.len() as f32).is_break() {
                return Err(Error::Cancelled);
            }
            x = layer.forward(&x, angles.as_ref(), &self.config)?;
        }
        self.output_norm.as_ref().map_or(Ok(x.clone()), |norm| norm.forward(&x))
    }

    /// Learned positions of all patches, `[patches, width]`: of a grid like theirs, or interpolated
    /// between the grid's corners.
    fn positions(&self, patches: &Patches) -> Result<Tensor> {
        let grid = self.config.grid;
        let rows = corners(patches.rows, grid);
        let columns = corners(patches.columns, grid);
        let count = patches.places.len();
        let mut positions = Tensor::zeros((count, self.config.width), DType::F32, &Device::Cpu)?;
        for (of_row, of_column) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let taps = patches.places.iter().map(|&(row, column)| {
                let ((row, row_weight), (column, column_weight)) =
                    (rows[row][of_row], columns[column][of_column]);
                ((row * grid + column) as u32, row_weight * column_weight)
            });
            let (indices, weights): (Vec<u32>, Vec<f32>) = taps.unzip();
            let weights = Tensor::from_vec(weights, (count, 1), &Device::Cpu)?;
            let indices = Tensor::new(indices, &Device::Cpu)?;
            positions = (positions + self.positions.index_select(&indices, 0)?.broadcast_mul(&weights)?)?;
        }
        Ok(positions)
    }
}

/// For each of `count` places, the two neighbours among `grid` positions whose first and last are
/// those of the places, and their weights.
fn corners(count: usize, grid: usize) -> Vec<[(usize, f32); 2]> {
    let of = |place: usize| {
        let at = place as f32 * (grid - 1) as f32 / count.saturating_sub(1).max(1) as f32;
        let (low, share) = (at as usize, at.fract());
        [(low.min(grid - 1), 1.0 - share), ((low + 1).min(grid - 1), share)]
    };
    (0..count).map(of).collect()
}

/// Embedding of patches. A model of videos has a kernel for each of two frames; a picture is both.
fn patch_embedding(source: &VisionSource) -> Result<Linear> {
    let mut weight = source.tensor("v.patch_embd.weight")?;
    if source.contains("v.patch_embd.weight.1") {
        weight = (weight + source.tensor("v.patch_embd.weight.1")?)?;
    } else if weight.rank() == 5 {
        weight = weight.sum(2)?;
    }
    let bias = source.tensor("v.patch_embd.bias")?;
    Linear::new(&weight.flatten_from(1)?, Some(bias))
}

impl Layer {
    fn load(source: &VisionSource, index: usize) -> Result<Self> {
        let linear = |part: &str| Linear::load(source, &format!("v.blk.{index}.{part}"));
        let norm = |part: &str| Norm::load(source, &format!("v.blk.{index}.{part}"));
        Ok(Self {
            attention_norm: norm("ln1")?,
            heads: match source.config().projector {
                Projector::Idefics3 { .. } => {
                    Heads::Apart([linear("attn_q")?, linear("attn_k")?, linear("attn_v")?])
                }
                Projector::Qwen3Vl { .. } => Heads::Fused(linear("attn_qkv")?),
            },
            output: linear("attn_out")?,
            feed_norm: norm("ln2")?,
            up: linear("ffn_up")?,
            down: linear("ffn_down")?,
        })
    }

    fn forward(&self, x: &Tensor, angles: Option<&Angles>, config: &VisionConfig) -> Result<Tensor> {
        let attended = self.attend(&self.attention_norm.forward(x)?, angles, config)?;
        let x = (x + self.output.forward(&attended)?)?;
        let hidden = gelu(&self.up.forward(&self.feed_norm.forward(&x)?)?)?;
        Ok((x + self.down.forward(&hidden)?)?)
    }

    /// Attention of every patch to all, `[patches, width]`.
    fn attend(&self, x: &Tensor, angles: Option<&Angles>, config: &VisionConfig) -> Result<Tensor> {
        let patches = x.dim(0)?;
        let size = config.width / config.heads;
        let [queries, keys, values] = self.heads.forward(x)?;
        let split = |x: Tensor| x.reshape((patches, config.heads, size));
        let turned = |x: Tensor| match angles {
            Some(angles) => angles.rotate(&split(x)?),
            None => Ok(split(x)?),
        };
        // [heads, patches, size]
        let by_head = |x: Tensor| Ok::<_, Error>(x.transpose(0, 1)?.contiguous()?);
        let queries = (by_head(turned(queries)?)? * (size as f64).powf(-0.5))?;
        let (keys, values) = (by_head(turned(keys)?)?, by_head(split(values)?)?);
        let keys = keys.t()?.contiguous()?; // [heads, size, patches]
        let mut parts = Vec::new();
        for first in (0..patches).step_by(QUERIES) {
            let queries = queries.narrow(1, first, QUERIES.min(patches - first))?.contiguous()?;
            let weights = softmax_last_dim(&queries.matmul(&keys)?)?;
            parts.push(weights.matmul(&values)?);
        }
        let attended = Tensor::cat(&parts, 1)?.transpose(0, 1)?.contiguous()?;
        Ok(attended.reshape((patches, config.width))?)
    }
}

impl Heads {
    /// Queries, keys and values, `[patches, width]` each.
    fn forward(&self, x: &Tensor) -> Result<[Tensor; 3]> {
        match self {
            Self::Apart([queries, keys, values]) => {
                Ok([queries.forward(x)?, keys.forward(x)?, values.forward(x)?])
            }
            Self::Fused(all) => {
                let all = all.forward(x)?;
                let width = all.dim(1)? / 3;
                let part = |number: usize| all.narrow(1, number * width, width)?.contiguous();
                Ok([part(0)?, part(1)?, part(2)?])
            }
        }
    }
}

impl Angles {
    /// Angles by row in the first half of a half of each head, by column in the second.
    fn of(patches: &Patches, config: &VisionConfig) -> Result<Self> {
        let half = config.width / config.heads / 2;
        let frequencies: Vec<f32> =
            (0..half).step_by(2).map(|pair| 1.0 / THETA.powf(pair as f32 / half as f32)).collect();
        let mut angles = Vec::with_capacity(patches.places.len() * 2 * half);
        for &(row, column) in &patches.places {
            for _ in 0..2 {
                for place in [row, column] {
                    angles.extend(frequencies.iter().map(|frequency| place as f32 * frequency));
                }
            }
        }
        let angles = Tensor::from_vec(angles, (patches.places.len(), 1, 2 * half), &Device::Cpu)?;
        Ok(Self { cosines: angles.cos()?, sines: angles.sin()? })
    }

    /// Rotates pairs of numbers half a head apart, `[patches, heads, size]`.
    fn rotate(&self, x: &Tensor) -> Result<Tensor> {
        let half = x.dim(D::Minus1)? / 2;
        let (first, second) = (x.narrow(D::Minus1, 0, half)?, x.narrow(D::Minus1, half, half)?);
        let turned = Tensor::cat(&[&second.neg()?, &first], D::Minus1)?;
        Ok((x.broadcast_mul(&self.cosines)? + turned.broadcast_mul(&self.sines)?)?)
    }
}
