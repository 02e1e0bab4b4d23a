//! One pass on the device: which program runs on what, in which order. What a program is asked is said here and in the
//! head of its source.

use std::ops::Range;

use wgpu::{Buffer, ComputePass};

use super::block::Block;
use super::cache::Cache;
use super::device::GpuDevice;
use super::experts::ExpertSteps;
use super::joined::Joined;
use super::kernels::{Kernel, NONE};
use super::network::{FeedForward, Layer, Network};
use super::recording::Recording;
use super::state::{ROWS, Rows, State};
use super::step::{Product, Quantise, Step};
use crate::error::Result;
use crate::forward::Taps;
use crate::forward::cpu::simd::LANES;
use crate::model::{Activation, ModelConfig, RotaryLayout, Scoring};

/// The programs of a model's passes, bound to its weights and its state.
pub struct Steps {
    norm: Step,
    quantise_mixed: Quantise,
    /// Where what attention gives is gated: that, and the quantising.
    gate_mixed: Option<Step>,
    activate: Step,
    score_norm: Step,
    scores: Product,
    /// Of families whose logits are not what the output matrix gives.
    score: Option<Step>,
    pub layers: Vec<LayerSteps>,
}

pub struct LayerSteps {
    query: Product,
    pub key: Product,
    pub value: Product,
    output_gate: Option<Product>,
    output: Product,
    feed_forward: FeedSteps,
}

enum FeedSteps {
    Dense { gate: Product, up: Product, down: Product },
    Experts(ExpertSteps),
}

/// Those of attention in a layer, which are bound anew when its cache has grown.
pub struct AttentionSteps {
    pub turn: Step,
    attend: Step,
    pub gather: Step,
}

/// What attention needs beside the caches.
pub struct Sights {
    /// What rows see, or which positions move.
    pub nodes: Buffer,
    /// Of some rows: [rows, heads, stride].
    pub scores: Buffer,
    pub stride: usize,
    /// How many rows.
    pub rows: usize,
}

/// A pass under way, over at most [`ROWS`] rows.
pub struct Phases<'a> {
    pub config: &'a ModelConfig,
    pub network: &'a Network,
    pub state: &'a State,
    pub steps: &'a Steps,
    pub attention: &'a [AttentionSteps],
    pub sights: &'a Sights,
    pub rows: usize,
    /// Positions before those that rows name themselves.
    pub cached: usize,
    /// Rows whose logits are asked for.
    pub scored: Range<usize>,
    /// States that are asked for, of all rows, and where they go: [taps, rows, hidden in whole vectors].
    pub taps: Option<(&'a Taps, &'a Buffer)>,
    /// What the pass of a draft head begins with, and whether it is given states of its target.
    pub joined: Option<(&'a Joined, bool)>,
    /// Of a draft head that guesses blocks.
    pub block: Option<&'a Block>,
}

impl Steps {
    /// # Errors
    /// `Error::Compute` when the driver does not take a program.
    pub fn new(device: &GpuDevice, network: &Network, state: &State, config: &ModelConfig) -> Result<Self> {
        let norm = |to: &Rows| {
            let buffers = [&state.hidden, &state.branch, &network.vectors, &to.plain, &to.quants, &to.scales];
            Step::new(device, Kernel::Norm, &buffers)
        };
        let (mixed, gated) = (&state.mixed, &state.gated);
        let layers = network.layers.iter().map(|layer| LayerSteps::new(device, layer, state, config));
        Ok(Self {
            norm: norm(state.unconvolved.as_ref().map_or(&state.normed, |(rows, _)| rows))?,
            quantise_mixed: Quantise::new(device, &state.mixed)?,
            gate_mixed: match &state.output_gates {
                None => None,
                Some([gates, ungated]) => Some(Step::new(
                    device,
                    Kernel::Activate,
                    &[gates, ungated, &mixed.plain, &mixed.quants, &mixed.scales],
                )?),
            },
            activate: Step::new(
                device,
                Kernel::Activate,
                &[&state.gate, &state.up, &gated.plain, &gated.quants, &gated.scales],
            )?,
            score_norm: norm(&state.scored)?,
            scores: Product::new(device, &network.output, &state.scored, &state.logits, false)?,
            score: match config.scoring == Scoring::PLAIN {
                true => None,
                false => Some(Step::new(device, Kernel::Score, &[&state.logits])?),
            },
            layers: layers.collect::<Result<_>>()?,
        })
    }
}

