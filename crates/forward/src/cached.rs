//! A model on any of the engines: which text it has cached, and what a pass adds or drops. An
//! [`Executor`] computes passes and stores keys, values and states.

use std::ops::Range;
use std::sync::Arc;

use foretoken_model::error::Result;
use foretoken_model::token::TokenId;
use foretoken_model::{HeadKind, ModelConfig};

use crate::cpu::Stored;
use crate::grids::{Grids, Position, has_grids};
use crate::media::{Media, MediaRows};
use crate::pair_scores::PairScores;
use crate::parked::Parked;
use crate::state_history::{SlotCounts, StateHistory, StatePlan, UsedSlots};
use crate::tree::TokenTree;
use crate::{BlockState, DispatchStats, Features, Logits, Model, Pass, Row, Runner, Want};

/// Nodes of a tree that run in one pass.
pub struct Nodes<'a> {
    pub tree: &'a TokenTree,
    /// First node to run; those before it are cached.
    pub first: usize,
    /// Tokens cached before the tree.
    pub at: usize,
    /// The text is longer than [`ModelConfig::rope_switch_length`].
    pub long: bool,
    /// State and log slots; `None` without recurrent layers, and without nodes.
    pub states: Option<StatePlan>,
    /// Embeddings of the tree's nodes that are pictures, whose tokens are placeholders.
    pub media: MediaRows,
    /// Positions of the nodes to run; `None` for those of a text without pictures.
    pub positions: Option<Vec<Position>>,
}

/// Computes the passes of an engine and stores what they cache, by position.
pub trait Executor: Send {
    fn config(&self) -> &ModelConfig;

    /// Reserves memory for the positions that the next pass writes, and for `slots` states and step
    /// logs.
    ///
    /// # Errors
    /// `Error::NoMemory` before the computer runs out of it.
    fn reserve(&mut self, _positions: Range<usize>, _slots: SlotCounts) -> Result<()> {
        Ok(())
    }

    /// Runs and caches nodes.
    ///
    /// # Errors
    /// As [`Model::run`].
    fn run(&mut self, nodes: Nodes<'_>, want: &Want<'_>) -> Result<()>;

    /// Logits that the last [`Self::run`] was asked for.
    fn logits(&self) -> Logits<'_>;

    /// Implements [`Runner::row_after`].
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    fn row_after(&mut self, row: usize, state: &BlockState) -> Result<(Row<'_>, Option<f32>)>;

    /// Scores the candidates of the block that the last [`Self::run`] ran, if the head has LiLiCorr
    /// and all scores are numbers. `anchor`: the target's states for the token before the block.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    fn pair_scores(&mut self, _anchor: Features<'_>) -> Result<Option<PairScores>> {
        Ok(None)
    }

    /// Implements [`Runner::next_state`].
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    fn next_state(&mut self, state: &BlockState, token: TokenId) -> Result<BlockState>;

    /// Hidden states that the last [`Self::run`] was asked for, if any.
    fn features(&self) -> Option<Features<'_>>;

    /// Copies the keys and values at the first position of each pair to the second. The first ones
    /// ascend, the second ones are consecutive, and no position is read after it was written.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    fn copy(&mut self, moves: &[(usize, usize)]) -> Result<()>;

    /// Everything stored for the first `length` positions and in `slots`, shared with this
    /// executor; `None` if it cannot share.
    fn share(&self, _length: usize, _slots: &UsedSlots) -> Option<Stored> {
        None
    }

    /// Replaces what is stored, and shares it with `stored`. Returns `false` and changes nothing if
    /// the sizes of its layers differ.
    fn restore(&mut self, _stored: &Stored) -> bool {
        false
    }

    /// Frees memory that `length` cached tokens do not need.
    fn release(&mut self, _length: usize) {}

    /// Implements [`Model::wait`].
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    fn wait(&self) -> Result<()> {
        Ok(())
    }

    /// Implements [`Model::read_weights`].
    fn read_weights(&self) -> usize {
        0
    }

    /// Implements [`Model::experts_read`].
    fn experts_read(&self) -> Option<f64> {
        None
    }

    /// Implements [`Model::dispatch_stats`].
    fn dispatch_stats(&self) -> Option<DispatchStats> {
        None
    }
}

