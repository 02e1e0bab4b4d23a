//! Order of the kernels in a pass. Immediates are filled here; each kernel's source documents them.

use std::ops::Range;

use foretoken_model::error::Result;
use foretoken_model::{ModelConfig, Scoring};
use wgpu::Buffer;

use super::assistant::AssistantSteps;
use super::attention::Visibility;
use super::block::Block;
use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::embed::Embed;
use super::feed_forward::FeedForwardSteps;
use super::head_input::HeadInputSteps;
use super::kernels::{Kernel, NONE};
use super::kv_rows::KvColumns;
use super::memory::CachedSteps;
use super::network::{Layer, Network};
use super::norm::{Norm, Pending};
use super::per_layer::{InputSteps, PerLayerSteps};
use super::pictures::Pictures;
use super::product::{Out, Product};
use super::recording::Recording;
use super::recurrent::RecurrentSteps;
use super::state::{Rows, State};
use super::step::Step;
use super::walk::Walk;
use crate::Taps;
use crate::cpu::simd::LANES;

/// Kernels of a model's passes, bound to its weights and activations.
pub struct Steps {
    /// `None` if embeddings are uploaded.
    embed: Option<Embed>,
    norm: Step,
    score_norm: Step,
    scores: Product,
    /// Logit scale and soft cap, in families that have them.
    score: Option<Step>,
    /// Inputs of all layers, in families that have them.
    per_layer: Option<PerLayerSteps>,
    pub layers: Vec<LayerSteps>,
}

pub struct LayerSteps {
    pub heads: Product,
    output: Product,
    feed_forward: FeedForwardSteps,
    per_layer_input: Option<InputSteps>,
}

