//! Vision transformer (Dosovitskiy et al. 2021) with the options of all families: patches to states.

use std::ops::ControlFlow;

use candle_core::{D, DType, Device, Tensor};
use candle_nn::ops::softmax_last_dim;
use foretoken_model::error::{Error, Result};
use foretoken_model::{
    LearnedPositions, Projector, Rotation, RotationLayout, VisionConfig, VisionSource, VitOptions,
};

use super::activation::activated;
use super::linear::{Linear, Norm};
use super::patches::Patches;

/// Rows of scores that are computed at once: all of a picture would take gigabytes.
const QUERIES: usize = 512;

/// A vision transformer.
pub(super) struct Vit {
    config: VisionConfig,
    options: VitOptions,
    patch_embedding: Linear,
    positions: Option<Tensor>, // [grid * grid, width] or [2 * grid, width]
    first_norm: Option<Norm>,
    layers: Vec<Layer>,
    /// `None` if the projector begins with this norm.
    last_norm: Option<Norm>,
}

/// States of all patches, `[patches, width]` each.
pub(super) struct States {
    /// Those after the last layer.
    pub last: Tensor,
    /// Those after the layers that [`VisionConfig::deepstack`] names.
    pub inner: Vec<Tensor>,
}

struct Layer {
    attention_norm: Norm,
    heads: Heads,
    head_norms: Option<HeadNorms>,
    output: Linear,
    /// Norm of the output of attention.
    attention_post_norm: Option<Norm>,
    feed_norm: Norm,
    gate: Option<Linear>,
    up: Linear,
    down: Linear,
    /// Norm of the output of the feed-forward network.
    feed_post_norm: Option<Norm>,
}

/// Projections to queries, keys and values.
enum Heads {
    Apart([Linear; 3]),
    Fused(Linear),
}

/// Norms of the components of each head.
struct HeadNorms {
    query: Norm,
    key: Norm,
    value: Norm,
}

/// Cosines and sines of two-dimensional RoPE, `[patches, 1, spans, span]`: the components of a
/// head, in spans within which pairs are half a span apart.
struct Angles {
    cosines: Tensor,
    sines: Tensor,
}

impl Vit {
    /// # Errors
    /// As [`VisionSource::tensor`].
    pub fn load(source: &VisionSource) -> Result<Self> {
        let config = source.config().clone();
        let options = config.projector.options();
        let norm = |is_there: bool, name: &str| is_there.then(|| Norm::load(source, name)).transpose();
        Ok(Self {
            patch_embedding: patch_embedding(source)?,
            positions: learned_positions(source, options)?,
            first_norm: norm(options.first_norm, "v.pre_ln")?,
            layers: (0..config.layers).map(|index| Layer::load(source, index)).collect::<Result<_>>()?,
            last_norm: norm(options.last_norm, "v.post_ln")?,
            options,
            config,
        })
    }