/// A model on the engine of `E`, with the text that it has cached.
pub struct Cached<E> {
    pub(crate) executor: E,
    /// The executor's configuration, with a context that may be limited.
    config: ModelConfig,
    tokens: Vec<TokenId>,
    /// States and step logs of the cached text, in a model with recurrent layers.
    history: Option<StateHistory>,
    /// The text is longer than [`ModelConfig::rope_switch_length`].
    long: bool,
    /// Leading tokens whose caches were read from files.
    restored: usize,
    /// Scores of a position after a candidate, in a head with LiLiCorr.
    paired: Vec<f32>,
    /// Pictures whose ids may stand in the text.
    media: Option<Arc<Media>>,
    /// Pictures in the text, in a model whose positions have rows and columns.
    grids: Grids,
}

impl<E: Executor> Cached<E> {
    /// Creates a model with an empty cache. At most `checkpoints` states of recurrent layers are
    /// kept for rewinding.
    pub(crate) fn new(executor: E, checkpoints: usize) -> Self {
        let config = executor.config().clone();
        let history = config.recurrence().map(|_| StateHistory::new(checkpoints));
        Self {
            executor,
            config,
            tokens: Vec::new(),
            history,
            long: false,
            restored: 0,
            paired: Vec::new(),
            media: None,
            grids: Grids::default(),
        }
    }

    /// `tree` with placeholders for its pictures, and their embeddings; `None` without pictures. A
    /// head other than MTP reads the placeholders alone, as in its training.
    fn pictures(&self, tree: &TokenTree) -> Result<Option<(TokenTree, MediaRows)>> {
        let Some(media) = &self.media else { return Ok(None) };
        let reads = self.config.draft_head.as_ref().is_none_or(|head| head.kind == HeadKind::Mtp);
        let pictures = MediaRows::of(tree, media)?;
        Ok(pictures.map(|(tree, rows)| (tree, if reads { rows } else { MediaRows::none() })))
    }

    /// Adds pictures among `tokens`, which follow the cached ones, if rows and columns matter.
    fn add_pictures(&self, grids: &mut Grids, tokens: impl Iterator<Item = TokenId>) {
        if let Some(media) = self.media.as_ref().filter(|_| has_grids(&self.config)) {
            grids.extend(self.tokens.len(), tokens, media);
        }
    }

    /// Runs nodes as [`Runner::extend`]. With `record_all`, recurrent layers log the steps of all
    /// nodes, even of a long chain.
    fn run_nodes(&mut self, tree: &TokenTree, first: usize, want: &Want<'_>, record_all: bool) -> Result<()> {
        let at = self.tokens.len() - first;
        let count = tree.len() - first;
        let (placeholders, media) = self.pictures(tree)?.unzip();
        let (run, media) = (placeholders.as_ref().unwrap_or(tree), media.unwrap_or_default());
        let slots = self.history.as_ref().map_or_else(SlotCounts::default, |history| history.slots(count));
        self.executor.reserve(self.tokens.len()..at + tree.len(), slots)?;
        let scored = !want.rows_between(first, tree.len()).is_empty();
        let history = self.history.as_mut().filter(|_| count > 0);
        let states = history.map(|history| history.plan(tree, first, at, scored, record_all));
        let is_recurrent = states.is_some();
        let mut grids = self.grids.clone();
        self.add_pictures(&mut grids, tree.tokens().skip(first));
        let positions = (!grids.is_empty()).then(|| {
            let depths = tree.depths().into_iter().skip(first);
            depths.map(|depth| grids.position(at + depth)).collect()
        });
        let nodes = Nodes { tree: run, first, at, long: self.long, states, media, positions };
        let ran = self.executor.run(nodes, want);
        if ran.is_err() && is_recurrent {
            // The states may be half updated.
            self.truncate(0);
        }
        ran?;
        self.tokens.extend(tree.tokens().skip(first));
        self.grids = grids;
        Ok(())
    }
}

impl<E: Executor> Model for Cached<E> {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn cached(&self) -> &[TokenId] {
        &self.tokens
    }

