//! Passes on a GPU: split into chunks, with their outputs collected. [`Phases`] encodes the pass
//! itself.

use std::ops::Range;
use std::sync::Arc;

use foretoken_model::error::{Error, Result};
use foretoken_model::token::TokenId;
use foretoken_model::{ModelConfig, ModelSource};

use super::assistant::AssistantSteps;
use super::block::Block;
use super::chunk::Chunk;
use super::device::GpuDevice;
use super::head_input::HeadInputSteps;
use super::inputs::Inputs;
use super::kv_rows::KvColumns;
use super::matrix::TILE;
use super::memory::Memory;
use super::network::{Network, missing};
use super::outputs::{OutputBuffers, Outputs};
use super::pass::{Phases, Steps};
use super::pictures::{Pictures, Uploaded};
use super::recording::Recording;
use super::recurrent_memory::RecurrentMemory;
use super::scores::{LogitRequest, Scorer, Scores};
use super::state::{ROWS, SCORED, State};
use super::walk::Walk;
use crate::cached::{Cached, Executor, Nodes};
use crate::cpu::rescoring::{PositionScores, next_state, rescore};
use crate::cpu::simd::LANES;
use crate::grids::Position;
use crate::state_history::SlotCounts;
use crate::{BlockState, DispatchStats, Features, HeadInput, LogitSubset, Logits, MediaRows, Row, Want};

/// A model on a GPU and its cache.
pub type GpuModel = Cached<GpuExecutor>;

/// Runs passes on a GPU.
pub struct GpuExecutor {
    config: ModelConfig,
    device: Arc<GpuDevice>,
    network: Network,
    state: State,
    steps: Steps,
    head_steps: Option<HeadInputSteps>,
    assistant: Option<AssistantSteps>,
    block: Option<Block>,
    memory: Memory,
    /// `None` without recurrent layers.
    recurrent: Option<RecurrentMemory>,
    scorer: Scorer,
    scores: Scores,
    /// Tokens that `scores` covers, from the first.
    vocabulary: usize,
    output_buffers: OutputBuffers,
    outputs: Outputs,
    /// Numbers per node of the last pass's features.
    tapped: usize,
    /// Scores after a token, in a head that drafts blocks.
    after: Vec<f32>, // [vocabulary]
    dispatch_stats: DispatchStats,
}

impl GpuModel {
    /// # Errors
    /// `Error::NotOnGpu` for a model that this engine cannot run, those of loading weights, and
    /// `Error::Compute` when the device has no room or its driver rejects the kernels.
    pub fn load(source: &ModelSource, device: &Arc<GpuDevice>) -> Result<Self> {
        let config = source.config()?.clone();
        if let Some(missing) = missing(&config) {
            return Err(Error::NotOnGpu(missing));
        }
        device.check()?;
        let weights = source.weights(&candle_core::Device::Cpu)?;
        let network = Network::load(device, &weights, &config)?;
        // All other kernels are few and small; they are compiled on first use.
        device.pipelines().prepare(device, &network.products(device.tiles()))?;
        let state = State::new(device, &network, &config)?;
        let executor = GpuExecutor {
            steps: Steps::new(device, &network, &state, &config)?,
            head_steps: HeadInputSteps::load(device, &weights, &config, &state)?,
            assistant: AssistantSteps::load(device, &network, &state, &config)?,
            block: Block::load(device, &weights, &config, &network, &state)?,
            memory: Memory::new(device, &config)?,
            recurrent: RecurrentMemory::new(device, &config)?,
            scorer: Scorer::new(device, &state.logits, &state.tokens, config.vocabulary)?,
            scores: Scores::none(),
            vocabulary: config.vocabulary,
            output_buffers: OutputBuffers::new(device)?,
            outputs: Outputs::default(),
            dispatch_stats: DispatchStats { dispatches: 0, bytes: network.bytes() },
            device: Arc::clone(device),
            network,
            state,
            tapped: 0,
            after: Vec::new(),
            config,
        };
        executor.device.wait()?;
        let checkpoints = executor.recurrent.as_ref().map_or(0, RecurrentMemory::checkpoints);
        Ok(Self::new(executor, checkpoints))
    }
}

impl GpuExecutor {
    /// Makes room for `positions`, and for `words` words of masks.
    ///
    /// # Errors
    /// As [`Memory::make_room`].
    fn make_room(&mut self, positions: usize, words: usize) -> Result<()> {
        let (network, state, config) = (&self.network, &self.state, &self.config);
        self.memory.make_room(&self.device, network, state, config, positions, words)
    }