/// Everything that encoding a pass needs.
pub struct Phases<'a> {
    pub config: &'a ModelConfig,
    pub network: &'a Network,
    pub state: &'a State,
    pub steps: &'a Steps,
    pub attention: &'a [Option<CachedSteps>],
    /// Kernels of recurrent layers, and the walk of this chunk.
    pub recurrent: Option<(&'a [Option<RecurrentSteps>], &'a Walk)>,
    pub rows: usize,
    /// Positions before those in the rows' paths.
    pub cached: usize,
    /// Nodes of the longest path.
    pub longest: usize,
    /// Pictures among the rows.
    pub pictures: Option<Pictures>,
    /// Every position is cached at the place of its text position.
    pub chain: bool,
    /// Rows whose logits are requested.
    pub scored: Range<usize>,
    /// Tokens that get logits: ids below this.
    pub vocabulary: usize,
    /// Tapped states of all rows, and their destination, `[taps, rows, width in whole vectors]`.
    pub taps: Option<(&'a Taps, &'a Buffer)>,
    /// Layers whose keys and values are returned.
    pub returned: Vec<KvColumns>,
    /// Input part of a draft head, and whether it fuses states of the target.
    pub head_steps: Option<(&'a HeadInputSteps, bool)>,
    /// Parts of an assistant, and whether it has an input.
    pub assistant: Option<(&'a AssistantSteps, bool)>,
    /// Parts of a head that drafts blocks.
    pub block: Option<&'a Block>,
}

impl Steps {
    /// # Errors
    /// `Error::Compute` when the driver rejects a kernel.
    pub fn new(device: &GpuDevice, network: &Network, state: &State, config: &ModelConfig) -> Result<Self> {
        let norm = |to: &Rows| {
            let buffers = [&state.hidden, &state.branch, &network.vectors, &to.plain, &to.quants, &to.scales];
            Step::new(device, Kernel::Norm, &buffers)
        };
        let output = std::slice::from_ref(&network.output);
        let embed =
            || Embed::new(device, &network.output, &state.tokens, &state.hidden, config.embedding_scale);
        let layers = network.layers.iter().enumerate();
        let vectors = &network.vectors;
        let layers =
            layers.map(|(index, layer)| LayerSteps::new(device, layer, index, vectors, state, config));
        Ok(Self {
            embed: (network.embedding.is_none() && network.assistant.is_none()).then(embed).transpose()?,
            norm: norm(state.unconvolved.as_ref().map_or(&state.normed, |(rows, _)| rows))?,
            score_norm: norm(&state.scored)?,
            scores: Product::new(device, output, &state.scored, Out::Store(&state.logits))?,
            score: match config.scoring == Scoring::PLAIN {
                true => None,
                false => Some(Step::new(device, Kernel::Score, &[&state.logits])?),
            },
            per_layer: PerLayerSteps::new(device, network, state, config)?,
            layers: layers.collect::<Result<_>>()?,
        })
    }
}

impl LayerSteps {
    fn new(
        device: &GpuDevice,
        layer: &Layer,
        index: usize,
        vectors: &Buffer,
        state: &State,
        config: &ModelConfig,
    ) -> Result<Self> {
        let joined = state.fused_input.as_ref().filter(|_| config.mixed() > config.hidden);
        let heads = joined.unwrap_or(&state.normed);
        // A branch that is normed or convolved first has a buffer of its own.
        let aside = config.has_post_norms() || state.unconvolved.is_some();
        let to = if aside { Out::Store(&state.branch) } else { Out::Add(&state.hidden) };
        let own = &state.mixed.of(layer.output.inputs);
        let (projected, mixed) = match (&state.recurrent, &state.latent) {
            (Some(recurrent), _) if layer.recurrent.is_some() => (&recurrent.projected, &recurrent.mixed),
            (_, Some(latent)) if layer.latent.is_some() => (&state.heads, &latent.values),
            _ => (&state.heads, own),
        };
        Ok(Self {
            heads: Product::new(device, &layer.heads, heads, Out::Store(projected))?,
            output: Product::new(device, std::slice::from_ref(&layer.output), mixed, to)?,
            feed_forward: FeedForwardSteps::new(device, &layer.feed_forward, vectors, state, config, aside)?,
            per_layer_input: InputSteps::new(device, layer.per_layer_input.as_ref(), index, state, config)?,
        })
    }
}

impl Phases<'_> {
    /// Encodes the whole pass, which leaves the logits of scored rows in the state.
    pub fn encode(&self, recording: &mut Recording<'_>) {
        let mut pending = Pending::NOTHING;
        let mut tapped = 0;
        if let Some(embed) = &self.steps.embed {
            embed.run(recording.pass(), self.rows);
        }
        if let Some(pictures) = &self.pictures {
            pictures.copy(recording, &self.state.hidden);
        }
        if let Some((assistant, true)) = self.assistant {
            assistant.enter(recording.pass(), self.rows);
        }
        if let Some((head_steps, fuse)) = self.head_steps.filter(|(steps, _)| !steps.feeds_attention()) {
            head_steps.run(recording.pass(), self.rows, fuse);
        }
        if let Some(per_layer) = &self.steps.per_layer {
            self.normalise(recording.pass(), NONE, Pending::NOTHING);
            per_layer.run(recording.pass(), self.rows);
        }
        for (index, layer) in self.network.layers.iter().enumerate() {
            let attended = match layer.recurrent {
                Some(_) => 0,
                None => self.visibility(index).attention(layer).bytes(),
            };
            recording.next(layer.reads(self.rows) + attended);
            if self.is_tapped(index) {
                self.normalise(recording.pass(), layer.mixer_norm, pending);
                pending = Pending::NOTHING;
                self.tap(recording, &self.state.hidden, &mut tapped);
            }
            let pass = recording.pass();
            match self.head_steps.filter(|(head_steps, _)| head_steps.feeds_attention()) {
                Some((head_steps, fuse)) => head_steps.run(pass, self.rows, fuse),
                None => self.normalise(pass, layer.mixer_norm, pending),
            }
            if let Some(block) = self.block {
                block.convolve_inputs(pass, index, 0, self.rows);
            }
            self.mix(pass, index, layer);
            if let Some(block) = self.block {
                block.convolve_branch(pass, index, 0, self.rows);
            }
            let mixed = Pending { bias: layer.output_bias, norm: layer.mixer_post_norm, factor: 1.0 };
            self.normalise(pass, layer.feed_forward_norm, mixed);
            if let Some(block) = self.block {
                block.convolve_inputs(pass, index, 1, self.rows);
            }
            self.steps.layers[index].feed_forward.run(pass, self.rows);
            if let Some(block) = self.block {
                block.convolve_branch(pass, index, 1, self.rows);
            }
            pending = Pending { bias: NONE, norm: layer.feed_forward_post_norm, factor: layer.scale };
            if let Some(input) = &self.steps.layers[index].per_layer_input {
                self.normalise(pass, NONE, Pending { factor: 1.0, ..pending });
                input.run(pass, self.rows);
                pending.norm = input.norm;
            }
            if let Some(pictures) = &self.pictures {
                pictures.add(recording.pass(), index);
            }
        }
        let end = self.is_tapped(self.network.layers.len());
        let last = self.taps.is_some_and(|(taps, _)| taps.last);
        if end || last {
            self.normalise(recording.pass(), self.network.output_norm, pending);
            pending = Pending::NOTHING;
            if end {
                self.tap(recording, &self.state.hidden, &mut tapped);
            }
            if last {
                let states = self.assistant.map_or(&self.state.normed.plain, |(assistant, _)| {
                    assistant.leave(recording.pass(), self.rows);
                    &assistant.states
                });
                self.tap(recording, states, &mut tapped);
            }
        }
        self.returned.iter().for_each(|columns| columns.run(recording.pass(), self.rows));
        if !self.scored.is_empty() {
            recording.next(self.network.output.reads(self.scored.len()));
            let norm = Norm { first: self.scored.start, ..self.norm(self.network.output_norm, pending) };
            self.steps.score_norm.run(recording.pass(), &norm.params(), [self.scored.len(), 1]);
            match self.assistant.and_then(|(assistant, _)| assistant.clusters.as_ref()) {
                Some(clusters) => clusters.run(recording.pass(), self.scored.len()),
                None => {
                    let panels = self.vocabulary.div_ceil(LANES);
                    self.steps.scores.run_above(recording.pass(), self.scored.len(), panels);
                }
            }
            if let Some(score) = &self.steps.score {
                let Scoring { scale, cap } = self.config.scoring;
                let stride = self.config.vocabulary.next_multiple_of(LANES);
                let [twice, rate] = cap.map_or([0.0; 2], |cap| [2.0 * cap, 2.0 / cap]);
                let numbers = [scale, cap.unwrap_or(0.0), twice, rate].map(f32::to_bits);
                let params = [&[stride as u32], &numbers[..]].concat();
                score.run(recording.pass(), &params, [stride.div_ceil(64), self.scored.len()]);
            }
            if let Some(block) = self.block {
                block.score(recording.pass(), self.scored.len());
            }
        }
    }

    fn is_tapped(&self, layer: usize) -> bool {
        self.taps.is_some_and(|(taps, _)| taps.entering.contains(&layer))
    }

    /// Copies a state of all rows into the next slot of the taps.
    fn tap(&self, recording: &mut Recording<'_>, from: &Buffer, tapped: &mut usize) {
        if let Some((_, to)) = self.taps {
            let width = self.config.carried().next_multiple_of(LANES);
            let bytes = (4 * self.rows * width) as u64;
            recording.copy(from, to, *tapped as u64 * bytes, bytes);
            *tapped += 1;
        }
    }

    fn norm(&self, weight: u32, pending: Pending) -> Norm {
        let pending_epsilon = self.config.post_norm_epsilon;
        let plain = Norm::plain(self.config.hidden, self.config.norm_epsilon);
        Norm { weight, pending, pending_epsilon, ..plain }
    }

    /// Norms all rows, after what is pending was added to their states.
    fn normalise(&self, pass: &mut Dispatches, weight: u32, pending: Pending) {
        self.steps.norm.run(pass, &self.norm(weight, pending).params(), [self.rows, 1]);
    }

    /// Attention, or a recurrent layer, over the normed states. The output is added to the residual
    /// stream or goes to the branch.
    fn mix(&self, pass: &mut Dispatches, index: usize, layer: &Layer) {
        let steps = &self.steps.layers[index];
        steps.heads.run(pass, self.rows);
        match (&self.attention[index], &self.state.latent) {
            (Some(CachedSteps::Attention(attention)), _) => {
                attention.run(pass, &self.visibility(index), layer);
            }
            (Some(CachedSteps::Latent(steps)), Some(latent)) => {
                steps.run(pass, &self.visibility(index), latent, layer.kind);
            }
            _ => {}
        }
        if let (Some((recurrent, walk)), Some(vectors)) = (self.recurrent, &layer.recurrent)
            && let Some(recurrent) = &recurrent[index]
        {
            recurrent.run(pass, vectors, walk);
        }
        steps.output.run(pass, self.rows);
    }

    /// Rows of this pass and their visible positions, for layer `index`.
    pub fn visibility(&self, index: usize) -> Visibility<'_> {
        let Self { config, rows, cached, longest, chain, .. } = *self;
        let keys = config.attention_kinds[self.network.layers[index].kind].keys;
        Visibility { config, keys, offsets: self.state.offsets[index], rows, cached, longest, chain }
    }
}
