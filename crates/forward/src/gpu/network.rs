//! A model's weights on the device. Rows of an embedding that is not also the output matrix are
//! looked up on the CPU, so they take no GPU memory.

use std::collections::HashSet;

use foretoken_model::error::{Error, Result};
use foretoken_model::tables::outer::{EMBEDDING, OUTPUT};
use foretoken_model::{Convolution as Sizes, HeadKind, ModelConfig, Weights};
use wgpu::Buffer;

use super::device::GpuDevice;
use super::kernels::{Kernel, LONGEST_HEAD, NONE};
use super::matrix::{Matrix, TILE};
use crate::cpu::block_head as cpu_block;
use crate::cpu::network::{self as cpu, Mixer};
use crate::cpu::panels::{Format, Panels};

/// Most rows of a block. They attend to each other, so all go through the layers together.
const LONGEST_BLOCK: usize = 32;

/// All weights of a model.
#[derive(Debug)]
pub struct Network {
    /// `None` if a kernel looks up rows of the output matrix.
    pub embedding: Option<Panels>, // [vocabulary, hidden]
    /// Norm of embeddings, in families that have one: all 1.
    pub embedding_norm: Option<Vec<f32>>, // [hidden]
    pub layers: Vec<Layer>,
    /// Norms and biases of all layers, concatenated.
    pub vectors: Buffer,
    pub output_norm: u32,
    pub output: Matrix, // [vocabulary, hidden]
}

/// Weights of a layer. Vectors are offsets into [`Network::vectors`], or [`NONE`].
#[derive(Debug)]
pub struct Layer {
    /// Index of the kind of attention.
    pub kind: usize,
    /// Rows do not attend to later rows of their pass.
    pub causal: bool,
    pub mixer_norm: u32,
    pub mixer_post_norm: u32,
    pub feed_forward_norm: u32,
    pub feed_forward_post_norm: u32,
    /// Biases of queries, keys and values.
    pub biases: [u32; 3],
    /// Norms of queries and keys.
    pub head_norms: [u32; 2],
    /// Queries, output gates in some families, keys and values, stacked vertically.
    pub heads: Vec<Matrix>, // [(heads or twice as many + 2 * kv_heads) * head_size, hidden]
    pub output: Matrix, // [hidden, heads * head_size]
    pub feed_forward: FeedForward,
    /// Convolutions around attention and around the feed-forward network.
    pub convolutions: Option<[Convolution; 2]>,
}

/// A dynamic causal convolution before and after a part of a layer.
#[derive(Debug)]
pub struct Convolution {
    pub sizes: Sizes,
    pub base: Buffer,       // [2, taps, hidden]
    pub projection: Matrix, // [2 * taps * hidden / group, hidden]
}

/// Feed-forward network of a layer.
#[derive(Debug)]
pub enum FeedForward {
    Dense(Dense),
    Experts {
        count: usize,
        /// Experts per row.
        top_k: usize,
        router: Matrix, // [experts, hidden]
        /// Matrices of all experts, concatenated.
        experts: Dense,
    },
}

/// The matrices of a gated feed-forward network.
#[derive(Debug)]
pub struct Dense {
    pub gate: Gate,
    pub down: Matrix, // [hidden, intermediate]
}

/// Gate and up matrices of a feed-forward network.
#[derive(Debug)]
pub enum Gate {
    /// Interleaved, for a kernel that computes both and the activation.
    Interleaved(Matrix), // [2 * intermediate, hidden]
    Separate([Matrix; 2]), // [intermediate, hidden] each
}

const RECURRENT: &str = "recurrent layers";