    /// Destination of a pass's inputs.
    fn inputs<'a>(&'a self, media: &'a MediaRows, places: Option<&'a [Position]>, long: bool) -> Inputs<'a> {
        Inputs {
            media,
            places,
            device: &self.device,
            config: &self.config,
            network: &self.network,
            state: &self.state,
            head_steps: self.head_steps.as_ref(),
            assistant: self.assistant.as_ref(),
            block: self.block.as_ref(),
            long,
        }
    }

    /// Uploads pictures among `nodes`; `None` if there are none.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no memory left.
    fn pictures(&self, media: &MediaRows, nodes: Range<usize>) -> Result<Option<Pictures>> {
        if media.is_empty() {
            return Ok(None);
        }
        let (hidden, looked_up) = (self.config.hidden, self.network.embedding.is_none());
        Uploaded { media, nodes, hidden, looked_up }.upload(&self.device, &self.state.hidden).map(Some)
    }

    /// Runs an uploaded chunk and collects the requested outputs.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    fn run_chunk(
        &mut self,
        chunk: &Chunk,
        walk: Option<&Walk>,
        pictures: Option<Pictures>,
        want: &Want<'_>,
        request: &LogitRequest<'_>,
    ) -> Result<()> {
        let (taps, block) = (want.features, self.block.as_ref());
        let (rows, scored) = (chunk.rows, chunk.scored.len());
        self.output_buffers.prepare(&self.device, &self.config, taps, block, rows, scored)?;
        let (device, config, memory) = (&self.device, &self.config, &self.memory);
        let returned = taps.map(|taps| {
            KvColumns::bind(device, config, memory, &taps.cached, &self.output_buffers.cached, false)
        });
        let is_own = matches!(want.head_input, Some(HeadInput::Own(_)));
        let phases = Phases {
            config: &self.config,
            network: &self.network,
            state: &self.state,
            steps: &self.steps,
            attention: self.memory.attention(),
            recurrent: self.recurrent.as_ref().map(RecurrentMemory::steps).zip(walk),
            rows: chunk.rows,
            cached: chunk.cached,
            longest: chunk.longest,
            pictures,
            chain: chunk.chain,
            scored: chunk.scored.clone(),
            vocabulary: self.vocabulary,
            taps: taps.map(|taps| (taps, &self.output_buffers.states)),
            returned: returned.transpose()?.unwrap_or_default(),
            assistant: self.assistant.as_ref().map(|assistant| (assistant, is_own)),
            head_steps: self
                .head_steps
                .as_ref()
                .map(|head_steps| (head_steps, matches!(want.head_input, Some(HeadInput::Target(_))))),
            block,
        };
        let mut recording = Recording::new(&self.device);
        match (block, &self.assistant, want.head_input) {
            (Some(block), _, Some(_)) => phases.cache_states(&mut recording, block),
            (_, Some(assistant), Some(HeadInput::Target(_))) => {
                let columns = assistant.caching(device, config, memory)?;
                columns.iter().for_each(|columns| columns.run(recording.pass(), rows));
            }
            _ => phases.encode(&mut recording),
        }
        if request.rows > 0 {
            if request.subset != LogitSubset::Everything {
                self.scorer.sketch(recording.pass(), request);
            }
            self.scorer.copy_out(&mut recording, request)?;
        }
        self.output_buffers.copy_out(&mut recording, &self.state, block);
        self.dispatch_stats.dispatches += recording.end();
        if request.rows > 0 {
            let before = std::mem::replace(&mut self.scores, Scores::none());
            self.scores = self.scorer.collect(request, before)?;
        }
        self.output_buffers.collect(&self.device, &self.config, taps, chunk.rows, &mut self.outputs)?;
        self.device.check()
    }
}

impl Executor for GpuExecutor {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn wait(&self) -> Result<()> {
        self.device.wait()
    }

    fn dispatch_stats(&self) -> Option<DispatchStats> {
        Some(self.dispatch_stats)
    }

    fn reserve(&mut self, _: Range<usize>, slots: SlotCounts) -> Result<()> {
        self.recurrent.as_mut().map_or(Ok(()), |recurrent| recurrent.reserve(&self.device, slots))
    }

