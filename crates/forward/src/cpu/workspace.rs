//! Buffers of a pass. All are allocated before the pass begins and reused by the next one. Their
//! contents are defined by the pass.

use std::sync::atomic::AtomicUsize;

use foretoken_model::{
    BlockHead, Convolution, Correction, Domino, DraftHead, Experts, FeedForwardSpec, Latent, LiliCorr,
    ModelConfig, RopeTable,
};

use super::activations::{Activations, BLOCK};
use super::attention::AttentionRun;
use super::attention_units::AttentionShape;
use super::buffer::Buffer;
use super::panels::Format;
use super::product::Rows;
use super::recurrent_buffers::RecurrentBuffers;
use super::simd::LANES;
use super::visible::RUN;
use crate::grids::Position;
use crate::slices::STRETCH;
use crate::tree::TokenTree;
use crate::{Features, Logits, Peak};

/// Input rows of products: as numbers, and quantised to 8 bits for weights that need it.
#[derive(Debug, Default)]
pub struct Inputs {
    pub width: usize,
    plain: Buffer<f32>, // [rows, width]
    pub quantised: Activations,
    /// Rows are whole blocks, so that they can be quantised.
    pub is_quantisable: bool,
}

impl Inputs {
    /// Allocates `rows` of `width` numbers.
    pub fn prepare(&mut self, rows: usize, width: usize, tile: usize) {
        self.width = width.next_multiple_of(LANES);
        self.plain.reserve(rows * self.width);
        self.is_quantisable = width.is_multiple_of(BLOCK);
        if self.is_quantisable {
            self.quantised.resize(rows, width, tile);
        }
    }

    pub fn row(&self, row: usize) -> *mut f32 {
        self.plain.at(row * self.width)
    }

    /// Returns a tile in the form that weights of `format` take.
    pub fn tile(&self, format: Format, first: usize, rows: usize) -> Rows {
        if format.quantised() {
            Rows::Quantised(self.quantised.tile(first, rows))
        } else {
            Rows::Plain { rows, x: self.row(first), stride: self.width }
        }
    }
}

/// Inputs for each width that a model has.
#[derive(Debug, Default)]
pub struct ByWidth(Vec<(usize, Inputs)>);

impl ByWidth {
    /// Allocates `rows` of each of the widths.
    fn prepare(&mut self, rows: usize, widths: impl Iterator<Item = usize>, tile: usize) {
        for width in widths {
            if !self.0.iter().any(|(own, _)| *own == width) {
                self.0.push((width, Inputs::default()));
            }
        }
        self.0.iter_mut().for_each(|(width, inputs)| inputs.prepare(rows, *width, tile));
    }

    /// Returns the inputs of one width.
    pub fn of(&self, width: usize) -> &Inputs {
        let own = self.0.iter().find(|(own, _)| *own == width);
        own.map_or_else(|| unreachable!("no room for rows of {width}"), |(_, inputs)| inputs)
    }
}

/// Buffers of a mixture of experts. A slot is one row in one of its experts.
#[derive(Debug, Default)]
pub struct ExpertBuffers {
    /// Router scores.
    pub scores: Buffer<f32>, // [rows, experts padded to LANES]
    /// Experts of each row and their weights, highest score first.
    pub choices: Buffer<(usize, f32)>, // [rows, top_k]
    /// Gate of the shared expert, before its sigmoid.
    pub gates: Buffer<f32>, // [rows, LANES]
    pub inputs: Inputs,       // hidden
    pub gated: Inputs,        // width of an expert
    pub outputs: Buffer<f32>, // [slots, hidden padded to LANES]
}

impl ExpertBuffers {
    fn prepare(&mut self, rows: usize, hidden: usize, experts: &Experts, tile: usize) {
        let slots = rows * experts.top_k;
        self.scores.reserve(rows * experts.count.next_multiple_of(LANES));
        self.choices.reserve(slots);
        self.gates.reserve(rows * LANES);
        self.inputs.prepare(slots, hidden, tile);
        self.gated.prepare(slots, experts.width, tile);
        self.outputs.reserve(slots * hidden.next_multiple_of(LANES));
    }
}

