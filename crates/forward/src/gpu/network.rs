//! A model's weights on the device. Rows of an embedding that is not also the output matrix are
//! looked up on the CPU, so they take no GPU memory.

use std::collections::HashSet;

use foretoken_model::error::{Error, Result};
use foretoken_model::tables::outer::{EMBEDDING, OUTPUT};
use foretoken_model::{Convolution as Sizes, ModelConfig, StoredRows, Weights};
use wgpu::Buffer;

use super::device::GpuDevice;
use super::kernels::{Kernel, LONGEST_HEAD, LONGEST_LATENT, MOST_RANKED, NONE};
use super::latent_weights::Latent;
use super::matrix::{Matrix, TILE};
use super::recurrent_weights::{LONGEST_KEY, Parts, Recurrent};
use crate::cpu::assistant::Assistant;
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
    pub per_layer: Option<PerLayerInputs>,
    pub layers: Vec<Layer>,
    /// Norms and biases of all layers, concatenated.
    pub vectors: Buffer,
    pub output_norm: u32,
    /// Output matrix. For an assistant with token clusters its rows are in the clusters' order.
    pub output: Matrix, // [vocabulary, hidden]
    /// Parts of an assistant, some of which the CPU looks up.
    pub assistant: Option<Assistant>,
}

/// Weights of a layer. Vectors are offsets into [`Network::vectors`], or [`NONE`]. Of a recurrent
/// layer `heads` are the first matrices.
#[derive(Debug)]
pub struct Layer {
    /// Index of the kind of attention.
    pub kind: usize,
    /// Rows do not attend to later rows of their pass.
    pub causal: bool,
    /// The layer has keys and values of its own.
    pub computes_kv: bool,
    pub mixer_norm: u32,
    pub mixer_post_norm: u32,
    pub feed_forward_norm: u32,
    pub feed_forward_post_norm: u32,
    /// Biases of queries, keys and values.
    pub biases: [u32; 3],
    /// Attention sinks of the heads.
    pub sinks: u32,
    /// Norms of queries and keys.
    pub head_norms: [u32; 2],
    /// Queries, then output gates, keys and values where the layer has them, stacked vertically.
    pub heads: Vec<Matrix>, // [as `HeadOffsets` says, hidden]
    pub output: Matrix, // [hidden, heads * head_size]
    pub output_bias: u32,
    pub feed_forward: FeedForward,
    pub per_layer_input: Option<PerLayerInput>,
    /// Factor of the layer's output.
    pub scale: f32,
    /// Vectors of a recurrent layer.
    pub recurrent: Option<Recurrent>,
    /// Latent attention, in place of `heads`.
    pub latent: Option<Latent>,
    /// Convolutions around attention and around the feed-forward network.
    pub convolutions: Option<[Convolution; 2]>,
}

/// Weights that compute the inputs of all layers.
#[derive(Debug)]
pub struct PerLayerInputs {
    pub table: StoredRows,  // [tokens, layers * width]
    pub projection: Matrix, // [layers * width, hidden]
    /// Norm of the projection: its offset in [`Network::vectors`].
    pub norm: u32, // [width]
}

/// A layer's part of the inputs: `projection * (activation(gate * state) * input)`, added to the
/// state after a norm.
#[derive(Debug)]
pub struct PerLayerInput {
    pub gate: Matrix,       // [width, hidden]
    pub projection: Matrix, // [hidden, width]
    /// Offset of the norm in [`Network::vectors`].
    pub norm: u32, // [hidden]
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
    Experts(Experts),
    DenseAndExperts(Box<DenseAndExperts>),
    WithSharedExpert(Box<WithSharedExpert>),
}

/// Routed experts. Vectors are offsets, as in [`Layer`].
#[derive(Debug)]
pub struct Experts {
    pub count: usize,
    /// Experts per row.
    pub top_k: usize,
    pub router: Matrix,   // [experts, hidden]
    pub router_bias: u32, // [experts]
    /// Added to the sigmoids of the scores for the selection.
    pub selection_bias: u32, // [experts]
    /// Factors of the experts' weights.
    pub scales: u32, // [experts]
    /// Biases of gate and up.
    pub biases: u32, // [experts, 2, width in whole vectors]
    pub down_biases: u32, // [experts, hidden in whole vectors]
    /// Matrices of all experts, concatenated.
    pub experts: Dense,
}