/// First feature of a model that this engine does not support, worded to follow "run".
pub fn missing(config: &ModelConfig) -> Option<&'static str> {
    if config.recurrence().is_some() {
        Some(RECURRENT)
    } else if config.latent().is_some() {
        Some("latent attention (MLA)")
    } else if config.block().is_some_and(|block| block.rows > LONGEST_BLOCK) {
        Some("draft heads that draft more than 32 tokens in one pass")
    } else if config.block().is_some_and(|block| block.lilicorr().is_some()) {
        Some("LiLiCorr draft heads")
    } else if matches!(&config.draft_head, Some(head) if head.kind == HeadKind::Mtp) {
        Some("MTP heads")
    } else if config.assistant().is_some() {
        Some("draft heads that read their target's KV cache")
    } else if config.attention_parts().sinks {
        Some("attention sinks")
    } else if config.attention_parts().value_norm || differs(config) {
        Some("layers that differ in shape or share a KV cache")
    } else if config.head_size() > LONGEST_HEAD {
        Some("heads of more than 512 dimensions")
    } else {
        None
    }
}

/// Returns whether layers differ in their parts, widths or key-value heads.
fn differs(config: &ModelConfig) -> bool {
    let kinds = &config.attention_kinds;
    (0..config.depth()).any(|layer| config.cache_of(layer) != layer)
        || config.layers.iter().any(|layer| layer.feed_forward != config.layers[0].feed_forward)
        || kinds.iter().any(|kind| kind.keys != kinds[0].keys)
}

impl Network {
    /// Loads layer by layer, so that system memory holds one layer beside the embedding.
    ///
    /// # Errors
    /// Those of loading weights, `Error::Compute` when the device has no room.
    pub fn load(device: &GpuDevice, weights: &Weights, config: &ModelConfig) -> Result<Self> {
        let mut vectors = Vec::new();
        let layers = (0..config.depth()).map(|index| {
            let layer = Layer::upload(device, cpu::Layer::load(weights, config, index)?, &mut vectors)?;
            // Frees the staging memory of the layer.
            device.flush();
            device.wait()?;
            Ok(layer)
        });
        let layers = layers.collect::<Result<_>>()?;
        let embedding = cpu::panels(weights, EMBEDDING)?;
        let output = match config.tied_embeddings {
            true => Matrix::upload(device, &embedding)?,
            false => Matrix::upload(device, &cpu::panels(weights, OUTPUT)?)?,
        };
        // Embeddings that need more than a scale are looked up on the CPU.
        let plain = config.draft_head.is_none() && !config.normed_embeddings;
        let embedding = Some(embedding).filter(|_| !(config.tied_embeddings && plain));
        let output_norm = push(&mut vectors, &cpu::vector(weights, "output_norm.weight")?);
        let all = device.buffer(4 * vectors.len())?;
        device.write(&all, vectors.into_iter().map(f32::to_bits));
        device.flush();
        device.wait()?;
        let embedding_norm = config.normed_embeddings.then(|| cpu::ones(config.hidden));
        Ok(Self { embedding, embedding_norm, layers, vectors: all, output_norm, output })
    }

    /// Returns whether the gate and up matrices of any layer are not interleaved.
    pub fn has_separate_gates(&self) -> bool {
        self.layers.iter().any(|layer| {
            let (FeedForward::Dense(dense) | FeedForward::Experts { experts: dense, .. }) =
                &layer.feed_forward;
            matches!(dense.gate, Gate::Separate(_))
        })
    }

    /// Kernels of all products, for these tile sizes.
    pub fn products(&self, tiles: &[usize]) -> Vec<Kernel> {
        let mut all = HashSet::new();
        let mut add = |matrices: &[Matrix], kernel: fn(Format, usize) -> Kernel| {
            for matrix in matrices {
                all.extend(tiles.iter().map(|&tile| kernel(matrix.format, tile)));
            }
        };
        let output = std::slice::from_ref(&self.output);
        add(output, Kernel::Product);
        for layer in &self.layers {
            add(&layer.heads, Kernel::Product);
            add(std::slice::from_ref(&layer.output), Kernel::Product);
            let (dense, product, gated): (_, fn(_, _) -> _, fn(_, _) -> _) = match &layer.feed_forward {
                FeedForward::Dense(dense) => (dense, Kernel::Product, Kernel::Gated),
                FeedForward::Experts { experts, .. } => (experts, Kernel::SlotProduct, Kernel::SlotGated),
            };
            match &dense.gate {
                Gate::Interleaved(matrix) => add(std::slice::from_ref(matrix), gated),
                Gate::Separate(matrices) => add(matrices, product),
            }
            add(std::slice::from_ref(&dense.down), product);
        }
        all.into_iter().collect()
    }