/// Buffers of multi-head latent attention.
#[derive(Debug, Default)]
pub struct LatentBuffers {
    /// Low-rank queries.
    pub low_rank_queries: Inputs, // queries
    /// Queries before their projection into the latent space.
    pub queries: Buffer<f32>, // [rows, heads * (plain + turned) padded to LANES]
    /// Part of the queries without rotary embedding, by head.
    pub nope_queries: Vec<Inputs>, // plain
    /// Queries in the latent space with their rotary part.
    pub absorbed_queries: Buffer<f32>, // [rows, heads, size + turned padded to LANES]
    /// Latent of each row with the key's rotary part, to be cached.
    pub kv: Buffer<f32>, // [rows, size + turned padded to LANES]
    /// Latents summed by attention, by head.
    pub mixed_latents: Vec<Inputs>, // size
}

impl LatentBuffers {
    fn prepare(&mut self, rows: usize, heads: usize, of: Latent, tile: usize) {
        let width = of.keys().size.next_multiple_of(LANES);
        self.low_rank_queries.prepare(rows, of.queries.unwrap_or(0), tile);
        self.queries.reserve(rows * (heads * of.query()).next_multiple_of(LANES));
        self.absorbed_queries.reserve(rows * heads * width);
        self.kv.reserve(rows * width);
        for (inputs, width) in [(&mut self.nope_queries, of.plain), (&mut self.mixed_latents, of.size)] {
            inputs.resize_with(heads, Inputs::default);
            inputs.iter_mut().for_each(|inputs| inputs.prepare(rows, width, tile));
        }
    }
}

/// Buffers of a pass.
#[derive(Debug, Default)]
pub struct Workspace {
    /// Hidden states.
    pub hidden: Buffer<f32>, // [rows, hidden padded to LANES]
    pub normed: Vec<Inputs>, // hidden; one for all members or one for each
    /// Inputs of a draft head: states of the target, and the norms of embedding and state side by
    /// side.
    pub states: Inputs, // states
    pub head_input: Inputs,  // 2 * hidden
    pub mixed: ByWidth,      // heads * head_size of every kind
    pub gated: ByWidth,      // intermediate of every layer, and width of per-layer inputs
    pub scored: Inputs,      // hidden, of the scored rows
    /// Buffers of a draft head that fills a block: indices of its rows, kernels of the dynamic
    /// convolutions, and their output.
    pub block_rows: Vec<usize>,
    pub dynamic: Buffer<f32>, // [rows, both sides of a convolution padded to LANES]
    pub convolved: Inputs,    // hidden
    /// The selector's factor of each scored row.
    pub position_factors: Buffer<f32>, // [scored rows, rank padded to LANES]
    /// The rows that a correction's matrix is multiplied with, and the products.
    pub correction_inputs: ByWidth,
    pub correction_output: Buffer<f32>, // [rows, rows of the matrix padded to LANES]
    /// Token clusters of an assistant: scores of all clusters, the nearest ones, and the scores of
    /// their tokens.
    pub cluster_scores: Buffer<f32>, // [scored rows, clusters padded to LANES]
    pub nearest: Buffer<usize>,         // [scored rows, nearest]
    pub nearest_scores: Buffer<f32>,    // [scored rows, nearest, tokens of a cluster padded to LANES]
    /// Scores of a position after the token before it was known.
    pub rescored: Vec<f32>, // [vocabulary]
    pub experts: ExpertBuffers,
    /// Experts read by all layers of a pass together.
    pub experts_read: AtomicUsize,
    /// Router input and output of the dense network, in layers that have both side by side.
    pub router_input: Inputs, // hidden
    pub dense_output: Buffer<f32>, // as the state
    /// Per-layer inputs of all layers, and the table rows they are computed from.
    pub per_layer_inputs: Buffer<f32>, // [rows, layers * width padded to LANES]
    pub table: Vec<f32>,           // [rows, layers * width]
    pub recurrent: RecurrentBuffers,
    /// Output of a mixer or feed-forward network, before its norm.
    pub branch: Buffer<f32>, // as the state
    pub queries: Buffer<f32>, // [rows, heads * head_size padded to LANES]
    pub latent: LatentBuffers,
    pub keys: Buffer<f32>,   // [rows, kv_heads * head_size padded to LANES]
    pub values: Buffer<f32>, // as the keys
    pub gates: Buffer<f32>,  // as the queries
    /// Rotary angles of each node's position by attention kind: for keys, and for queries where
    /// they differ.
    pub rotations: Vec<[RopeTable; 2]>,
    /// Nodes visible to each node: its ancestors in the tree and itself.
    pub visible: Vec<Vec<usize>>,
    /// Queries and scores that a member works with.
    pub scores: Buffer<f32>, // [members, scores of a member]
    pub scores_of_member: usize,
    /// Results of attention by runs, before they are joined.
    pub parts: Buffer<f32>,
    /// Units that are done, of each result that several share.
    pub runs_done: Vec<AtomicUsize>,
    /// Members of the team that runs the pass.
    pub members: usize,
    pub logits: Buffer<f32>, // [scored rows, vocabulary padded to LANES]
    /// Largest logit of each slice, and the sum of `e^(x - largest)`.
    pub slices: Buffer<(f32, f32)>,
    peaks: Vec<Peak>,
    /// Tapped states, `[rows, width]`.
    features: Buffer<f32>,
    /// Rows of `features` and their width; width 0 without taps.
    tapped: (usize, usize),
}