/// A dense network and experts side by side. Vectors are offsets, as in [`Layer`].
#[derive(Debug)]
pub struct DenseAndExperts {
    pub dense: Dense,
    pub dense_post_norm: u32,
    pub experts: Experts,
    /// Norms of the router's input and of the experts' input.
    pub router_norm: u32,
    pub experts_norm: u32,
    pub experts_post_norm: u32,
}

/// Routed experts and a shared expert that processes every row.
#[derive(Debug)]
pub struct WithSharedExpert {
    pub experts: Experts,
    pub dense: Dense,
    /// The shared expert's weight is the sigmoid of this; 1 without.
    pub gate: Option<Matrix>, // [1, hidden]
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

/// First feature of a model that this engine does not support, worded to follow "run".
pub fn missing(config: &ModelConfig) -> Option<&'static str> {
    if config.recurrence().is_some_and(|recurrence| recurrence.heads.key_size > LONGEST_KEY) {
        Some("recurrent layers with keys of more than 128 numbers")
    } else if config.latent().is_some_and(|latent| latent.size + latent.turned > LONGEST_LATENT) {
        Some("latents of more than 1024 numbers")
    } else if config.block().is_some_and(|block| block.rows > LONGEST_BLOCK) {
        Some("draft heads that draft more than 32 tokens in one pass")
    } else if config.block().is_some_and(|block| block.lilicorr().is_some()) {
        Some("LiLiCorr draft heads")
    } else if clusters(config) > MOST_RANKED {
        Some("draft heads with more than 2048 clusters of tokens")
    } else if config.latent().is_none() && config.head_size() > LONGEST_HEAD {
        Some("heads of more than 512 dimensions")
    } else if config.experts().is_some_and(|experts| experts.count > MOST_RANKED) {
        Some("more than 2048 experts")
    } else {
        None
    }
}

