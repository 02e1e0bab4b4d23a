//! A model's weights on the device, in the CPU engine's panels, and the names of their vectors. Rows of the embedding
//! are looked up on this side, where they take no memory of the GPU's.

use wgpu::Buffer;

use super::device::GpuDevice;
use super::kernels::{LONGEST_HEAD, NONE, TILES};
use crate::error::{Error, Result};
use crate::forward::cpu::block_head as cpu_block;
use crate::forward::cpu::network::{self as cpu, Mixer};
use crate::forward::cpu::panels::{Format, Panels};
use crate::forward::cpu::simd::LANES;
use crate::model::weights::{EMBEDDING, OUTPUT};
use crate::model::{Convolution as Sizes, HeadNorms, ModelConfig, Weights};

/// The most rows for which a panel is read once.
pub const TILE: usize = TILES[TILES.len() - 1];

/// Rows of a block that a draft head guesses, at most: they see each other, so that all go through the layers at once.
const LONGEST_BLOCK: usize = 32;

/// All weights of a model.
#[derive(Debug)]
pub struct Network {
    pub embedding: Panels, // [vocabulary, hidden]
    /// Of embeddings, in families that have one: all 1.
    pub embedding_norm: Option<Vec<f32>>, // [hidden]
    pub layers: Vec<Layer>,
    /// Norms and biases, one after the other.
    pub vectors: Buffer,
    pub output_norm: u32,
    pub output: Matrix, // [vocabulary, hidden]
}

/// A layer. Vectors are named by where they begin, those that the family does not have by [`NONE`].
#[derive(Debug)]
pub struct Layer {
    /// Its index among the kinds of attention.
    pub kind: usize,
    /// A row sees no row of its pass that comes after it.
    pub causal: bool,
    pub mixer_norm: u32,
    pub mixer_post_norm: u32,
    pub feed_forward_norm: u32,
    pub feed_forward_post_norm: u32,
    /// Of queries, keys and values.
    pub biases: [u32; 3],
    /// Of queries and keys.
    pub head_norms: [u32; 2],
    pub query: Matrix, // [heads * head_size, hidden]
    pub key: Matrix,   // [kv_heads * head_size, hidden]
    pub value: Matrix, // [kv_heads * head_size, hidden]
    /// What attention gives is multiplied with the sigmoid of this times what goes into it.
    pub output_gate: Option<Matrix>, // [heads * head_size, hidden]
    pub output: Matrix, // [hidden, heads * head_size]
    pub feed_forward: FeedForward,
    /// Around attention and around the feed-forward network.
    pub convolutions: Option<[Convolution; 2]>,
}

/// A dynamic causal convolution before and after a part of a layer.
#[derive(Debug)]
pub struct Convolution {
    pub sizes: Sizes,
    pub base: Buffer,       // [2, taps, hidden]
    pub projection: Matrix, // [2 * taps * hidden / group, hidden]
}

/// What is done to each token by itself.
#[derive(Debug)]
pub enum FeedForward {
    Dense(Dense),
    Experts {
        /// How many a row goes through.
        used: usize,
        router: Matrix, // [experts, hidden]
        /// Those of all experts, one after the other: each has the shape of one.
        experts: Dense,
    },
}

/// The matrices of a gated feed-forward network.
#[derive(Debug)]
pub struct Dense {
    pub gate: Matrix, // [intermediate, hidden]
    pub up: Matrix,   // [intermediate, hidden]
    pub down: Matrix, // [hidden, intermediate]
}

/// A packed matrix `[rows, inputs]`, or several of one shape, in parts that a buffer can hold.
#[derive(Debug)]
pub struct Matrix {
    pub format: Format,
    pub rows: usize,
    pub inputs: usize,
    pub parts: Vec<Part>,
}

/// Some panels of a matrix, from number `first` on.
#[derive(Debug)]
pub struct Part {
    pub weights: Buffer,
    pub first: usize,
    pub panels: usize,
}

const RECURRENT: &str = "layers that keep a state in place of keys and values";

