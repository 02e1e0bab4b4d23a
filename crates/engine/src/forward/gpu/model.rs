//! A loaded model on a GPU and its cache: which rows go through the layers together, what is brought back of them, and
//! which of its tokens stay. The pass itself is [`Phases`]'.

use std::ops::Range;
use std::sync::Arc;

use wgpu::Buffer;

use super::cache::{Cache, PAGE};
use super::device::GpuDevice;
use super::network::{Network, missing};
use super::pass::{AttentionSteps, Phases, Sights, Steps};
use super::state::{ROWS, State};
use crate::error::{Error, Result};
use crate::forward::cpu::alone::peak;
use crate::forward::cpu::simd::LANES;
use crate::forward::{Features, Logits, Model, Pass, Peak, Runner, Taps, Want};
use crate::model::{ModelConfig, ModelSource};
use crate::token::TokenId;
use crate::tree::TokenTree;

/// A model on a GPU and its cache.
pub struct GpuModel {
    config: ModelConfig,
    device: Arc<GpuDevice>,
    network: Network,
    state: State,
    steps: Steps,
    caches: Vec<Cache>,
    sights: Sights,
    /// Of each layer; `None` while they are not bound to the caches as these are.
    attention: Option<Vec<AttentionSteps>>,
    /// What logits and what states go through on their way back.
    returning: [Buffer; 2],
    cached: Vec<TokenId>,
    logits: Vec<f32>, // [rows asked for, vocabulary in whole vectors]
    peaks: Vec<Peak>,
    features: Vec<f32>, // [nodes, tapped]
    /// Numbers a node that were asked for.
    tapped: usize,
}

/// Words about nodes that there is room for at first: rows of a chain, or small trees.
const WORDS: usize = 3 * ROWS + 1024;

/// Rows of a pass that go through the layers together.
struct Chunk {
    rows: usize,
    /// Positions before those that rows name themselves.
    cached: usize,
    scored: Range<usize>,
    words: Vec<u32>,
}

impl GpuModel {
    /// # Errors
    /// `Error::NotOnGpu` for a model with something this engine cannot run, those of loading weights, and
    /// `Error::Compute` when the device has no room or its driver does not take the programs.
    pub fn load(source: &ModelSource, device: &Arc<GpuDevice>) -> Result<Self> {
        let config = source.config()?.clone();
        if let Some(missing) = missing(&config) {
            return Err(Error::NotOnGpu(missing));
        }
        device.check()?;
        let network = Network::load(device, &source.weights(&candle_core::Device::Cpu)?, &config)?;
        let state = State::new(device, &config)?;
        let cache = |_| Cache::new(device, config.kv_heads, config.head_size);
        let model = Self {
            steps: Steps::new(device, &network, &state, &config)?,
            caches: (0..config.layers).map(cache).collect::<Result<_>>()?,
            sights: Sights::new(device, config.heads, PAGE, WORDS)?,
            attention: None,
            returning: [device.readable(16)?, device.readable(16)?],
            device: Arc::clone(device),
            network,
            state,
            cached: Vec::new(),
            logits: Vec::new(),
            peaks: Vec::new(),
            features: Vec::new(),
            tapped: 0,
            config,
        };
        model.device.wait()?;
        Ok(model)
    }

    /// Numbers of a row of logits.
    fn stride(&self) -> usize {
        self.config.vocabulary.next_multiple_of(LANES)
    }

    /// Makes room for `positions` in the caches and for `words` about nodes.
    ///
    /// # Errors
    /// `Error::Compute` when the device has none; what is cached stays.
    fn make_room(&mut self, positions: usize, words: usize) -> Result<()> {
        let device = &*self.device;
        for cache in &mut self.caches {
            if cache.reserve(device, positions)? {
                self.attention = None;
            }
        }
        let positions = self.caches.iter().map(Cache::positions).min().unwrap_or(PAGE);
        let room = self.sights.nodes.size() as usize / 4;
        if self.sights.stride < positions || room < words {
            self.attention = None;
            let words = words.max(room).next_power_of_two();
            self.sights = Sights::new(device, self.config.heads, positions, words)?;
        }
        if self.attention.is_none() {
            let bind = |(layer, cache)| {
                AttentionSteps::new(device, (layer, cache), &self.network.vectors, &self.state, &self.sights)
            };
            let bound = self.network.layers.iter().zip(&self.caches).map(bind);
            self.attention = Some(bound.collect::<Result<_>>()?);
        }
        Ok(())
    }

