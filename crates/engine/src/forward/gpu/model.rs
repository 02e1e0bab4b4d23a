//! A loaded model on a GPU and its cache: which rows go through the layers together, what is brought back of them, and
//! which of its tokens stay. The pass itself is [`Phases`]'.

use std::ops::Range;
use std::sync::Arc;

use wgpu::Buffer;

use super::block::Block;
use super::cache::{Cache, PAGE};
use super::chunk::Chunk;
use super::device::GpuDevice;
use super::joined::Joined;
use super::network::{Network, TILE, missing};
use super::pass::{AttentionSteps, Phases, Sights, Steps};
use super::recording::Recording;
use super::scores::{Asked, Scorer, Scores};
use super::state::{ROWS, State};
use crate::error::{Error, Result};
use crate::forward::cpu::alone::rms_norm;
use crate::forward::cpu::simd::LANES;
use crate::forward::cpu::transition::{Scored, after};
use crate::forward::{Carried, Features, Interest, Logits, Model, Pass, Row, Runner, Want};
use crate::model::{ModelConfig, ModelSource, Turns};
use crate::token::TokenId;
use crate::tree::TokenTree;

/// A model on a GPU and its cache.
pub struct GpuModel {
    config: ModelConfig,
    device: Arc<GpuDevice>,
    network: Network,
    state: State,
    steps: Steps,
    joined: Option<Joined>,
    block: Option<Block>,
    caches: Vec<Cache>,
    sights: Sights,
    /// Of each layer; `None` while they are not bound to the caches as these are.
    attention: Option<Vec<AttentionSteps>>,
    scorer: Scorer,
    scores: Scores,
    /// Tokens that these are of: so many first ones.
    vocabulary: usize,
    /// States that are asked for: [taps, rows, hidden in whole vectors].
    states: Buffer,
    /// What they, and what is known of places, go through on their way back.
    returning: Vec<Buffer>,
    cached: Vec<TokenId>,
    /// The text is longer than the border of its [`ModelConfig`].
    long: bool,
    features: Vec<f32>, // [nodes, tapped]
    /// Numbers a node that were asked for.
    tapped: usize,
    /// Of a draft head that guesses blocks: what a selector knows of the rows asked for, their normed states, and the
    /// scores of one of them after a token.
    places: Vec<f32>, // [rows asked for, rank in whole vectors]
    scored: Vec<f32>, // [rows asked for, hidden in whole vectors]
    after: Vec<f32>,  // [vocabulary]
}