    fn run(&mut self, nodes: Nodes<'_>, want: &Want<'_>) -> Result<()> {
        let Nodes { tree, first, at, long, states, media, positions: places } = nodes;
        let mut positions: Vec<usize> = tree.depths().iter().map(|depth| at + depth).collect();
        if self.assistant.is_some() {
            // All rows have the position after the text.
            positions.fill(at);
        }
        let rows = want.rows_between(first, tree.len());
        let wanted = first + rows.start..first + rows.end;
        self.scores = Scores::none();
        self.outputs = Outputs::default();
        self.tapped = want.features.map_or(0, |taps| taps.width(&self.config));
        let at_once = self.rows_at_once(rows.len());
        self.dispatch_stats.dispatches = 0;
        let tokens: Vec<TokenId> = tree.tokens().collect();
        // Only one chunk's logits stay on the device. A head that drafts blocks rescores whole
        // rows.
        let [first_chunk, last_chunk] = [rows.start, rows.end.max(1) - 1].map(|row| row / at_once);
        let subset = match first_chunk == last_chunk && self.block.is_none() {
            true => want.subset,
            false => LogitSubset::Everything,
        };
        let clusters = self.assistant.as_ref().and_then(|assistant| assistant.clusters.as_ref());
        let ids = if clusters.is_some() { usize::MAX } else { want.vocabulary };
        self.vocabulary = self.config.vocabulary.min(ids);
        for start in (first..tree.len()).step_by(at_once) {
            let nodes = start..tree.len().min(start + at_once);
            let mut chunk = Chunk::new(tree, at, nodes.clone(), &wanted);
            if self.assistant.is_some() {
                chunk.hide_nodes(at);
            }
            self.make_room(at + tree.len(), chunk.words.len())?;
            let walk = states.as_ref().zip(self.config.recurrence());
            let walk = walk.map(|(plan, recurrence)| Walk::new(recurrence, tree, plan, first, nodes.clone()));
            if let (Some(recurrent), Some(walk)) = (&mut self.recurrent, &walk) {
                recurrent.upload(&self.device, &self.network, &self.state, &self.config, walk)?;
            }
            let rows = nodes.start - first..nodes.end - first;
            let places = places.as_deref().map(|places| &places[rows.clone()]);
            let head_input = want.head_input.map(|head_input| (head_input, rows));
            let to = &self.memory.buffers.nodes;
            let inputs = self.inputs(&media, places, long);
            inputs.write(tree, &positions, nodes.clone(), &chunk, to, head_input)?;
            let pictures = self.pictures(&media, nodes.clone())?;
            let (rows, vocabulary) = (chunk.scored.len(), self.vocabulary);
            let request =
                LogitRequest { tokens: &tokens[nodes], rows, vocabulary, subset, penalised: want.penalised };
            self.run_chunk(&chunk, walk.as_ref(), pictures, want, &request)?;
        }
        Ok(())
    }

    fn logits(&self) -> Logits<'_> {
        self.scorer.logits(&self.scores, self.vocabulary)
    }

    fn next_state(&mut self, state: &BlockState, token: TokenId) -> Result<BlockState> {
        let Some(block) = &self.block else { return Ok(state.after(token, Vec::new())) };
        let multiply = &mut |weights: &_, row: &_| block.multiply(&self.device, weights, row);
        next_state(Some(&block.head), self.network.embedding.as_ref(), state, token, multiply)
    }

    fn row_after(&mut self, row: usize, state: &BlockState) -> Result<(Row<'_>, Option<f32>)> {
        let Some(block) = &self.block else { return Ok((self.logits().row(row), None)) };
        let hidden = self.config.hidden;
        let scored = PositionScores {
            scores: self.logits().row(row),
            factor: &self.outputs.position_factors[row * block.rank()..][..block.rank()],
            state: match self.outputs.scored.is_empty() {
                true => &[],
                false => &self.outputs.scored[row * hidden.next_multiple_of(LANES)..][..hidden],
            },
        };
        let multiply = &mut |weights: &_, row: &_| block.multiply(&self.device, weights, row);
        let (scores, confidence) = rescore(&block.head, scored, state, multiply)?;
        let Some(scores) = scores else { return Ok((self.logits().row(row), confidence)) };
        self.after = scores;
        Ok((Row::of(&self.after), confidence))
    }

    fn features(&self) -> Option<Features<'_>> {
        (self.tapped > 0).then(|| Features::new(&self.outputs.features, self.tapped))
    }

    fn copy(&mut self, moves: &[(usize, usize)]) -> Result<()> {
        let words: Vec<u32> = moves.iter().flat_map(|&(from, to)| [from as u32, to as u32]).collect();
        let positions = moves.last().map_or(0, |&(from, _)| from + 1);
        self.make_room(positions, words.len())?;
        self.memory.gather(&self.device, &self.config, &words)
    }
}

impl GpuExecutor {
    /// Rows that go through the layers together. They are fewer if a layer takes long, and if the
    /// logits of many rows are requested (`requested`).
    fn rows_at_once(&self, requested: usize) -> usize {
        let most = if requested > SCORED { SCORED } else { ROWS };
        if self.block.is_some() {
            // Rows of a block attend to each other.
            return most;
        }
        let of_tile = self.network.layers.iter().map(|layer| layer.reads(TILE)).max().unwrap_or(0).max(1);
        ((self.device.at_once() / of_tile) as usize).clamp(1, most / TILE) * TILE
    }
}