    /// The nodes `nodes` of a tree after `at` cached positions; `wanted` are nodes whose logits are asked for.
    fn chunk(tree: &TokenTree, at: usize, nodes: Range<usize>, wanted: &Range<usize>) -> Chunk {
        let rows = nodes.len();
        let scored = wanted.start.clamp(nodes.start, nodes.end) - nodes.start
            ..wanted.end.clamp(nodes.start, nodes.end) - nodes.start;
        let (mut words, mut paths) = (Vec::new(), Vec::new());
        let slots = (at + nodes.start..at + nodes.end).map(|slot| slot as u32);
        if tree.is_chain() {
            // Everything before a row is seen by it, so that one path is enough, of which each row sees a part.
            paths.extend(0..rows as u32);
            let begin = 3 * rows as u32;
            words.extend(slots.zip(1..).flat_map(|(slot, seen)| [slot, begin, begin + seen]));
        } else {
            for (slot, path) in slots.zip(&tree.visible()[nodes.clone()]) {
                let begin = (3 * rows + paths.len()) as u32;
                words.extend([slot, begin, begin + path.len() as u32]);
                paths.extend(path.iter().map(|&node| node as u32));
            }
        }
        words.extend(paths);
        let cached = if tree.is_chain() { at + nodes.start } else { at };
        Chunk { rows, cached, scored, words }
    }

    /// Hands over what a pass over `nodes` begins with: embeddings, positions, and what rows see.
    fn write(&self, tree: &TokenTree, positions: &[usize], nodes: Range<usize>, chunk: &Chunk) {
        let (hidden, scale) = (self.config.hidden, self.config.embedding_scale());
        let width = hidden.next_multiple_of(LANES);
        let mut states = vec![0.0; nodes.len() * width];
        for (node, state) in nodes.clone().zip(states.chunks_exact_mut(width)) {
            self.network.embedding.unpack_row(tree.token(node) as usize, &mut state[..hidden]);
            if scale != 1.0 {
                state.iter_mut().for_each(|number| *number *= scale);
            }
        }
        self.device.write(&self.state.hidden, states.into_iter().map(f32::to_bits));
        self.device.write(&self.sights.nodes, chunk.words.iter().copied());
        let (mut cosines, mut sines) = (Vec::new(), Vec::new());
        for (kind, to) in self.config.attention_kinds.iter().zip(&self.state.turns) {
            kind.rotary.tabulate(&positions[nodes.clone()], &mut cosines, &mut sines);
            let turns = cosines.iter().zip(&sines).flat_map(|(&cos, &sin)| [cos, sin]);
            self.device.write(to, turns.map(f32::to_bits));
        }
    }

    /// Runs a chunk that is written, and brings back what is asked for.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    fn run_chunk(&mut self, chunk: &Chunk, taps: Option<&Taps>) -> Result<()> {
        let (stride, width) = (self.stride(), self.config.hidden.next_multiple_of(LANES));
        let tapped = taps.map_or(0, |taps| taps.width(1));
        let counts = [chunk.scored.len() * stride, tapped * chunk.rows * width];
        for (buffer, count) in self.returning.iter_mut().zip(counts) {
            if buffer.size() < 4 * count as u64 {
                *buffer = self.device.readable(4 * count)?;
            }
        }
        let states = self.device.buffer(4 * counts[1])?;
        let phases = Phases {
            config: &self.config,
            network: &self.network,
            state: &self.state,
            steps: &self.steps,
            attention: self.attention.as_deref().unwrap_or_default(),
            sights: &self.sights,
            rows: chunk.rows,
            cached: chunk.cached,
            scored: chunk.scored.clone(),
            taps: taps.map(|taps| (taps, &states)),
        };
        let mut encoder = self.device.raw().create_command_encoder(&Default::default());
        phases.encode(&mut encoder);
        for ((from, to), count) in [&self.state.logits, &states].into_iter().zip(&self.returning).zip(counts)
        {
            encoder.copy_buffer_to_buffer(from, 0, to, 0, 4 * count as u64);
        }
        self.device.queue().submit([encoder.finish()]);
        if counts[0] > 0 {
            self.logits.extend(self.device.fetch(&self.returning[0], counts[0])?);
        }
        if counts[1] > 0 {
            let states = self.device.fetch(&self.returning[1], counts[1])?;
            let row = |row: usize| {
                let of_tap = move |tap: usize| (tap * chunk.rows + row) * width;
                (0..tapped).map(of_tap).flat_map(|at| &states[at..at + self.config.hidden])
            };
            self.features.extend((0..chunk.rows).flat_map(row));
        }
        self.device.check()
    }
}