/// Clusters of tokens that an assistant ranks; 0 without.
fn clusters(config: &ModelConfig) -> usize {
    let assistant = config.assistant();
    assistant.and_then(|assistant| assistant.clusters).map_or(0, |clusters| clusters.count)
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
        let assistant = config.assistant().map(|of| Assistant::load(weights, config, of)).transpose()?;
        // An assistant reads rows of its target's embedding from the file.
        let embedding = assistant.is_none().then(|| cpu::panels(weights, EMBEDDING)).transpose()?;
        let clusters = assistant.as_ref().and_then(|assistant| assistant.clusters.as_ref());
        let output = match (&embedding, clusters) {
            (Some(embedding), _) if config.tied_embeddings => Matrix::upload(device, embedding)?,
            (_, Some(clusters)) => Matrix::upload(device, &clusters.output(weights)?)?,
            (_, None) => Matrix::upload(device, &cpu::panels(weights, OUTPUT)?)?,
        };
        // Embeddings that need more than a scale are looked up on the CPU.
        let plain = config.draft_head.is_none() && !config.normed_embeddings;
        let embedding = embedding.filter(|_| !(config.tied_embeddings && plain));
        let per_layer = config.per_layer_input().map(|_| cpu::PerLayerInputs::load(weights));
        let upload = |inputs: Result<_>| PerLayerInputs::upload(device, inputs?, &mut vectors);
        let per_layer = per_layer.map(upload).transpose()?;
        let output_norm = push(&mut vectors, &cpu::vector(weights, "output_norm.weight")?);
        let all = device.buffer(4 * vectors.len())?;
        device.write(&all, vectors.into_iter().map(f32::to_bits));
        device.flush();
        device.wait()?;
        let embedding_norm = config.normed_embeddings.then(|| cpu::ones(config.hidden));
        let vectors = all;
        Ok(Self { embedding, embedding_norm, per_layer, layers, vectors, output_norm, output, assistant })
    }

    /// Returns whether the gate and up matrices of any layer are not interleaved.
    pub fn has_separate_gates(&self) -> bool {
        let networks = self.layers.iter().flat_map(|layer| layer.feed_forward.networks());
        networks.into_iter().any(|(dense, _)| matches!(dense.gate, Gate::Separate(_)))
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
        if let Some(inputs) = &self.per_layer {
            add(std::slice::from_ref(&inputs.projection), Kernel::Product);
        }
        for layer in &self.layers {
            add(&layer.heads, Kernel::Product);
            add(std::slice::from_ref(&layer.output), Kernel::Product);
            for matrix in layer.per_layer_input.iter().flat_map(|input| [&input.gate, &input.projection]) {
                add(std::slice::from_ref(matrix), Kernel::Product);
            }
            if let Some(latent) = &layer.latent {
                latent.of_rows().for_each(|matrix| add(std::slice::from_ref(matrix), Kernel::Product));
                latent.of_heads().into_iter().for_each(|matrix| {
                    add(std::slice::from_ref(matrix), Kernel::SlotProduct);
                });
            }
            for (dense, of_slots) in layer.feed_forward.networks() {
                let (product, gated): (fn(_, _) -> _, fn(_, _) -> _) = match of_slots {
                    false => (Kernel::Product, Kernel::Gated),
                    true => (Kernel::SlotProduct, Kernel::SlotGated),
                };
                match &dense.gate {
                    Gate::Interleaved(matrix) => add(std::slice::from_ref(matrix), gated),
                    Gate::Separate(matrices) => add(matrices, product),
                }
                add(std::slice::from_ref(&dense.down), product);
            }
        }
        all.into_iter().collect()
    }

    /// Bytes of weights that a pass over one row reads.
    pub fn bytes(&self) -> u64 {
        let of_inputs = self.per_layer.as_ref().map_or(0, |inputs| inputs.projection.bytes());
        let of_layers: u64 = self.layers.iter().map(|layer| layer.reads(1)).sum();
        of_inputs + of_layers + self.output.bytes()
    }
}

impl Layer {
    fn upload(device: &GpuDevice, layer: cpu::Layer, vectors: &mut Vec<f32>) -> Result<Self> {
        let push = &mut |vector: &[f32]| push(vectors, vector);
        let parts = match &layer.mixer {
            Mixer::Attention(attention) => return Self::with_attention(device, &layer, attention, vectors),
            Mixer::Latent(latent) => {
                let own = Latent::upload(device, latent, push)?;
                let base = Self::around(device, &layer, &[], &latent.output, vectors)?;
                return Ok(Self { kind: latent.kind, latent: Some(own), ..base });
            }
            Mixer::ShortConv(conv) => Parts::of_short_conv(conv, push),
            Mixer::Delta(delta) => Parts::of_delta(delta, push),
            Mixer::Mamba(mamba) => Parts::of_mamba(mamba, push),
        };
        let base = Self::around(device, &layer, &parts.inputs, parts.output, vectors)?;
        Ok(Self { recurrent: Some(parts.vectors), ..base })
    }

    fn with_attention(
        device: &GpuDevice,
        layer: &cpu::Layer,
        attention: &cpu::Attention,
        vectors: &mut Vec<f32>,
    ) -> Result<Self> {
        let others = [&attention.gate, &attention.key, &attention.value];
        let others = others.into_iter().filter_map(Option::as_ref);
        let heads: Vec<&Panels> = std::iter::once(&attention.query).chain(others).collect();
        let base = Self::around(device, layer, &heads, &attention.output, vectors)?;
        let (biases, norms) = (attention.biases.as_ref(), attention.head_norms.as_ref());
        let mut push_if = |vector: Option<&[f32]>| push_if(vectors, vector);
        Ok(Self {
            kind: attention.kind,
            causal: attention.causal,
            computes_kv: attention.key.is_some(),
            biases: [
                push_if(biases.map(|biases| &biases.query[..])),
                push_if(biases.map(|biases| &biases.key[..])),
                push_if(biases.map(|biases| &biases.value[..])),
            ],
            head_norms: [
                push_if(norms.map(|norms| &norms.query[..])),
                push_if(norms.map(|norms| &norms.key[..])),
            ],
            sinks: push_if(Some(&attention.sinks)),
            output_bias: push_if(attention.output_bias.as_deref()),
            ..base
        })
    }