    fn run(&mut self, tree: &TokenTree, want: &Want<'_>) -> Result<Pass<'_>> {
        Pass::run(self, tree, want)
    }

    fn wait(&self) -> Result<()> {
        self.executor.wait()
    }

    fn read_weights(&self) -> usize {
        self.executor.read_weights()
    }

    fn experts_read(&self) -> Option<f64> {
        self.executor.experts_read()
    }

    fn dispatch_stats(&self) -> Option<DispatchStats> {
        self.executor.dispatch_stats()
    }

    fn truncate(&mut self, length: usize) -> usize {
        let length = self.history.as_mut().map_or(length, |history| history.truncate(length));
        self.tokens.truncate(length);
        self.grids.truncate(length);
        self.restored = self.restored.min(length);
        self.executor.release(length);
        self.tokens.len()
    }

    fn set_media(&mut self, media: &Arc<Media>) {
        self.media = Some(Arc::clone(media));
    }

    fn limit_context(&mut self, tokens: usize) {
        self.config.context = tokens.min(self.executor.config().context);
        self.truncate(self.tokens.len().min(self.config.context));
    }

    fn park(&self) -> Option<Parked> {
        let (history, slots) = self.history.as_ref().map(StateHistory::compacted).unzip();
        let stored = self.executor.share(self.tokens.len(), &slots.unwrap_or_default())?;
        let (long, restored) = (self.long, self.restored);
        Some(Parked { tokens: self.tokens.as_slice().into(), stored, history, long, restored })
    }

    fn resume(&mut self, Parked { tokens, stored, history, long, restored }: &Parked) -> bool {
        let fits = history.is_some() == self.history.is_some() && self.executor.restore(stored);
        if fits {
            (self.tokens, self.history, self.long) = (Vec::new(), history.clone(), *long);
            self.restored = *restored;
            let mut grids = Grids::default();
            self.add_pictures(&mut grids, tokens.iter().copied());
            (self.tokens, self.grids) = (tokens.to_vec(), grids);
        }
        fits
    }

    fn restored(&self) -> usize {
        self.restored
    }

    fn prepare_for_length(&mut self, length: usize) {
        if self.config().is_long(length) != self.long {
            self.long = !self.long;
            self.truncate(0);
        }
    }
}

impl<E: Executor> Runner for Cached<E> {
    fn extend(&mut self, tree: &TokenTree, first: usize, want: &Want<'_>) -> Result<()> {
        let at = self.tokens.len() - first;
        if first > 0 && self.history.as_ref().is_some_and(|history| history.lacks_logs(at)) {
            // The earlier nodes run once more, for their step logs.
            self.truncate(at);
            self.run_nodes(&TokenTree::chain(tree.tokens().take(first)), 0, &Want::nothing(), true)?;
        }
        self.run_nodes(tree, first, want, false)
    }

    fn media(&self) -> Option<&Media> {
        self.media.as_deref()
    }

    fn logits(&self) -> Logits<'_> {
        self.executor.logits()
    }

    fn begin_block(&mut self, anchor: Option<Features<'_>>) -> Result<BlockState> {
        let pairs = anchor.map(|anchor| self.executor.pair_scores(anchor)).transpose()?;
        Ok(BlockState::before(pairs.flatten()))
    }

    fn next_state(&mut self, state: &BlockState, token: TokenId) -> Result<BlockState> {
        self.executor.next_state(state, token)
    }

    fn row_after(&mut self, row: usize, state: &BlockState) -> Result<(Row<'_>, Option<f32>)> {
        match state.pair_scores(self.config().vocabulary) {
            None => self.executor.row_after(row, state),
            Some(scores) => {
                self.paired = scores;
                Ok((Row::of(&self.paired), None))
            }
        }
    }

    fn features(&self) -> Option<Features<'_>> {
        self.executor.features()
    }

    fn keep(&mut self, nodes: usize, path: &[usize]) -> Result<()> {
        let start = self.tokens.len() - nodes;
        let kept: Vec<TokenId> = path.iter().map(|&node| self.tokens[start + node]).collect();
        if self.history.as_mut().is_some_and(|history| !history.keep(start, path)) {
            // The state after these nodes cannot be restored.
            self.tokens.truncate(start);
            self.grids.truncate(start);
            return self.run_nodes(&TokenTree::chain(kept), 0, &Want::nothing(), false);
        }
        let moves = path.iter().enumerate().filter(|&(to, &from)| to != from);
        let moves: Vec<(usize, usize)> = moves.map(|(to, &from)| (start + from, start + to)).collect();
        if !moves.is_empty() {
            self.executor.copy(&moves)?;
        }
        // Pictures stand before the first branch, so those that are kept have their places.
        self.tokens.truncate(start);
        self.tokens.extend(kept);
        self.grids.truncate(self.tokens.len());
        Ok(())
    }
}