impl Model for GpuModel {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn cached(&self) -> &[TokenId] {
        &self.cached
    }

    fn run(&mut self, tree: &TokenTree, want: &Want<'_>) -> Result<Pass<'_>> {
        Pass::run(self, tree, want)
    }

    fn wait(&self) -> Result<()> {
        self.device.wait()
    }

    fn truncate(&mut self, length: usize) -> usize {
        self.cached.truncate(length);
        self.cached.len()
    }
}

impl Runner for GpuModel {
    fn extend(&mut self, tree: &TokenTree, first: usize, want: &Want<'_>) -> Result<()> {
        let at = self.cached.len() - first;
        let positions: Vec<usize> = tree.depths().iter().map(|depth| at + depth).collect();
        let rows = want.rows_between(first, tree.len());
        let wanted = first + rows.start..first + rows.end;
        self.logits.clear();
        self.peaks.clear();
        self.features.clear();
        self.tapped = want.features.map_or(0, |taps| taps.width(self.config.hidden));
        for start in (first..tree.len()).step_by(ROWS) {
            let nodes = start..tree.len().min(start + ROWS);
            let chunk = Self::chunk(tree, at, nodes.clone(), &wanted);
            self.make_room(at + tree.len(), chunk.words.len())?;
            self.write(tree, &positions, nodes, &chunk);
            self.run_chunk(&chunk, want.features)?;
        }
        let (stride, vocabulary) = (self.stride(), self.config.vocabulary);
        let peaks = self.logits.chunks_exact_mut(stride).map(|row| peak(row, vocabulary));
        self.peaks.extend(peaks);
        self.cached.extend(tree.tokens().skip(first));
        Ok(())
    }

    fn logits(&self) -> Logits<'_> {
        Logits::new(&self.logits, self.config.vocabulary, self.stride(), &self.peaks)
    }

    fn features(&self) -> Option<Features<'_>> {
        (self.tapped > 0).then(|| Features::new(&self.features, self.tapped))
    }

    fn keep(&mut self, nodes: usize, path: &[usize]) -> Result<()> {
        let start = self.cached.len() - nodes;
        let moves = path.iter().enumerate().filter(|&(to, &from)| to != from);
        let words: Vec<u32> =
            moves.flat_map(|(to, &from)| [(start + from) as u32, (start + to) as u32]).collect();
        if !words.is_empty() {
            self.make_room(self.cached.len(), words.len())?;
            self.gather(&words)?;
        }
        for (to, &from) in path.iter().enumerate() {
            self.cached[start + to] = self.cached[start + from];
        }
        self.cached.truncate(start + path.len());
        Ok(())
    }
}

impl GpuModel {
    /// Copies positions over others, given as pairs, in every layer.
    ///
    /// # Errors
    /// `Error::Compute` when the device failed.
    fn gather(&self, pairs: &[u32]) -> Result<()> {
        let (kv_heads, of_head) = (self.config.kv_heads, self.config.head_size / 2);
        let asked = [kv_heads as u32, of_head as u32, pairs.len() as u32 / 2];
        self.device.write(&self.sights.nodes, pairs.iter().copied());
        let mut encoder = self.device.raw().create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        for layer in self.attention.iter().flatten() {
            layer.gather.run(&mut pass, &asked, ((kv_heads * of_head).div_ceil(64), 1));
        }
        drop(pass);
        self.device.queue().submit([encoder.finish()]);
        self.device.check()
    }
}