    /// Uploads what all layers have: `heads` and `output` are the first and last matrices of the
    /// mixer.
    fn around(
        device: &GpuDevice,
        layer: &cpu::Layer,
        heads: &[&Panels],
        output: &Panels,
        vectors: &mut Vec<f32>,
    ) -> Result<Self> {
        let input = layer.per_layer_input.as_ref();
        let input = input.map(|input| PerLayerInput::upload(device, input, vectors));
        let feed_forward = FeedForward::upload(device, &layer.feed_forward, vectors)?;
        let convolutions = layer.convolutions.as_ref().map(|[mixer, feed_forward]| -> Result<_> {
            Ok([Convolution::upload(device, mixer)?, Convolution::upload(device, feed_forward)?])
        });
        let mut push_if = |vector: Option<&[f32]>| push_if(vectors, vector);
        Ok(Self {
            kind: 0,
            causal: true,
            computes_kv: true,
            mixer_norm: push_if(layer.mixer_norm.as_deref()),
            mixer_post_norm: push_if(layer.mixer_post_norm.as_deref()),
            feed_forward_norm: push_if(layer.feed_forward_norm.as_deref()),
            feed_forward_post_norm: push_if(layer.feed_forward_post_norm.as_deref()),
            biases: [NONE; 3],
            sinks: NONE,
            head_norms: [NONE; 2],
            heads: Matrix::below(device, heads)?,
            output: Matrix::upload(device, output)?,
            output_bias: NONE,
            feed_forward,
            per_layer_input: input.transpose()?,
            scale: layer.scale,
            recurrent: None,
            latent: None,
            convolutions: convolutions.transpose()?,
        })
    }
}

impl Layer {
    /// Bytes of weights that are unpacked for `rows` rows: every panel once per tile.
    pub fn reads(&self, rows: usize) -> u64 {
        let input = self.per_layer_input.iter().flat_map(|input| [&input.gate, &input.projection]);
        let latent = self.latent.iter().flat_map(Latent::matrices);
        let others = self.heads.iter().chain([&self.output]).chain(input).chain(latent);
        others.map(|matrix| matrix.reads(rows)).sum::<u64>() + self.feed_forward.reads(rows)
    }
}

impl PerLayerInputs {
    /// Uploads the weights, but not the table.
    fn upload(device: &GpuDevice, inputs: cpu::PerLayerInputs, vectors: &mut Vec<f32>) -> Result<Self> {
        let cpu::PerLayerInputs { table, projection, norm } = inputs;
        let projection = Matrix::upload(device, &projection)?;
        Ok(Self { table, projection, norm: push(vectors, &norm) })
    }
}