/// Extent of a pass.
#[derive(Debug, Clone, Copy)]
pub struct PassSize {
    /// Cached positions before the tree.
    pub at: usize,
    /// First node of the tree that runs.
    pub first: usize,
    /// The text is longer than [`ModelConfig::rope_switch_length`].
    pub long: bool,
    /// Rows that get logits.
    pub scored: usize,
    /// Members of the team that runs the pass.
    pub members: usize,
    /// Copies of the normed states.
    pub copies: usize,
    /// Most rows of a tile.
    pub tile: usize,
}

impl Workspace {
    /// Allocates features of `rows` with `width` numbers each.
    pub fn prepare_features(&mut self, rows: usize, width: usize) {
        self.tapped = (rows, width);
        self.features.reserve(rows * width);
    }

    /// Address of a row's features from `at` on.
    pub fn feature(&self, row: usize, at: usize) -> *mut f32 {
        self.features.at(row * self.tapped.1 + at)
    }

    /// Returns the features of the last pass, if it had taps.
    pub fn features(&self) -> Option<Features<'_>> {
        let (rows, width) = self.tapped;
        // SAFETY: the pass has ended and has written all of them.
        let numbers = unsafe { std::slice::from_raw_parts(self.features.at(0), rows * width) };
        (width > 0).then(|| Features::new(numbers, width))
    }

    /// Allocates buffers for a pass over the nodes of `tree`.
    /// `places` are the positions of its rows if they have rows and columns.
    pub fn prepare(
        &mut self,
        config: &ModelConfig,
        tree: &TokenTree,
        pass: PassSize,
        places: Option<&[Position]>,
    ) {
        let PassSize { at, first, long, scored, members, copies, tile } = pass;
        let rows = tree.len() - first;
        let whole = |width: usize| width.next_multiple_of(LANES);
        let (queries, keys) = (config.heads * config.head_size(), config.kv_heads() * config.head_size());
        self.hidden.reserve(rows * whole(config.hidden));
        let feed_forwards = || config.layers.iter().map(|layer| &layer.feed_forward);
        if config.has_post_norms() || feed_forwards().any(|spec| spec.shared().is_some()) {
            self.branch.reserve(rows * whole(config.hidden));
        }
        self.normed.resize_with(self.normed.len().max(copies), Inputs::default);
        self.normed[..copies].iter_mut().for_each(|normed| normed.prepare(rows, config.hidden, tile));
        if let Some(head) = &config.draft_head {
            let states = if head.assistant().is_some() { config.carried() } else { head.states() };
            self.states.prepare(rows, states, tile);
            match head.block() {
                None => self.head_input.prepare(rows, 2 * config.carried(), tile),
                Some(block) => self.prepare_block(block, config, rows, scored, tile),
            }
        }
        self.mixed.prepare(
            rows,
            config
                .attention_kinds
                .iter()
                .map(|kind| config.heads * config.latent().map_or(kind.keys.size, |latent| latent.value)),
            tile,
        );
        if let Some(experts) = config.experts() {
            self.experts.prepare(rows, config.hidden, experts, tile);
        }
        let widths = feed_forwards().filter_map(FeedForwardSpec::width);
        self.gated.prepare(rows, widths.chain(config.per_layer_input()), tile);
        if feed_forwards().any(|spec| matches!(spec, FeedForwardSpec::BesideDense { .. })) {
            self.router_input.prepare(rows, config.hidden, tile);
            self.dense_output.reserve(rows * whole(config.hidden));
        }
        if let Some(width) = config.per_layer_input() {
            // Kernels read whole vectors, beyond the last input.
            self.per_layer_inputs.reserve(rows * whole(config.depth() * width) + LANES);
        }
        if let Some(recurrence) = config.recurrence() {
            self.recurrent.prepare(recurrence, rows, members, tile);
        }
        let clusters = config.assistant().and_then(|assistant| assistant.clusters);
        // Each row is a tile of its own, since rows score different clusters.
        self.scored.prepare(scored, config.hidden, if clusters.is_some() { 1 } else { tile });
        if let Some(clusters) = clusters {
            let width = clusters.nearest * whole(clusters.size(config.vocabulary));
            self.cluster_scores.reserve(scored * whole(clusters.count));
            self.nearest.reserve(scored * clusters.nearest);
            self.nearest_scores.reserve(scored * width);
        }
        if let Some(&latent) = config.latent() {
            self.latent.prepare(rows, config.heads, latent, tile);
        }
        self.queries.reserve(rows * whole(queries));
        self.keys.reserve(rows * whole(keys));
        self.values.reserve(rows * whole(keys));
        if config.attention_parts().gate {
            self.gates.reserve(rows * whole(queries));
        }
        self.prepare_attention(config, tree, pass);
        self.logits.reserve(scored * whole(config.vocabulary));
        self.slices.reserve(scored * config.vocabulary.div_ceil(STRETCH));
        self.visible = tree.visible().split_off(first);
        let mut positions: Vec<usize> =
            tree.depths().split_off(first).iter().map(|depth| at + depth).collect();
        if config.assistant().is_some() {
            // All rows have the position after the text, and no keys that other rows could see.
            self.visible.iter_mut().for_each(Vec::clear);
            positions.fill(at);
        }
        self.rotations.resize_with(config.attention_kinds.len(), Default::default);
        for (kind, [keys, queries]) in config.attention_kinds.iter().zip(&mut self.rotations) {
            match places {
                Some(places) => kind.rotary.tabulate_grid(places, long, keys),
                None => kind.rotary.tabulate(&positions, long, keys),
            }
            if let Some(temperature) = kind.rotary.attn_temperature {
                temperature.tabulate(&positions, keys, queries);
            }
        }
    }

    /// Allocates buffers for attention by runs.
    fn prepare_attention(&mut self, config: &ModelConfig, tree: &TokenTree, pass: PassSize) {
        let runs = 0..(pass.at + tree.len()).div_ceil(RUN);
        let (mut scores, mut parts, mut places) = (0, 0, 0);
        for kind in 0..config.attention_kinds.len() {
            let shape = AttentionShape::of(config, kind);
            let units = shape.units(tree.len() - pass.first, runs.clone(), pass.members);
            let of_head = shape.query_size + AttentionRun::scores(tree.len());
            scores = scores.max(units.heads_of_unit() * of_head + AttentionRun::scores(tree.len()));
            parts = parts.max(units.size(shape.value_size));
            places = places.max(units.places());
        }
        self.scores_of_member = scores;
        self.scores.reserve(pass.members * scores);
        self.parts.reserve(parts);
        self.runs_done.clear();
        self.runs_done.resize_with(places, AtomicUsize::default);
        self.members = pass.members;
    }

    /// Allocates the additional buffers of a draft head that fills a block.
    fn prepare_block(
        &mut self,
        block: &BlockHead,
        config: &ModelConfig,
        rows: usize,
        scored: usize,
        tile: usize,
    ) {
        let whole = |width: usize| width.next_multiple_of(LANES);
        self.block_rows = (0..rows).collect();
        if let Some(Convolution { taps, group }) = block.convolution {
            self.dynamic.reserve(rows * whole(2 * taps * (config.hidden / group)));
            self.convolved.prepare(rows, config.hidden, tile);
            self.branch.reserve(rows * whole(config.hidden));
        }
        match block.correction {
            None => {}
            Some(Correction::Selector(selector)) => {
                self.position_factors.reserve(scored * whole(selector.rank));
            }
            Some(Correction::Markov { rank }) => {
                self.correction_inputs.prepare(1, [rank].into_iter(), tile);
                self.correction_output.reserve(whole(config.vocabulary));
            }
            Some(Correction::Domino(Domino { gru, rank, .. })) => {
                let widths = [config.hidden, gru, config.hidden + gru];
                self.correction_inputs.prepare(1, widths.into_iter(), tile);
                self.correction_output.reserve(whole(rank.max(3 * gru)));
            }
            Some(Correction::LiliCorr(LiliCorr { hidden, intermediate, factors, candidates, .. })) => {
                let (rows, width) = (candidates * (block.rows - 1), config.hidden);
                let states = config.draft_head.as_ref().map_or(0, DraftHead::states);
                let inputs = [states, width, hidden, 3 * hidden, intermediate].into_iter();
                self.correction_inputs.prepare(rows, inputs, tile);
                let widest = factors.max(3 * hidden).max(intermediate);
                self.correction_output.reserve((rows * whole(widest)).max(whole(width)));
            }
        }
    }

    /// Finds the peaks of the last pass's `rows` of logits.
    pub fn find_peaks(&mut self, vocabulary: usize, rows: usize) {
        let slices = vocabulary.div_ceil(STRETCH);
        self.peaks.clear();
        for row in 0..rows {
            // SAFETY: the pass has ended and has written all of them.
            let slices = unsafe { std::slice::from_raw_parts(self.slices.at(row * slices), slices) };
            let logits =
                &self.rows(vocabulary, rows)[row * vocabulary.next_multiple_of(LANES)..][..vocabulary];
            self.peaks.push(Peak::of_slices(logits, slices, STRETCH));
        }
    }

    /// Returns the logits of the last pass, after [`Self::find_peaks`].
    pub fn logits(&self, vocabulary: usize) -> Logits<'_> {
        let rows = self.rows(vocabulary, self.peaks.len());
        Logits::new(rows, vocabulary, vocabulary.next_multiple_of(LANES), &self.peaks)
    }

    /// Returns the selector's factor of a scored row, `[rank]`.
    pub fn position_factor(&self, row: usize, rank: usize) -> &[f32] {
        // SAFETY: the pass has ended and has written all of it.
        unsafe {
            std::slice::from_raw_parts(self.position_factors.at(row * rank.next_multiple_of(LANES)), rank)
        }
    }

    /// Returns the normed state of a scored row, `[hidden]`.
    pub fn scored_row(&self, row: usize, hidden: usize) -> &[f32] {
        // SAFETY: the pass has ended and has written all of it.
        unsafe { std::slice::from_raw_parts(self.scored.row(row), hidden) }
    }

    /// Returns row `row` of the last product of a correction, `width` numbers.
    pub fn correction_output(&self, row: usize, width: usize) -> &[f32] {
        let first = self.correction_output.at(row * width.next_multiple_of(LANES));
        // SAFETY: the product has been computed and is not being written.
        unsafe { std::slice::from_raw_parts(first, width) }
    }

    /// Logits of the last pass, `[rows, vocabulary padded to LANES]`.
    fn rows(&self, vocabulary: usize, rows: usize) -> &[f32] {
        // SAFETY: the pass has ended and has written all of them.
        unsafe { std::slice::from_raw_parts(self.logits.at(0), rows * vocabulary.next_multiple_of(LANES)) }
    }
}