/// Words about nodes that there is room for at first: rows of a chain, or small trees.
const WORDS: usize = 3 * ROWS + 1024;

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
        let weights = source.weights(&candle_core::Device::Cpu)?;
        let network = Network::load(device, &weights, &config)?;
        let state = State::new(device, &config)?;
        let cache = |_| Cache::new(device, config.kv_heads, config.head_size);
        let model = Self {
            steps: Steps::new(device, &network, &state, &config)?,
            joined: Joined::load(device, &weights, &config, &state)?,
            block: Block::load(device, &weights, (&config, &network, &state))?,
            caches: (0..config.layers).map(cache).collect::<Result<_>>()?,
            sights: Sights::new(device, config.heads, PAGE, WORDS)?,
            attention: None,
            scorer: Scorer::new(device, &state.logits, &state.tokens, config.vocabulary)?,
            scores: Scores::none(),
            vocabulary: config.vocabulary,
            states: device.buffer(16)?,
            returning: [(); 3].map(|()| device.readable(16)).into_iter().collect::<Result<Vec<_>>>()?,
            device: Arc::clone(device),
            network,
            state,
            cached: Vec::new(),
            long: false,
            features: Vec::new(),
            tapped: 0,
            places: Vec::new(),
            scored: Vec::new(),
            after: Vec::new(),
            config,
        };
        model.device.wait()?;
        Ok(model)
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

    /// Hands over what a pass over `nodes` begins with: embeddings, positions, and what rows see.
    /// `carried` are those rows of what a draft head is given.
    fn write(
        &self,
        tree: &TokenTree,
        positions: &[usize],
        (nodes, chunk): (Range<usize>, &Chunk),
        carried: Option<(Carried<'_>, Range<usize>)>,
    ) {
        match (&self.joined, &self.block, carried) {
            (Some(joined), _, Some((carried, rows))) => {
                let tokens = tree.tokens().skip(nodes.start);
                joined.write((&self.device, &self.network, &self.state), tokens, carried, rows);
            }
            (_, Some(block), Some((carried, rows))) => block.write(&self.device, carried.features(), rows),
            _ => self.embed(tree, nodes.clone()),
        }
        self.device.write(&self.sights.nodes, chunk.words.iter().copied());
        self.device.write(&self.state.tokens, nodes.clone().map(|node| tree.token(node)));
        let [mut keys, mut queries] = [Turns::default(), Turns::default()];
        let positions = &positions[nodes];
        for (kind, to) in self.config.attention_kinds.iter().zip(&self.state.turns) {
            kind.rotary.tabulate(positions, self.long, &mut keys);
            let queries = kind.rotary.growth.map(|growth| {
                growth.tabulate(positions, &keys, &mut queries);
                &queries
            });
            let turns = queries.into_iter().chain([&keys]);
            let numbers = turns.flat_map(|turns| turns.cosines.iter().zip(&turns.sines));
            self.device.write(to, numbers.flat_map(|(&cos, &sin)| [cos, sin]).map(f32::to_bits));
        }
    }

    /// Hands over the embeddings of `nodes`.
    fn embed(&self, tree: &TokenTree, nodes: Range<usize>) {
        let (hidden, scale) = (self.config.hidden, self.config.embedding_scale);
        let width = hidden.next_multiple_of(LANES);
        let mut states = vec![0.0; nodes.len() * width];
        for (node, state) in nodes.zip(states.chunks_exact_mut(width)) {
            self.network.embedding.unpack_row(tree.token(node) as usize, &mut state[..hidden]);
            if scale != 1.0 {
                state.iter_mut().for_each(|number| *number *= scale);
            }
            if let Some(norm) = &self.network.embedding_norm {
                let epsilon = self.config.norm_epsilon as f32;
                let normed = rms_norm(&state[..hidden], &norm[..hidden], epsilon);
                state[..hidden].copy_from_slice(&normed);
            }
        }
        self.device.write(&self.state.hidden, states.into_iter().map(f32::to_bits));
    }

    /// Runs a chunk that is written, and brings back what is asked for.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    fn run_chunk(&mut self, chunk: &Chunk, want: &Want<'_>, asked: &Asked<'_>) -> Result<()> {
        let taps = want.features;
        let width = self.config.hidden.next_multiple_of(LANES);
        let tapped = taps.map_or(0, |taps| taps.width(1));
        let scored = chunk.scored.len();
        let (rank, of_state) = self
            .block
            .as_ref()
            .map_or((0, 0), |block| (block.rank(), if block.head.confidence.is_some() { width } else { 0 }));
        let counts = [tapped * chunk.rows * width, scored * rank, scored * of_state];
        for (buffer, count) in self.returning.iter_mut().zip(counts) {
            self.device.grow(buffer, count)?;
        }
        if self.states.size() < 4 * counts[0] as u64 {
            self.states = self.device.buffer(4 * counts[0])?;
        }
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
            taps: taps.map(|taps| (taps, &self.states)),
            joined: self
                .joined
                .as_ref()
                .map(|joined| (joined, matches!(want.carried, Some(Carried::Target(_))))),
            block: self.block.as_ref(),
        };
        let mut recording = Recording::new(&self.device);
        match (&self.block, want.carried) {
            (Some(block), Some(_)) => phases.remember_states(&mut recording, block),
            _ => phases.encode(&mut recording),
        }
        if asked.rows > 0 {
            if asked.interest != Interest::Everything {
                self.scorer.sketch(recording.pass(), asked);
            }
            self.scorer.bring_back(&mut recording, asked)?;
        }
        let places = self.block.as_ref().map_or(&self.states, |block| &block.places);
        let sources = [&self.states, places, &self.state.scored.plain];
        for ((from, to), count) in sources.into_iter().zip(&self.returning).zip(counts) {
            recording.copy(from, (to, 0), 4 * count as u64);
        }
        recording.end();
        if asked.rows > 0 {
            let before = std::mem::replace(&mut self.scores, Scores::none());
            self.scores = self.scorer.collect(asked, before)?;
        }
        if counts[0] > 0 {
            let states = self.device.fetch(&self.returning[0], counts[0])?;
            // The last tap is normed.
            let states_of_layers = taps.map_or(0, |taps| taps.entering.len());
            for (row, tap) in (0..chunk.rows).flat_map(|row| (0..tapped).map(move |tap| (row, tap))) {
                let at = (tap * chunk.rows + row) * width;
                let scale = if tap < states_of_layers { self.config.state_scale } else { 1.0 };
                let state = &states[at..at + self.config.hidden];
                self.features.extend(state.iter().map(|number| number * scale));
            }
        }
        for (numbers, at) in [(&mut self.places, 1), (&mut self.scored, 2)] {
            if counts[at] > 0 {
                numbers.extend(self.device.fetch(&self.returning[at], counts[at])?);
            }
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

    fn expect(&mut self, length: usize) {
        if self.config.is_long(length) != self.long {
            self.long = !self.long;
            self.truncate(0);
        }
    }
}

