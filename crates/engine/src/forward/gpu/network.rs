//! A model's weights on the device, in the CPU engine's panels, and the names of their vectors. Rows of the embedding
//! are looked up on this side, where they take no memory of the GPU's.

use wgpu::Buffer;

use super::device::GpuDevice;
use super::kernels::{LONGEST_HEAD, NONE};
use crate::error::Result;
use crate::forward::cpu::network::{self as cpu, FeedForward, Mixer};
use crate::forward::cpu::panels::{Format, Panels};
use crate::model::weights::{EMBEDDING, OUTPUT};
use crate::model::{ModelConfig, Weights};

/// All weights of a model.
#[derive(Debug)]
pub struct Network {
    pub embedding: Panels, // [vocabulary, hidden]
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
    pub mixer_norm: u32,
    pub mixer_post_norm: u32,
    pub feed_forward_norm: u32,
    pub feed_forward_post_norm: u32,
    /// Of queries, keys and values.
    pub biases: [u32; 3],
    /// Of queries and keys.
    pub head_norms: [u32; 2],
    pub query: Matrix,  // [heads * head_size, hidden]
    pub key: Matrix,    // [kv_heads * head_size, hidden]
    pub value: Matrix,  // [kv_heads * head_size, hidden]
    pub output: Matrix, // [hidden, heads * head_size]
    pub gate: Matrix,   // [intermediate, hidden]
    pub up: Matrix,     // [intermediate, hidden]
    pub down: Matrix,   // [hidden, intermediate]
}

/// A packed matrix `[rows, inputs]`, in parts that a buffer can hold.
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

/// What is missing here that a model needs, if anything, to be put after "run".
pub fn missing(config: &ModelConfig) -> Option<&'static str> {
    if config.draft_head.is_some() {
        Some("draft heads")
    } else if config.experts.is_some() {
        Some("models of experts")
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
        Ok(Self { embedding, layers, vectors: all, output_norm, output })
    }
}

impl Layer {
    fn upload(device: &GpuDevice, layer: cpu::Layer, vectors: &mut Vec<f32>) -> Result<Self> {
        let (Mixer::Attention(attention), FeedForward::Dense(dense)) = (layer.mixer, layer.feed_forward)
        else {
            unreachable!("a model with something that is missing here")
        };
        let upload = |panels: &Panels| Matrix::upload(device, panels);
        let mut push_if = |vector: Option<&[f32]>| vector.map_or(NONE, |vector| push(vectors, vector));
        let biases = attention.biases.as_ref();
        let norms = attention.head_norms.as_ref();
        Ok(Self {
            kind: attention.kind,
            mixer_norm: push_if(Some(&layer.mixer_norm)),
            mixer_post_norm: push_if(layer.mixer_post_norm.as_deref()),
            feed_forward_norm: push_if(Some(&layer.feed_forward_norm)),
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
            key: upload(&attention.key)?,
            value: upload(&attention.value)?,
            output: upload(&attention.output)?,
            gate: upload(&dense.gate)?,
            up: upload(&dense.up)?,
            down: upload(&dense.down)?,
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
        let size = panels.panel(0).len();
        let most = (device.largest_buffer() as usize / size).clamp(1, 65_535);
        let part = |first: usize| {
            let count = most.min(panels.panels() - first);
            let weights = device.buffer(count * size)?;
            device.queue().write_buffer(&weights, 0, panels.run(first, count));
            Ok(Part { weights, first, panels: count })
        };
        let parts = (0..panels.panels()).step_by(most).map(part).collect::<Result<_>>()?;
        Ok(Self { format: panels.format(), rows: panels.rows(), inputs: panels.inputs(), parts })
    }
}