/// What is missing here that a model needs, if anything, to be put after "run".
pub fn missing(config: &ModelConfig) -> Option<&'static str> {
    if config.recurrence.is_some() {
        Some(RECURRENT)
    } else if config.block().is_some_and(|block| block.rows > LONGEST_BLOCK) {
        Some("draft heads that guess more than 32 tokens at once")
    } else if config.family.head_norms == HeadNorms::Together || !config.family.pre_norms {
        Some("norms of all heads together")
    } else if config.family.sinks {
        Some("attention with sinks")
    } else if config.family.value_norms || config.is_uneven() {
        Some("layers that differ in their heads")
    } else if config.head_size > LONGEST_HEAD {
        Some("heads of more than 512 numbers")
    } else {
        None
    }
}

impl Network {
    /// Layer by layer, so that this computer's memory holds one of them beside the embedding.
    ///
    /// # Errors
    /// Those of loading weights, `Error::Compute` when the device has no room.
    pub fn load(device: &GpuDevice, weights: &Weights, config: &ModelConfig) -> Result<Self> {
        let mut vectors = Vec::new();
        let layers = (0..config.layers).map(|index| {
            let layer = Layer::upload(device, cpu::Layer::load(weights, config, index)?, &mut vectors)?;
            // Gives back what lay ready for the device.
            device.queue().submit([]);
            device.wait()?;
            Ok(layer)
        });
        let layers = layers.collect::<Result<_>>()?;
        let embedding = cpu::panels(weights, EMBEDDING)?;
        let output = match config.tied_embeddings {
            true => Matrix::upload(device, &embedding)?,
            false => Matrix::upload(device, &cpu::panels(weights, OUTPUT)?)?,
        };
        let output_norm = push(&mut vectors, &cpu::vector(weights, "output_norm.weight")?);
        let all = device.buffer(4 * vectors.len())?;
        device.write(&all, vectors.into_iter().map(f32::to_bits));
        device.queue().submit([]);
        device.wait()?;
        let embedding_norm = config.family.normed_embeddings.then(|| cpu::ones(config.hidden));
        Ok(Self { embedding, embedding_norm, layers, vectors: all, output_norm, output })
    }
}

impl Layer {
    fn upload(device: &GpuDevice, layer: cpu::Layer, vectors: &mut Vec<f32>) -> Result<Self> {
        let Mixer::Attention(attention) = layer.mixer else { return Err(Error::NotOnGpu(RECURRENT)) };
        let upload = |panels: &Panels| Matrix::upload(device, panels);
        let (Some(key), Some(value)) = (&attention.key, &attention.value) else {
            return Err(Error::NotOnGpu("layers that see the keys of others"));
        };
        let mut push_if = |vector: Option<&[f32]>| vector.map_or(NONE, |vector| push(vectors, vector));
        let biases = attention.biases.as_ref();
        let norms = attention.head_norms.as_ref();
        let convolutions = layer.convolutions.as_ref().map(|[mixer, feed_forward]| -> Result<_> {
            Ok([Convolution::upload(device, mixer)?, Convolution::upload(device, feed_forward)?])
        });
        Ok(Self {
            kind: attention.kind,
            causal: attention.causal,
            mixer_norm: push_if(layer.mixer_norm.as_deref()),
            mixer_post_norm: push_if(layer.mixer_post_norm.as_deref()),
            feed_forward_norm: push_if(layer.feed_forward_norm.as_deref()),
            feed_forward_post_norm: push_if(layer.feed_forward_post_norm.as_deref()),
            biases: [
                push_if(biases.map(|biases| &biases.query[..])),
                push_if(biases.map(|biases| &biases.key[..])),
                push_if(biases.map(|biases| &biases.value[..])),
            ],
            head_norms: [
                push_if(norms.map(|norms| &norms.query[..])),
                push_if(norms.map(|norms| &norms.key[..])),
            ],
            query: upload(&attention.query)?,
            key: upload(key)?,
            value: upload(value)?,
            output_gate: attention.gate.as_ref().map(upload).transpose()?,
            output: upload(&attention.output)?,
            feed_forward: FeedForward::upload(device, &layer.feed_forward)?,
            convolutions: convolutions.transpose()?,
        })
    }
}

impl Layer {
    /// Bytes of weights that are read for so many rows; as often as a panel is, for a tile each time.
    pub fn reads(&self, rows: usize) -> u64 {
        let mixer = [&self.query, &self.key, &self.value, &self.output];
        let mixer: u64 = mixer.into_iter().chain(&self.output_gate).map(|matrix| matrix.reads(rows)).sum();
        mixer + self.feed_forward.reads(rows)
    }
}