impl PerLayerInput {
    /// Uploads a layer's weights.
    fn upload(device: &GpuDevice, input: &cpu::PerLayerInput, vectors: &mut Vec<f32>) -> Result<Self> {
        let [gate, projection] =
            [&input.gate, &input.projection].map(|panels| Matrix::upload(device, panels));
        Ok(Self { gate: gate?, projection: projection?, norm: push(vectors, &input.norm) })
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
            Self::Dense(dense) => dense.reads(rows),
            Self::Experts(experts) => experts.reads(rows),
            Self::DenseAndExperts(both) => both.dense.reads(rows) + both.experts.reads(rows),
            Self::WithSharedExpert(shared) => shared.dense.reads(rows) + shared.experts.reads(rows),
        }
    }

    /// Networks of the layer, each with whether it runs slots rather than rows.
    fn networks(&self) -> Vec<(&Dense, bool)> {
        match self {
            Self::Dense(dense) => vec![(dense, false)],
            Self::Experts(experts) => vec![(&experts.experts, true)],
            Self::DenseAndExperts(both) => vec![(&both.dense, false), (&both.experts.experts, true)],
            Self::WithSharedExpert(shared) => vec![(&shared.dense, false), (&shared.experts.experts, true)],
        }
    }

    fn upload(device: &GpuDevice, feed_forward: &cpu::FeedForward, vectors: &mut Vec<f32>) -> Result<Self> {
        let dense = |dense| Dense::upload(device, std::slice::from_ref(dense));
        Ok(match feed_forward {
            cpu::FeedForward::Dense(network) => Self::Dense(dense(network)?),
            cpu::FeedForward::Experts(experts) => Self::Experts(Experts::upload(device, experts, vectors)?),
            cpu::FeedForward::WithSharedExpert(shared) => {
                let gate = shared.gate.as_ref().map(|gate| Matrix::upload(device, gate));
                Self::WithSharedExpert(Box::new(WithSharedExpert {
                    experts: Experts::upload(device, &shared.experts, vectors)?,
                    dense: dense(&shared.dense)?,
                    gate: gate.transpose()?,
                }))
            }
            cpu::FeedForward::DenseAndExperts(both) => {
                let experts = Experts::upload(device, &both.experts, vectors)?;
                let mut push = |vector: &[f32]| push(vectors, vector);
                Self::DenseAndExperts(Box::new(DenseAndExperts {
                    dense: dense(&both.dense)?,
                    dense_post_norm: push(&both.dense_post_norm),
                    experts,
                    router_norm: push(&both.router_norm),
                    experts_norm: push(&both.experts_norm),
                    experts_post_norm: push(&both.experts_post_norm),
                }))
            }
        })
    }
}

impl Experts {
    fn reads(&self, rows: usize) -> u64 {
        let chosen = (rows * self.top_k).min(rows.div_ceil(TILE) * self.count) as u64;
        self.router.reads(rows) + chosen * (self.experts.bytes() / self.count as u64)
    }

    fn upload(device: &GpuDevice, of: &cpu::Experts, vectors: &mut Vec<f32>) -> Result<Self> {
        let experts = Dense::upload(device, &of.experts)?;
        let has_biases = of.experts.iter().any(|expert| expert.biases.is_some());
        if has_biases && matches!(experts.gate, Gate::Separate(_)) {
            return Err(Error::NotOnGpu("experts with biases whose gate and up matrices differ"));
        }
        let biases = || of.experts.iter().filter_map(|expert| expert.biases.as_ref());
        // The loader pads each vector to whole vectors of the kernels.
        let gated: Vec<f32> = biases().flat_map(|biases| [&biases.gate[..], &biases.up].concat()).collect();
        let down: Vec<f32> = biases().flat_map(|biases| biases.down.clone()).collect();
        let mut push_if = |vector: Option<&[f32]>| push_if(vectors, vector);
        Ok(Self {
            count: of.experts.len(),
            top_k: of.top_k,
            router: Matrix::upload(device, &of.router)?,
            router_bias: push_if(of.router_bias.as_deref()),
            selection_bias: push_if(of.selection_bias.as_deref()),
            scales: push_if(of.scales.as_deref()),
            biases: push_if(Some(&gated)),
            down_biases: push_if(Some(&down)),
            experts,
        })
    }
}

impl Dense {
    fn reads(&self, rows: usize) -> u64 {
        self.bytes() * rows.div_ceil(TILE) as u64
    }

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

/// Appends a vector and returns its offset.
fn push(vectors: &mut Vec<f32>, vector: &[f32]) -> u32 {
    let at = vectors.len() as u32;
    vectors.extend(vector);
    at
}

/// Appends a vector that a family may lack or have empty; [`NONE`] then.
fn push_if(vectors: &mut Vec<f32>, vector: Option<&[f32]>) -> u32 {
    vector.filter(|vector| !vector.is_empty()).map_or(NONE, |vector| push(vectors, vector))
}