impl LayerSteps {
    fn new(device: &GpuDevice, layer: &Layer, state: &State, config: &ModelConfig) -> Result<Self> {
        let product = |matrix, rows, out| Product::new(device, matrix, rows, out, false);
        // A branch that waits for a norm, or to be convolved, is put aside.
        let add_product = |matrix, rows| match config.family.post_norms || state.unconvolved.is_some() {
            true => Product::new(device, matrix, rows, &state.branch, false),
            false => Product::new(device, matrix, rows, &state.hidden, true),
        };
        let mixed = state.joined.as_ref().unwrap_or(&state.normed);
        Ok(Self {
            query: product(&layer.query, mixed, &state.queries)?,
            key: product(&layer.key, mixed, &state.keys)?,
            value: product(&layer.value, mixed, &state.values)?,
            output_gate: match (&layer.output_gate, &state.output_gates) {
                (Some(matrix), Some([gates, _])) => Some(product(matrix, mixed, gates)?),
                _ => None,
            },
            output: add_product(&layer.output, &state.mixed)?,
            feed_forward: match &layer.feed_forward {
                FeedForward::Dense(dense) => FeedSteps::Dense {
                    gate: product(&dense.gate, &state.normed, &state.gate)?,
                    up: product(&dense.up, &state.normed, &state.up)?,
                    down: add_product(&dense.down, &state.gated)?,
                },
                FeedForward::Experts { router, experts, .. } => {
                    FeedSteps::Experts(ExpertSteps::new(device, (router, experts), state, config)?)
                }
            },
        })
    }
}

impl AttentionSteps {
    /// # Errors
    /// As [`Steps::new`].
    pub fn new(
        device: &GpuDevice,
        (layer, cache): (&Layer, &Cache),
        vectors: &Buffer,
        state: &State,
        sights: &Sights,
    ) -> Result<Self> {
        let turn = [
            &state.queries,
            &state.keys,
            &state.values,
            &state.turns[layer.kind],
            vectors,
            &sights.nodes,
            &cache.keys,
            &cache.values,
        ];
        let mixed = state.output_gates.as_ref().map_or(&state.mixed.plain, |[_, ungated]| ungated);
        let attend = [&state.queries, &cache.keys, &cache.values, &sights.nodes, &sights.scores, mixed];
        Ok(Self {
            turn: Step::new(device, Kernel::Turn, &turn)?,
            attend: Step::new(device, Kernel::Attend, &attend)?,
            gather: Step::new(device, Kernel::Gather, &[&sights.nodes, &cache.keys, &cache.values])?,
        })
    }
}

impl Sights {
    /// Bytes of scores there should be at most.
    const SCORES: usize = 32 << 20;

    /// For caches of so many `positions`, and `words` about nodes.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn new(device: &GpuDevice, heads: usize, positions: usize, words: usize) -> Result<Self> {
        let row = 4 * heads * positions;
        let most = Self::SCORES.min(device.largest_buffer() as usize);
        let rows = (most / row).clamp(1, ROWS);
        Ok(Self {
            nodes: device.buffer(4 * words)?,
            scores: device.buffer(rows * row)?,
            stride: positions,
            rows,
        })
    }
}

