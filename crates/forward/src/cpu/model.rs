//! Passes on the CPU: memory for what they cache, and how many threads run them. The pass itself is
//! in [`PassContext`].

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use foretoken_model::error::{Error, Result};
use foretoken_model::token::TokenId;
use foretoken_model::{KvDtype, LayerSpec, ModelConfig, ModelSource};

use super::cache::KvCache;
use super::head::Head;
use super::isa::Isa;
use super::kernels::Kernels;
use super::memory::{Layout, Memory};
use super::network::Network;
use super::panels::Panels;
use super::pass::{PassContext, copies_of_norms};
use super::prefetch::run_length;
use super::stored::Stored;
use super::team::Team;
use super::team_size::TeamSizes;
use super::tree_walk::TreeWalk;
use super::workspace::{PassSize, Workspace};
use crate::cached::{Cached, Executor, Nodes};
use crate::device;
use crate::media::MediaRows;
use crate::pair_scores::PairScores;
use crate::state_history::{SlotCounts, StatePlan, UsedSlots};
use crate::tree::TokenTree;
use crate::{BlockState, Features, HeadInput, Logits, Row, Want};

/// A model on the CPU and its cache.
pub type CpuModel = Cached<CpuExecutor>;

/// Runs passes on the CPU.
pub struct CpuExecutor {
    pub(super) config: ModelConfig,
    pub(super) network: Network,
    /// Bytes of weights that a pass over one row reads.
    bytes: usize,
    kernels: &'static Kernels,
    pub(super) team: Arc<Team>,
    /// Measured number of threads that pays for a pass. `None` for a fixed number that depends on
    /// sizes alone.
    team_sizes: Option<TeamSizes>,
    stored: Stored,
    pub(super) workspace: Workspace,
    /// Vocabulary of the last pass's logits.
    vocabulary: usize,
    /// Free memory of the computer in bytes.
    free_memory: fn() -> u64,
}

/// Bytes of weights per thread from which another thread pays, until measurements replace this.
const BYTES_PER_MEMBER: usize = 1 << 20;

/// Memory for states of recurrent layers that are kept for going back, in bytes.
const CHECKPOINT_BYTES: usize = 512 << 20;

/// Upper limit of their number; more are of no use.
const MAX_CHECKPOINTS: usize = 64;

/// Rows of a pass without pictures.
static NO_MEDIA: MediaRows = MediaRows::none();

/// Bytes of memory that a growing cache leaves to the rest of the system.
const MEMORY_RESERVE: u64 = 256 << 20;

impl CpuModel {
    /// Loads a model, with the best instruction set and an adaptive number of threads.
    ///
    /// # Errors
    /// As [`Self::with`], and `Error::Setting` for an instruction set that this processor lacks.
    pub fn load(source: &ModelSource) -> Result<Self> {
        let mut model = Self::with(source, Isa::choose()?, device::threads())?;
        if device::adapts() {
            let executor = &mut model.executor;
            let members = |rows| executor.members(rows);
            executor.team_sizes = Some(TeamSizes::new(executor.team.threads(), members));
        }
        Ok(model)
    }

    /// Loads a model that always runs on `threads` threads with the instructions of `isa`.
    ///
    /// # Errors
    /// As `Network::load`, and `Error::Setting` for a model whose KV cache cannot be in 8 bits.
    ///
    /// # Panics
    /// If the processor lacks the instructions.
    pub fn with(source: &ModelSource, isa: Isa, threads: usize) -> Result<Self> {
        assert!(isa.available(), "this processor does not have {isa}");
        let config = source.config()?.clone();
        config.check_kv_dtype()?;
        let network = Network::load(&source.weights(&candle_core::Device::Cpu)?, &config)?;
        let cache = |layer: usize| match config.cached_keys(layer) {
            Some(keys) if keys.hold_values.is_some() => KvCache::with_joint_rows(keys.count, keys.size),
            Some(keys) if config.kv_dtype == KvDtype::Int8 => {
                KvCache::in_int8(keys.count, keys.size, network.key_offsets(layer, &config))
            }
            Some(keys) => KvCache::new(keys.count, keys.size),
            None => KvCache::new(0, 0),
        };
        let memory = |spec: &LayerSpec| spec.mixer.recurrence().map(Memory::new).unwrap_or_default();
        let recurrent = config.layers.iter().filter_map(|layer| layer.mixer.recurrence());
        let state_bytes: usize = recurrent.map(|recurrence| Layout::of(recurrence).state_bytes()).sum();
        let checkpoints = (CHECKPOINT_BYTES / state_bytes.max(1)).clamp(1, MAX_CHECKPOINTS);
        let executor = CpuExecutor {
            stored: Stored {
                caches: (0..config.depth()).map(cache).collect(),
                memories: config.layers.iter().map(memory).collect(),
            },
            bytes: network.matrices().map(Panels::bytes).sum(),
            network,
            kernels: isa.kernels(),
            team: Team::shared(threads),
            team_sizes: None,
            workspace: Workspace::default(),
            vocabulary: config.vocabulary,
            free_memory: device::free_memory,
            config,
        };
        Ok(Self::new(executor, checkpoints))
    }
}