impl Convolution {
    fn upload(device: &GpuDevice, convolution: &cpu_block::Convolution) -> Result<Self> {
        let base = device.buffer(4 * convolution.base.len())?;
        device.write(&base, convolution.base.iter().map(|number| number.to_bits()));
        let projection = Matrix::upload(device, &convolution.projection)?;
        Ok(Self { sizes: convolution.sizes, base, projection })
    }
}

impl FeedForward {
    fn reads(&self, rows: usize) -> u64 {
        match self {
            Self::Dense(dense) => dense.matrices().into_iter().map(|matrix| matrix.reads(rows)).sum(),
            Self::Experts { router, experts, used } => {
                let of_one = |matrix: &Matrix| matrix.bytes() / router.rows as u64;
                let chosen = (rows * used).min(rows.div_ceil(TILE) * router.rows) as u64;
                router.reads(rows) + chosen * experts.matrices().into_iter().map(of_one).sum::<u64>()
            }
        }
    }

    fn upload(device: &GpuDevice, feed_forward: &cpu::FeedForward) -> Result<Self> {
        Ok(match feed_forward {
            cpu::FeedForward::Dense(dense) => {
                Self::Dense(Dense::upload(device, std::slice::from_ref(dense))?)
            }
            cpu::FeedForward::Experts(experts) => Self::Experts {
                used: experts.used,
                router: Matrix::upload(device, &experts.router)?,
                experts: Dense::upload(device, &experts.experts)?,
            },
            cpu::FeedForward::Both(_) | cpu::FeedForward::Shared(_) => {
                return Err(Error::NotOnGpu("experts beside a network"));
            }
        })
    }
}

impl Dense {
    fn matrices(&self) -> [&Matrix; 3] {
        [&self.gate, &self.up, &self.down]
    }

    /// Of networks of one shape.
    fn upload(device: &GpuDevice, networks: &[cpu::Dense]) -> Result<Self> {
        let stack = |of: fn(&cpu::Dense) -> &Panels| {
            Matrix::stack(device, &networks.iter().map(of).collect::<Vec<_>>())
        };
        Ok(Self {
            gate: stack(|dense| &dense.gate)?,
            up: stack(|dense| &dense.up)?,
            down: stack(|dense| &dense.down)?,
        })
    }
}

fn push(vectors: &mut Vec<f32>, vector: &[f32]) -> u32 {
    let at = vectors.len() as u32;
    vectors.extend(vector);
    at
}

impl Matrix {
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn upload(device: &GpuDevice, panels: &Panels) -> Result<Self> {
        Self::stack(device, &[panels])
    }

    /// Matrices of one shape, the panels of one after those of the other.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room, `Error::NotOnGpu` for matrices in several formats.
    pub fn stack(device: &GpuDevice, matrices: &[&Panels]) -> Result<Self> {
        let one = matrices[0];
        if matrices.iter().any(|matrix| matrix.format() != one.format()) {
            return Err(Error::NotOnGpu("experts of which some are in other formats"));
        }
        let (size, own) = (one.panel(0).len(), one.panels());
        let most = (device.largest_buffer() as usize / size).clamp(1, 65_535);
        let total = own * matrices.len();
        let part = |first: usize| {
            let count = most.min(total - first);
            let weights = device.buffer(count * size)?;
            // Of each matrix the panels that are in this part.
            for (index, matrix) in matrices.iter().enumerate() {
                let begin = first.clamp(index * own, (index + 1) * own);
                let end = (first + count).clamp(begin, (index + 1) * own);
                if begin < end {
                    let panels = matrix.run(begin - index * own, end - begin);
                    device.queue().write_buffer(&weights, ((begin - first) * size) as u64, panels);
                }
            }
            Ok(Part { weights, first, panels: count })
        };
        let parts = (0..total).step_by(most).map(part).collect::<Result<_>>()?;
        Ok(Self { format: one.format(), rows: one.rows(), inputs: one.inputs(), parts })
    }

    fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.weights.size()).sum()
    }

    /// Bytes that are read for so many rows.
    pub fn reads(&self, rows: usize) -> u64 {
        rows.div_ceil(TILE) as u64 * self.bytes()
    }

    /// Panels of one of the matrices.
    pub fn panels(&self) -> usize {
        self.rows.div_ceil(LANES)
    }
}