impl Phases<'_> {
    /// Writes the whole pass down; the logits of rows asked for are in the state then.
    pub fn encode(&self, recording: &mut Recording<'_>) {
        let mut pending = NONE;
        let mut tapped = 0;
        for (index, layer) in self.network.layers.iter().enumerate() {
            recording.next(layer.reads(self.rows) + self.attended());
            if self.is_tapped(index) {
                self.normalise(recording.pass(), layer.mixer_norm, pending);
                pending = NONE;
                self.tap(recording, &self.state.hidden, &mut tapped);
            }
            let pass = recording.pass();
            match self.joined {
                Some((joined, fuse)) => joined.run(pass, self.rows, fuse),
                None => self.normalise(pass, layer.mixer_norm, pending),
            }
            let around = |part| self.block.map(|block| (block, (index, part)));
            if let Some((block, part)) = around(0) {
                block.convolve_inputs(pass, part, self.rows);
            }
            self.mix(pass, index, layer);
            if let Some((block, part)) = around(0) {
                block.convolve_branch(pass, part, self.rows);
            }
            self.normalise(pass, layer.feed_forward_norm, layer.mixer_post_norm);
            if let Some((block, part)) = around(1) {
                block.convolve_inputs(pass, part, self.rows);
            }
            self.feed_forward(pass, &self.steps.layers[index]);
            if let Some((block, part)) = around(1) {
                block.convolve_branch(pass, part, self.rows);
            }
            pending = layer.feed_forward_post_norm;
        }
        let end = self.is_tapped(self.network.layers.len());
        let last = self.taps.is_some_and(|(taps, _)| taps.last);
        if end || last {
            self.normalise(recording.pass(), self.network.output_norm, pending);
            pending = NONE;
            if end {
                self.tap(recording, &self.state.hidden, &mut tapped);
            }
            if last {
                self.tap(recording, &self.state.normed.plain, &mut tapped);
            }
        }
        if !self.scored.is_empty() {
            recording.next(self.network.output.reads(self.scored.len()));
            let asked = self.norm_ask(self.scored.start, self.network.output_norm, pending);
            self.steps.score_norm.run(recording.pass(), &asked, (self.scored.len(), 1));
            self.steps.scores.run(recording.pass(), self.scored.len());
            if let Some(score) = &self.steps.score {
                let Scoring { scale, cap } = self.config.scoring;
                let stride = self.config.vocabulary.next_multiple_of(LANES);
                let [twice, rate] = cap.map_or([0.0; 2], |cap| [2.0 * cap, 2.0 / cap]);
                let numbers = [scale, cap.unwrap_or(0.0), twice, rate].map(f32::to_bits);
                let asked = [&[stride as u32], &numbers[..]].concat();
                score.run(recording.pass(), &asked, (stride.div_ceil(64), self.scored.len()));
            }
            if let Some(block) = self.block {
                block.score(recording.pass(), self.scored.len());
            }
        }
    }

    /// Bytes of keys and values that attention of a layer reads for all rows.
    fn attended(&self) -> u64 {
        let ModelConfig { kv_heads, head_size, .. } = *self.config;
        (4 * kv_heads * head_size * (self.cached + self.rows) * self.rows) as u64
    }

    fn is_tapped(&self, layer: usize) -> bool {
        self.taps.is_some_and(|(taps, _)| taps.entering.contains(&layer))
    }

    /// Copies a state of all rows, as the next that is asked for.
    fn tap(&self, recording: &mut Recording<'_>, from: &Buffer, tapped: &mut usize) {
        if let Some((_, to)) = self.taps {
            let bytes = (4 * self.rows * self.width()) as u64;
            recording.copy(from, (to, *tapped as u64 * bytes), bytes);
            *tapped += 1;
        }
    }

    fn width(&self) -> usize {
        self.config.hidden.next_multiple_of(LANES)
    }

    /// What `norm.wgsl` is asked of rows from `first` on.
    fn norm_ask(&self, first: usize, weight: u32, pending: u32) -> [u32; 9] {
        let (hidden, width) = (self.config.hidden as u32, self.width() as u32);
        let [epsilon, after] = [self.config.norm_epsilon, self.config.post_norm_epsilon]
            .map(|epsilon| (epsilon as f32).to_bits());
        [first as u32, hidden, width, width, weight, pending, epsilon, 0, after]
    }

    /// The norms of all rows, whose states are first completed by the branch that is pending.
    fn normalise(&self, pass: &mut ComputePass<'_>, weight: u32, pending: u32) {
        self.steps.norm.run(pass, &self.norm_ask(0, weight, pending), (self.rows, 1));
    }

    /// Attention over the normed states, added to the states or put aside.
    fn mix(&self, pass: &mut ComputePass<'_>, index: usize, layer: &Layer) {
        let (steps, attention) = (&self.steps.layers[index], &self.attention[index]);
        let config = self.config;
        for product in [&steps.query, &steps.key, &steps.value].into_iter().chain(&steps.output_gate) {
            product.run(pass, self.rows);
        }
        let heads = config.heads + config.kv_heads;
        attention.turn.run(pass, &self.turn_ask(layer, 0), (heads, self.rows));
        for first in (0..self.rows).step_by(self.sights.rows) {
            let rows = self.sights.rows.min(self.rows - first);
            attention.attend.run(pass, &self.attend_ask(layer, first), (config.heads, rows));
        }
        match &self.steps.gate_mixed {
            None => self.steps.quantise_mixed.run(pass, self.rows),
            Some(gate) => {
                let (length, width) = (config.heads * config.head_size, self.state.mixed.width);
                activate(pass, gate, self.rows, (length, width), SIGMOID);
            }
        }
        steps.output.run(pass, self.rows);
    }

    /// What `turn.wgsl` is asked from head number `first` on.
    pub fn turn_ask(&self, layer: &Layer, first: usize) -> [u32; 15] {
        let ModelConfig { heads, kv_heads, head_size, .. } = *self.config;
        let rotary = &self.config.attention_kinds[layer.kind].rotary;
        let whole = |heads: usize| (heads * head_size).next_multiple_of(LANES) as u32;
        let [query_bias, key_bias, value_bias] = layer.biases;
        let [query_norm, key_norm] = layer.head_norms;
        [
            heads as u32,
            kv_heads as u32,
            head_size as u32,
            whole(heads),
            whole(kv_heads),
            rotary.size() as u32 / 2,
            u32::from(rotary.layout == RotaryLayout::Interleaved),
            query_bias,
            key_bias,
            value_bias,
            query_norm,
            key_norm,
            (self.config.norm_epsilon as f32).to_bits(),
            first as u32,
            if rotary.growth.is_some() { self.rows as u32 } else { 0 },
        ]
    }

    fn attend_ask(&self, layer: &Layer, first: usize) -> [u32; 11] {
        let ModelConfig { heads, kv_heads, head_size, query_scale, .. } = *self.config;
        let window = self.config.attention_kinds[layer.kind].window;
        [
            heads as u32,
            kv_heads as u32,
            head_size as u32,
            (heads * head_size).next_multiple_of(LANES) as u32,
            self.state.mixed.width as u32,
            first as u32,
            self.cached as u32,
            window.map_or(u32::MAX, |window| u32::try_from(window).unwrap_or(u32::MAX)),
            self.sights.stride as u32,
            query_scale.to_bits(),
            if layer.causal { 0 } else { self.rows as u32 },
        ]
    }

    /// The feed-forward network over the normed states, added to the states or put aside.
    fn feed_forward(&self, pass: &mut ComputePass<'_>, steps: &LayerSteps) {
        match &steps.feed_forward {
            FeedSteps::Dense { gate, up, down } => {
                gate.run(pass, self.rows);
                up.run(pass, self.rows);
                self.activate(pass, self.rows, self.config.intermediate);
                down.run(pass, self.rows);
            }
            FeedSteps::Experts(experts) => {
                let slots = experts.route(pass, self.rows);
                self.activate(pass, slots, experts.intermediate());
                experts.combine(pass, self.rows);
            }
        }
    }

    /// `activation(gate) * up` of `rows` of `length` numbers.
    fn activate(&self, pass: &mut ComputePass<'_>, rows: usize, length: usize) {
        let (sizes, kind) = ((length, self.state.gated.width), self.config.family.activation);
        activate(pass, &self.steps.activate, rows, sizes, u32::from(kind == Activation::Gelu));
    }
}

/// What `activate.wgsl` calls the sigmoid alone.
const SIGMOID: u32 = 2;

/// A step of `activate.wgsl` of a `kind` over `rows` of `length` numbers, `width` with what fills them up.
fn activate(
    pass: &mut ComputePass<'_>,
    step: &Step,
    rows: usize,
    (length, width): (usize, usize),
    kind: u32,
) {
    let blocks = length.div_ceil(32);
    let asked = [blocks as u32, rows as u32, length as u32, width as u32, width as u32, kind];
    step.run(pass, &asked, ((rows * blocks).div_ceil(64), 1));
}