impl CpuExecutor {
    /// Builds a pass over one node of `tree` that returns nothing.
    pub(super) fn pass_context<'a>(&'a self, tree: &'a TokenTree) -> PassContext<'a> {
        PassContext {
            config: &self.config,
            network: &self.network,
            kernels: self.kernels,
            caches: &self.stored.caches,
            memories: &self.stored.memories,
            workspace: &self.workspace,
            normed: &[],
            tree,
            cached: 0,
            first: 0,
            nodes: 1,
            rows: 0..0,
            vocabulary: self.vocabulary,
            taps: None,
            head_input: None,
            media: &NO_MEDIA,
        }
    }

    /// Replaces shared states and logs that a pass writes by own ones.
    ///
    /// # Errors
    /// `Error::NoMemory`.
    fn own_states(&mut self, plan: &StatePlan) -> Result<()> {
        let memories = &mut self.stored.memories;
        let needed = memories.iter().map(|memory| memory.bytes_to_own(plan)).sum::<usize>() as u64;
        self.room_for(needed)?;
        let owned = self.stored.memories.iter_mut().try_for_each(|memory| memory.own(plan));
        owned.map_err(|_| Error::NoMemory { needed, free: (self.free_memory)() })
    }

    /// Checks that the computer has this much memory to spare, in bytes.
    ///
    /// # Errors
    /// `Error::NoMemory`.
    fn room_for(&self, needed: u64) -> Result<()> {
        if needed == 0 {
            return Ok(());
        }
        let free = (self.free_memory)();
        if free < needed + MEMORY_RESERVE { Err(Error::NoMemory { needed, free }) } else { Ok(()) }
    }

    /// Returns the number of threads for a pass over `rows`, within what the team may use.
    pub(super) fn members(&self, rows: usize) -> usize {
        let sharing = || self.bytes.saturating_mul(rows) / BYTES_PER_MEMBER;
        match &self.team_sizes {
            None => sharing().clamp(1, self.team.threads()),
            Some(sizes) => sizes.members(rows).unwrap_or_else(sharing).clamp(1, self.team.members()),
        }
    }
}

impl Executor for CpuExecutor {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn reserve(&mut self, positions: Range<usize>, slots: SlotCounts) -> Result<()> {
        let Stored { caches, memories } = &self.stored;
        let cached = caches.iter().map(|cache| cache.bytes_to_reserve(positions.clone()));
        let recurrent = memories.iter().map(|memory| memory.bytes_to_reserve(slots));
        let needed = cached.chain(recurrent).sum::<usize>() as u64;
        self.room_for(needed)?;
        let Stored { caches, memories } = &mut self.stored;
        let reserved = caches.iter_mut().try_for_each(|cache| cache.reserve(positions.clone()));
        let reserved =
            reserved.and_then(|()| memories.iter_mut().try_for_each(|memory| memory.reserve(slots)));
        reserved.map_err(|_| Error::NoMemory { needed, free: (self.free_memory)() })
    }

    fn run(&mut self, nodes: Nodes<'_>, want: &Want<'_>) -> Result<()> {
        let Nodes { tree, first, at, long, states, media, positions } = nodes;
        let (nodes, rows) = (tree.len() - first, want.rows_between(first, tree.len()));
        let threads = self.members(nodes);
        let copies = copies_of_norms(&self.config, nodes, threads);
        let features = want.features.map_or(0, |taps| taps.width(&self.config));
        self.workspace.prepare_features(nodes, features);
        if let Some(plan) = states {
            self.own_states(&plan)?;
            self.workspace.recurrent.walk = TreeWalk::new(tree, first, plan);
        }
        let (scored, tile) = (rows.len(), self.kernels.tile);
        let size = PassSize { at, first, long, scored, members: threads, copies, tile };
        self.workspace.prepare(&self.config, tree, size, positions.as_deref());
        // A cluster's tokens are spread over the whole vocabulary.
        let clustered = self.config.assistant().is_some_and(|assistant| assistant.clusters.is_some());
        let wanted = if clustered { usize::MAX } else { want.vocabulary };
        self.vocabulary = wanted.min(self.config.vocabulary);
        self.workspace.experts_read.store(0, Relaxed);
        self.workspace.table.clear();
        // The table's row may have more layers than the model runs.
        let per_layer = self.network.per_layer.as_ref();
        let per_layer = per_layer.map(|inputs| (&inputs.table, inputs.projection.rows()));
        let own = matches!(want.head_input, Some(HeadInput::Own(_)));
        let embedded = self.network.head.as_ref().and_then(Head::assistant).filter(|_| own);
        let embedded = embedded.map(|assistant| (&assistant.embedding, assistant.embedding.columns()));
        if let Some((table, columns)) = per_layer.or(embedded) {
            for token in tree.tokens().skip(first) {
                self.workspace.table.extend(&table.row(token as usize)?[..columns]);
            }
        }
        if nodes > 0 {
            let context = PassContext {
                normed: &self.workspace.normed[..copies],
                cached: at,
                first,
                nodes,
                rows: rows.clone(),
                taps: want.features,
                head_input: want.head_input,
                media: &media,
                ..self.pass_context(tree)
            };
            let timing = self.team.run(threads, &|member| context.run(member));
            // Measured passes are comparable if all rows get logits.
            if let Some(sizes) = self.team_sizes.as_mut().filter(|_| rows.len() == nodes) {
                sizes.record(nodes, timing);
            }
        }
        self.workspace.find_peaks(self.vocabulary, rows.len());
        Ok(())
    }