    /// States of all patches. `on_progress` receives the share that is done.
    ///
    /// # Errors
    /// `Error::Compute` without memory; `Error::Cancelled` after `Break`.
    pub fn run(
        &self,
        patches: &Patches,
        on_progress: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<States> {
        let mut x = self.patch_embedding.forward(&patches.pixels)?;
        if let Some(positions) = &self.positions {
            x = (x + self.placed(positions, patches)?)?;
        }
        if let Some(norm) = &self.first_norm {
            x = norm.forward(&x)?;
        }
        let rotation = self.options.rotation;
        let angles = rotation.map(|rotation| Angles::of(patches, &self.config, rotation)).transpose()?;
        let mut inner = Vec::new();
        for (number, layer) in self.layers.iter().enumerate() {
            if on_progress(number as f32 / self.layers.len() as f32).is_break() {
                return Err(Error::Cancelled);
            }
            x = layer.forward(&x, angles.as_ref(), &self.config)?;
            if self.config.deepstack.contains(&number) {
                inner.push(x.clone());
            }
        }
        let last = self.last_norm.as_ref().map_or(Ok(x.clone()), |norm| norm.forward(&x))?;
        Ok(States { last, inner })
    }

    /// Learned positions of all patches, `[patches, width]`.
    fn placed(&self, positions: &Tensor, patches: &Patches) -> Result<Tensor> {
        if self.options.positions == LearnedPositions::Grid {
            return self.interpolated(positions, patches);
        }
        let of = |index: &dyn Fn(&(usize, usize)) -> usize| -> Result<Tensor> {
            let indices: Vec<u32> = patches.places.iter().map(|place| index(place) as u32).collect();
            Ok(positions.index_select(&Tensor::new(indices, &Device::Cpu)?, 0)?)
        };
        Ok((of(&|&(_, column)| column)? + of(&|&(row, _)| self.config.grid + row)?)?)
    }

    /// Positions of a grid like that of the patches, or interpolated between the grid's corners.
    fn interpolated(&self, learned: &Tensor, patches: &Patches) -> Result<Tensor> {
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
            positions = (positions + learned.index_select(&indices, 0)?.broadcast_mul(&weights)?)?;
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

/// Learned positions one after the other, `[positions, width]`.
fn learned_positions(source: &VisionSource, options: VitOptions) -> Result<Option<Tensor>> {
    if options.positions == LearnedPositions::None {
        return Ok(None);
    }
    Ok(Some(source.tensor("v.position_embd.weight")?.reshape(((), source.config().width))?))
}

/// Embedding of patches, whose channels follow each other. A model of videos has a kernel for each
/// of two frames; a picture is both.
fn patch_embedding(source: &VisionSource) -> Result<Linear> {
    let &VisionConfig { width, patch, projector, .. } = source.config();
    let mut weight = source.tensor("v.patch_embd.weight")?;
    if source.contains("v.patch_embd.weight.1") {
        weight = (weight + source.tensor("v.patch_embd.weight.1")?)?;
    } else if weight.rank() == 5 {
        weight = weight.sum(2)?;
    } else if weight.rank() == 2 && matches!(projector, Projector::Gemma4 { .. }) {
        // The channels of a pixel are together.
        weight = weight.reshape((width, patch * patch, 3))?.transpose(1, 2)?.contiguous()?;
    }
    let bias = "v.patch_embd.bias";
    let bias = source.contains(bias).then(|| source.tensor(bias)).transpose()?;
    Linear::new(&weight.flatten_from(1)?, bias)
}

impl Layer {
    fn load(source: &VisionSource, index: usize) -> Result<Self> {
        let options = source.config().projector.options();
        let linear = |part: &str| Linear::load(source, &format!("v.blk.{index}.{part}"));
        let norm = |part: &str| Norm::load(source, &format!("v.blk.{index}.{part}"));
        let post_norm = |part: &str| options.post_norms.then(|| norm(part)).transpose();
        Ok(Self {
            attention_norm: norm("ln1")?,
            heads: Heads::load(source, index)?,
            head_norms: options.head_norms.then(|| HeadNorms::load(source, index)).transpose()?,
            output: linear("attn_out")?,
            attention_post_norm: post_norm("attn_post_norm")?,
            feed_norm: norm("ln2")?,
            gate: options.gate.then(|| linear("ffn_gate")).transpose()?,
            up: linear("ffn_up")?,
            down: linear("ffn_down")?,
            feed_post_norm: post_norm("ffn_post_norm")?,
        })
    }

    fn forward(&self, x: &Tensor, angles: Option<&Angles>, config: &VisionConfig) -> Result<Tensor> {
        let attended = self.attend(&self.attention_norm.forward(x)?, angles, config)?;
        let x = (x + normed(self.attention_post_norm.as_ref(), self.output.forward(&attended)?)?)?;
        let input = self.feed_norm.forward(&x)?;
        let up = self.up.forward(&input)?;
        let hidden = match &self.gate {
            Some(gate) => (activated(config.activation, &gate.forward(&input)?)? * up)?,
            None => activated(config.activation, &up)?,
        };
        Ok((x + normed(self.feed_post_norm.as_ref(), self.down.forward(&hidden)?)?)?)
    }

    /// Attention of every patch to all, `[patches, width]`.
    fn attend(&self, x: &Tensor, angles: Option<&Angles>, config: &VisionConfig) -> Result<Tensor> {
        let patches = x.dim(0)?;
        let size = config.width / config.heads;
        let [queries, keys, values] = self.heads.forward(x)?;
        // [patches, heads, size]
        let split = |x: Tensor, norm: Option<&Norm>| normed(norm, x.reshape((patches, config.heads, size))?);
        let turned = |x: Tensor| angles.map_or(Ok(x.clone()), |angles| angles.rotate(&x));
        // [heads, patches, size]
        let by_head = |x: Tensor| Ok::<_, Error>(x.transpose(0, 1)?.contiguous()?);
        let norms = self.head_norms.as_ref();
        let scale = if norms.is_some() { 1.0 } else { (size as f64).powf(-0.5) };
        let queries = (by_head(turned(split(queries, norms.map(|norms| &norms.query))?)?)? * scale)?;
        let keys = by_head(turned(split(keys, norms.map(|norms| &norms.key))?)?)?;
        let values = by_head(split(values, norms.map(|norms| &norms.value))?)?;
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

fn normed(norm: Option<&Norm>, x: Tensor) -> Result<Tensor> {
    norm.map_or(Ok(x.clone()), |norm| norm.forward(&x))
}

impl Heads {
    fn load(source: &VisionSource, index: usize) -> Result<Self> {
        let config = source.config();
        let name = |part: &str| format!("v.blk.{index}.{part}");
        if config.projector.options().fused {
            return Ok(Self::Fused(Linear::load(source, &name("attn_qkv"))?));
        }
        let part = |part: &str| Linear::load(source, &name(part));
        // llama.cpp's converter permutes the rows of Pixtral's queries and keys.
        let is_permuted = matches!(config.projector, Projector::Pixtral { .. }) && !source.path().is_dir();
        let rotated = |part: &str| match is_permuted {
            true => {
                let weight = source.tensor(&format!("{}.weight", name(part)))?;
                Linear::new(&in_halves(&weight, config.heads)?, None)
            }
            false => Linear::load(source, &name(part)),
        };
        Ok(Self::Apart([rotated("attn_q")?, rotated("attn_k")?, part("attn_v")?]))
    }

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

/// Rows of a matrix whose heads have rotated pairs side by side, moved half a head apart.
fn in_halves(weight: &Tensor, heads: usize) -> Result<Tensor> {
    let (rows, columns) = weight.dims2()?;
    let pairs = weight.reshape((heads, rows / heads / 2, 2, columns))?;
    Ok(pairs.transpose(1, 2)?.contiguous()?.reshape((rows, columns))?)
}

impl HeadNorms {
    fn load(source: &VisionSource, index: usize) -> Result<Self> {
        let norm = |part: &str| Norm::load(source, &format!("v.blk.{index}.{part}"));
        let config = source.config();
        Ok(Self {
            query: norm("attn_q_norm")?,
            key: norm("attn_k_norm")?,
            value: Norm::plain(config.width / config.heads, config.epsilon)?,
        })
    }
}

impl Angles {
    /// Angles of all components of a head, by rows and columns of the patches.
    fn of(patches: &Patches, config: &VisionConfig, Rotation { base, layout }: Rotation) -> Result<Self> {
        let size = config.width / config.heads;
        let half = size / 2;
        // Every second frequency of a whole head.
        let frequencies = |first: usize| -> Vec<f32> {
            (first..half).step_by(2).map(|number| 1.0 / base.powf(number as f32 / half as f32)).collect()
        };
        let (of_columns, spans) = match layout {
            RotationLayout::RowsThenColumns => (frequencies(0), 1),
            RotationLayout::ColumnsBesideRows => (frequencies(0), 2),
            RotationLayout::Alternating => (frequencies(1), 1),
        };
        let of_rows = frequencies(0);
        let mut angles = Vec::with_capacity(patches.places.len() * size);
        for &(row, column) in &patches.places {
            let by_row = of_rows.iter().map(|frequency| row as f32 * frequency);
            let by_column = of_columns.iter().map(|frequency| column as f32 * frequency);
            match layout {
                RotationLayout::ColumnsBesideRows => {
                    angles.extend(by_column.clone().chain(by_column));
                    angles.extend(by_row.clone().chain(by_row));
                }
                RotationLayout::RowsThenColumns | RotationLayout::Alternating => {
                    let both = by_row.chain(by_column);
                    angles.extend(both.clone().chain(both));
                }
            }
        }
        let shape = (patches.places.len(), 1, spans, size / spans);
        let angles = Tensor::from_vec(angles, shape, &Device::Cpu)?;
        Ok(Self { cosines: angles.cos()?, sines: angles.sin()? })
    }

    /// Rotates pairs of components, `[patches, heads, size]`.
    fn rotate(&self, x: &Tensor) -> Result<Tensor> {
        let (patches, heads, size) = x.dims3()?;
        let (_, _, spans, span) = self.cosines.dims4()?;
        let x = x.reshape((patches, heads, spans, span))?;
        let (first, second) = (x.narrow(D::Minus1, 0, span / 2)?, x.narrow(D::Minus1, span / 2, span / 2)?);
        let turned = Tensor::cat(&[&second.neg()?, &first], D::Minus1)?;
        let rotated = (x.broadcast_mul(&self.cosines)? + turned.broadcast_mul(&self.sines)?)?;
        Ok(rotated.reshape((patches, heads, size))?)
    }
}