    /// Bytes of weights that a pass over one row reads.
    pub fn bytes(&self) -> u64 {
        self.layers.iter().map(|layer| layer.reads(1)).sum::<u64>() + self.output.bytes()
    }
}

impl Layer {
    fn upload(device: &GpuDevice, layer: cpu::Layer, vectors: &mut Vec<f32>) -> Result<Self> {
        let Mixer::Attention(attention) = layer.mixer else { return Err(Error::NotOnGpu(RECURRENT)) };
        let (Some(key), Some(value)) = (&attention.key, &attention.value) else {
            return Err(Error::NotOnGpu("layers that share a KV cache"));
        };
        let heads = [Some(&attention.query), attention.gate.as_ref(), Some(key), Some(value)];
        let heads: Vec<&Panels> = heads.into_iter().flatten().collect();
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
            heads: Matrix::below(device, &heads)?,
            output: Matrix::upload(device, &attention.output)?,
            feed_forward: FeedForward::upload(device, &layer.feed_forward)?,
            convolutions: convolutions.transpose()?,
        })
    }
}

impl Layer {
    /// Bytes of weights that are unpacked for `rows` rows: every panel once per tile.
    pub fn reads(&self, rows: usize) -> u64 {
        let mixer: u64 = self.heads.iter().chain([&self.output]).map(|matrix| matrix.reads(rows)).sum();
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
            Self::Dense(dense) => dense.bytes() * rows.div_ceil(TILE) as u64,
            Self::Experts { count, top_k, router, experts } => {
                let chosen = (rows * top_k).min(rows.div_ceil(TILE) * count) as u64;
                router.reads(rows) + chosen * (experts.bytes() / *count as u64)
            }
        }
    }

    fn upload(device: &GpuDevice, feed_forward: &cpu::FeedForward) -> Result<Self> {
        Ok(match feed_forward {
            cpu::FeedForward::Dense(dense) => {
                Self::Dense(Dense::upload(device, std::slice::from_ref(dense))?)
            }
            cpu::FeedForward::Experts(experts) => Self::Experts {
                count: experts.experts.len(),
                top_k: experts.top_k,
                router: Matrix::upload(device, &experts.router)?,
                experts: Dense::upload(device, &experts.experts)?,
            },
            cpu::FeedForward::DenseAndExperts(_) | cpu::FeedForward::WithSharedExpert(_) => {
                return Err(Error::NotOnGpu("experts beside a dense feed-forward network"));
            }
        })
    }
}

impl Dense {
    fn bytes(&self) -> u64 {
        let gate = match &self.gate {
            Gate::Interleaved(matrix) => std::slice::from_ref(matrix),
            Gate::Separate(matrices) => matrices,
        };
        gate.iter().chain([&self.down]).map(Matrix::bytes).sum()
    }

    /// Uploads networks of the same shape.
    fn upload(device: &GpuDevice, networks: &[cpu::Dense]) -> Result<Self> {
        let of = |of: fn(&cpu::Dense) -> &Panels| networks.iter().map(of).collect::<Vec<_>>();
        let (gates, ups) = (of(|dense| &dense.gate), of(|dense| &dense.up));
        let gate = match Matrix::interleave(device, &gates, &ups)? {
            Some(matrix) => Gate::Interleaved(matrix),
            None => Gate::Separate([Matrix::stack(device, &gates)?, Matrix::stack(device, &ups)?]),
        };
        Ok(Self { gate, down: Matrix::stack(device, &of(|dense| &dense.down))? })
    }
}

fn push(vectors: &mut Vec<f32>, vector: &[f32]) -> u32 {
    let at = vectors.len() as u32;
    vectors.extend(vector);
    at
}