    fn logits(&self) -> Logits<'_> {
        self.workspace.logits(self.vocabulary)
    }

    fn pair_scores(&mut self, anchor: Features<'_>) -> Result<Option<PairScores>> {
        self.score_pairs(anchor)
    }

    fn next_state(&mut self, state: &BlockState, token: TokenId) -> Result<BlockState> {
        self.state_after(state, token)
    }

    fn row_after(&mut self, row: usize, state: &BlockState) -> Result<(Row<'_>, Option<f32>)> {
        self.rescore(row, state)
    }

    fn features(&self) -> Option<Features<'_>> {
        self.workspace.features()
    }

    fn copy(&mut self, moves: &[(usize, usize)]) -> Result<()> {
        for &(from, to) in moves {
            self.stored.caches.iter_mut().for_each(|cache| cache.copy(from, to));
        }
        Ok(())
    }

    fn share(&self, length: usize, slots: &UsedSlots) -> Option<Stored> {
        Some(self.stored.share(length, slots))
    }

    fn restore(&mut self, stored: &Stored) -> bool {
        let fits = self.stored.is_like(stored);
        if fits {
            self.stored = stored.clone();
        }
        fits
    }

    fn release(&mut self, length: usize) {
        self.stored.caches.iter_mut().for_each(|cache| cache.release(length));
    }

    fn read_weights(&self) -> usize {
        self.team.run(self.members(1), &|member| {
            for matrix in self.network.matrices() {
                member.share(matrix.panels(), run_length(matrix.panels(), member), |panels| {
                    // SAFETY: the processor has the kernels' instructions.
                    panels.for_each(|panel| unsafe {
                        black_box((self.kernels.read)(matrix.panel(panel)));
                    });
                });
                member.barrier();
            }
        });
        self.bytes
    }

    fn experts_read(&self) -> Option<f64> {
        let read = self.workspace.experts_read.load(Relaxed);
        let routed = self.config.layers.iter().filter(|layer| layer.feed_forward.experts().is_some()).count();
        (routed > 0).then(|| read as f64 / routed as f64)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::quantized::GgmlDType;

    use super::super::cache::PAGE;
    use super::*;
    use crate::Model;
    use foretoken_testkit::{Gguf, HIDDEN, VOCABULARY};

    fn run(model: &mut CpuModel, tokens: TokenId) -> Result<()> {
        model.run(&TokenTree::chain(0..tokens), &Want::nothing()).map(drop)
    }

    #[test]
    fn models_of_one_file_share_the_packed_embedding_until_the_file_changes() {
        let folder = tempfile::tempdir().unwrap();
        let mut tiny = Gguf::tiny();
        // 16 bits, so that loading it in eight bits makes another matrix.
        tiny.add("token_embd.weight", &[VOCABULARY, HIDDEN], GgmlDType::F16);
        let path = tiny.write(folder.path());
        let load = |eight_bits| {
            CpuModel::load(&ModelSource::open(&path).unwrap().in_eight_bits(eight_bits)).unwrap()
        };
        let share = |one: &CpuModel, other: &CpuModel| {
            let (one, other) = (&one.executor.network, &other.executor.network);
            let embeddings = one.embedding.as_ref().zip(other.embedding.as_ref());
            [
                embeddings.is_some_and(|(one, other)| Arc::ptr_eq(one, other)),
                Arc::ptr_eq(&one.output, &other.output),
            ]
        };
        let first = load(false);
        assert_eq!(share(&first, &load(false)), [true; 2]);
        assert_eq!(share(&first, &load(true)), [false; 2]);
        std::thread::sleep(std::time::Duration::from_millis(20));
        tiny.write(folder.path());
        assert_eq!(share(&first, &load(false)), [false; 2]);
    }

    #[test]
    fn a_cache_stops_growing_before_the_computer_runs_out_of_memory() {
        let folder = tempfile::tempdir().unwrap();
        let source = ModelSource::open(&Gguf::tiny().write(folder.path())).unwrap();
        let mut model = CpuModel::load(&source).unwrap();
        // No free memory, or exactly as much as is spared.
        for free in [|| MEMORY_RESERVE - 1, || MEMORY_RESERVE] {
            model.executor.free_memory = free;
            let error = run(&mut model, 3).unwrap_err();
            assert!(matches!(error, Error::NoMemory { .. }), "{error}");
        }
        assert_eq!(
            (model.cached().len(), model.executor.stored.caches[0].bytes_to_reserve(0..PAGE) > 0),
            (0, true)
        );
        model.executor.free_memory = || u64::MAX;
        run(&mut model, 3).unwrap();
        model.executor.free_memory = || 0;
        run(&mut model, 3).unwrap_or_else(|error| panic!("there is room already: {error}"));
    }
}