impl Runner for GpuModel {
    fn extend(&mut self, tree: &TokenTree, first: usize, want: &Want<'_>) -> Result<()> {
        let at = self.cached.len() - first;
        let positions: Vec<usize> = tree.depths().iter().map(|depth| at + depth).collect();
        let rows = want.rows_between(first, tree.len());
        let wanted = first + rows.start..first + rows.end;
        self.scores = Scores::none();
        self.features.clear();
        self.places.clear();
        self.scored.clear();
        self.tapped = want.features.map_or(0, |taps| taps.width(self.config.hidden));
        let at_once = self.rows_at_once();
        let tokens: Vec<TokenId> = tree.tokens().collect();
        // What stays on the device is the logits of one chunk; how the token before changes scores is told of all.
        let [first_chunk, last_chunk] = [rows.start, rows.end.max(1) - 1].map(|row| row / at_once);
        let interest = match first_chunk == last_chunk && self.block.is_none() {
            true => want.interest,
            false => Interest::Everything,
        };
        self.vocabulary = match interest {
            Interest::Everything => self.config.vocabulary,
            _ => self.config.vocabulary.min(want.vocabulary),
        };
        for start in (first..tree.len()).step_by(at_once) {
            let nodes = start..tree.len().min(start + at_once);
            let chunk = Chunk::new(tree, at, nodes.clone(), &wanted);
            self.make_room(at + tree.len(), chunk.words.len())?;
            let rows = nodes.start - first..nodes.end - first;
            let carried = want.carried.map(|carried| (carried, rows));
            self.write(tree, &positions, (nodes.clone(), &chunk), carried);
            let (rows, vocabulary) = (chunk.scored.len(), self.vocabulary);
            let asked = Asked { tokens: &tokens[nodes], rows, vocabulary, interest };
            self.run_chunk(&chunk, want, &asked)?;
        }
        self.cached.extend(tree.tokens().skip(first));
        Ok(())
    }

    fn logits(&self) -> Logits<'_> {
        self.scorer.logits(&self.scores, self.vocabulary)
    }

    fn row_after(&mut self, row: usize, before: TokenId) -> Result<(Row<'_>, Option<f32>)> {
        let Some(block) = &self.block else { return Ok((self.logits().row(row), None)) };
        let hidden = self.config.hidden;
        let scored = Scored {
            scores: self.logits().row(row),
            place: &self.places[row * block.rank()..][..block.rank()],
            state: match self.scored.is_empty() {
                true => &[],
                false => &self.scored[row * hidden.next_multiple_of(LANES)..][..hidden],
            },
        };
        let bias = |_: &_, of_before: &[f32]| block.bias(&self.device, of_before);
        let (scores, confidence) = after(&block.head, scored, before, bias)?;
        let Some(scores) = scores else { return Ok((self.logits().row(row), confidence)) };
        self.after = scores;
        Ok((Row::of(&self.after), confidence))
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
    /// Rows that go through the layers together: fewer where a layer keeps the device for long.
    fn rows_at_once(&self) -> usize {
        if self.block.is_some() {
            // Its rows see each other.
            return ROWS;
        }
        let of_tile = self.network.layers.iter().map(|layer| layer.reads(TILE)).max().unwrap_or(0).max(1);
        ((self.device.at_once() / of_tile) as usize).clamp(1, ROWS / TILE) * TILE
    }

    /// Copies positions over others, given as pairs, in every layer.
    ///
    /// # Errors
    /// `Error::Compute` when the device failed.
    fn gather(&self, pairs: &[u32]) -> Result<()> {
        let (kv_heads, of_head) = (self.config.kv_heads, self.config.head_size / 2);
        let asked = [kv_heads as u32, of_head as u32, pairs.len() as u32 / 2];
        self.device.write(&self.sights.nodes, pairs.iter().copied());
        let mut recording = Recording::new(&self.device);
        for layer in self.attention.iter().flatten() {
            layer.gather.run(recording.pass(), &asked, ((kv_heads * of_head).div_ceil(64), 1));
        }
        recording.end();
        self.device.check()
    }
}
