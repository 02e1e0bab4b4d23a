//! The memory of a pass: all of it is there before the pass begins, and is kept for the next one. What is
//! written to it is for the pass to say.

use std::sync::atomic::AtomicUsize;

use super::activations::{Activations, BLOCK};
use super::attention::Attention;
use super::buffer::Buffer;
use super::panels::Format;
use super::product::Rows;
use super::scratch::Scratch;
use super::simd::LANES;
use crate::forward::slices::STRETCH;
use crate::forward::{Features, Logits, Peak};
use crate::model::{BlockHead, Convolution, Experts, Latent, ModelConfig, Turns};
use crate::tree::TokenTree;

/// Rows to multiply with, as numbers and, for weights that want them so, in eight bits.
#[derive(Debug, Default)]
pub struct Inputs {
    pub width: usize,
    plain: Buffer<f32>, // [rows, width]
    pub eight: Activations,
    /// Rows are whole blocks, so that they can be had in eight bits.
    pub blocks: bool,
}

impl Inputs {
    /// Room for `rows` of `width`.
    pub fn prepare(&mut self, rows: usize, width: usize, tile: usize) {
        self.width = width.next_multiple_of(LANES);
        self.plain.reserve(rows * self.width);
        self.blocks = width.is_multiple_of(BLOCK);
        if self.blocks {
            self.eight.resize(rows, width, tile);
        }
    }

    pub fn row(&self, row: usize) -> *mut f32 {
        self.plain.at(row * self.width)
    }

    /// A tile as weights of `format` want it.
    pub fn tile(&self, format: Format, first: usize, rows: usize) -> Rows {
        if format.quantised() {
            Rows::Quantised(self.eight.tile(first, rows))
        } else {
            Rows::Plain { rows, x: self.row(first), stride: self.width }
        }
    }
}

/// Inputs of every width that there is.
#[derive(Debug, Default)]
pub struct ByWidth(Vec<(usize, Inputs)>);

impl ByWidth {
    /// Room for `rows` of each of the widths.
    fn prepare(&mut self, rows: usize, widths: impl Iterator<Item = usize>, tile: usize) {
        for width in widths {
            if !self.0.iter().any(|(own, _)| *own == width) {
                self.0.push((width, Inputs::default()));
            }
        }
        self.0.iter_mut().for_each(|(width, inputs)| inputs.prepare(rows, *width, tile));
    }

    /// Those of a width that there is.
    pub fn of(&self, width: usize) -> &Inputs {
        let own = self.0.iter().find(|(own, _)| *own == width);
        own.map_or_else(|| unreachable!("no room for rows of {width}"), |(_, inputs)| inputs)
    }
}

/// What experts need: a slot for each row and each of the experts that it goes through.
#[derive(Debug, Default)]
pub struct Routed {
    /// What the router gives.
    pub scores: Buffer<f32>, // [rows, experts padded to LANES]
    /// Of every row its experts, highest first, and their shares.
    pub choices: Buffer<(usize, f32)>, // [rows, used]
    /// Of every row what the share of the expert is made of that all go through.
    pub gates: Buffer<f32>, // [rows, LANES]
    pub inputs: Inputs,       // hidden
    pub gated: Inputs,        // intermediate of an expert
    pub outputs: Buffer<f32>, // [slots, hidden padded to LANES]
}

impl Routed {
    fn prepare(&mut self, rows: usize, hidden: usize, experts: &Experts, tile: usize) {
        let slots = rows * experts.used;
        self.scores.reserve(rows * experts.count.next_multiple_of(LANES));
        self.choices.reserve(slots);
        self.gates.reserve(rows * LANES);
        self.inputs.prepare(slots, hidden, tile);
        self.gated.prepare(slots, experts.intermediate, tile);
        self.outputs.reserve(slots * hidden.next_multiple_of(LANES));
    }
}

/// What attention to latents needs.
#[derive(Debug, Default)]
pub struct Latents {
    /// What queries are made of.
    pub down: Inputs, // queries
    /// Queries before they see latents.
    pub queries: Buffer<f32>, // [rows, heads * (plain + turned) padded to LANES]
    /// The part of them that does not turn, of every head.
    pub plain: Vec<Inputs>, // plain
    /// What is compared with what is cached.
    pub compared: Buffer<f32>, // [rows, heads, size + turned padded to LANES]
    /// What is cached of a row.
    pub cached: Buffer<f32>, // [rows, size + turned padded to LANES]
    /// Latents, mixed for every head.
    pub mixed: Vec<Inputs>, // size
}

impl Latents {
    fn prepare(&mut self, rows: usize, heads: usize, of: Latent, tile: usize) {
        let width = of.keys().size.next_multiple_of(LANES);
        self.down.prepare(rows, of.queries.unwrap_or(0), tile);
        self.queries.reserve(rows * (heads * of.query()).next_multiple_of(LANES));
        self.compared.reserve(rows * heads * width);
        self.cached.reserve(rows * width);
        for (inputs, width) in [(&mut self.plain, of.plain), (&mut self.mixed, of.size)] {
            inputs.resize_with(heads, Inputs::default);
            inputs.iter_mut().for_each(|inputs| inputs.prepare(rows, width, tile));
        }
    }
}

/// The memory of a pass.
#[derive(Debug, Default)]
pub struct Workspace {
    /// The state that runs through the layers.
    pub hidden: Buffer<f32>, // [rows, hidden padded to LANES]
    pub normed: Vec<Inputs>, // hidden; one for all members or one for each
    /// Of a draft head: the target's states, and then each token's embedding and state, normed.
    pub states: Inputs, // states
    pub joined: Inputs,      // 2 * hidden
    pub mixed: ByWidth,      // heads * head_size of every kind
    pub gated: ByWidth,      // intermediate of every layer, and what a layer is told
    pub scored: Inputs,      // hidden, of the rows asked for
    /// Of a draft head that guesses blocks: all its rows, what convolutions are made of and what they make.
    pub block: Vec<usize>,
    pub dynamic: Buffer<f32>, // [rows, both sides of a convolution padded to LANES]
    pub convolved: Inputs,    // hidden
    /// What a selector knows of the rows asked for.
    pub places: Buffer<f32>, // [rows asked for, rank padded to LANES]
    /// A token before a place, and what it adds to the scores there.
    pub before: Inputs, // rank
    pub bias: Buffer<f32>,    // [vocabulary padded to LANES]
    /// Of an assistant whose tokens are in clusters, of the rows asked for: how near each cluster is, the nearest, and the
    /// scores of their tokens.
    pub centroids: Buffer<f32>, // [rows asked for, clusters padded to LANES]
    pub nearest: Buffer<usize>, // [rows asked for, nearest]
    pub near: Buffer<f32>,    // [rows asked for, nearest, tokens of a cluster padded to LANES]
    /// The scores of a place after a token.
    pub after: Vec<f32>, // [vocabulary]
    pub routed: Routed,
    /// By all layers of a pass together.
    pub experts_read: AtomicUsize,
    /// What the router is given that is beside a network, and what that has given.
    pub ranked: Inputs, // hidden
    pub beside: Buffer<f32>, // as the state
    /// What all layers are told of the rows beside their states, and the rows of its table.
    pub told: Buffer<f32>, // [rows, layers * width padded to LANES]
    pub table: Vec<f32>,     // [rows, layers * width]
    pub recurrent: Scratch,
    /// What attention or the feed-forward network gave, on its way through a norm.
    pub branch: Buffer<f32>, // as the state
    pub queries: Buffer<f32>, // [rows, heads * head_size padded to LANES]
    pub latents: Latents,
    pub keys: Buffer<f32>,   // [rows, kv_heads * head_size padded to LANES]
    pub values: Buffer<f32>, // as the keys
    pub gates: Buffer<f32>,  // as the queries
    /// Of every node's position, for every kind: what keys turn by, and queries where that is something else.
    pub rotations: Vec<[Turns; 2]>,
    /// Of every node its ancestors and itself, which are as many as its depth is large, and one more.
    pub visible: Vec<Vec<usize>>,
    pub scores: Buffer<f32>, // [members, heads of a group, positions]
    /// How many of them a member has.
    pub scores_of_member: usize,
    pub logits: Buffer<f32>, // [rows asked for, vocabulary padded to LANES]
    /// Of each slice of the logits: the largest, and the sum of e^(x - largest).
    pub slices: Buffer<(f32, f32)>,
    peaks: Vec<Peak>,
    /// Tapped states, [rows, width].
    features: Buffer<f32>,
    /// How many rows of them there are and how wide they are; 0 wide where none are asked for.
    tapped: (usize, usize),
}

impl Workspace {
    /// Makes room for features of `rows`, `width` numbers each.
    pub fn prepare_features(&mut self, rows: usize, width: usize) {
        self.tapped = (rows, width);
        self.features.reserve(rows * width);
    }

    /// Numbers of a row's features from `at` on.
    pub fn feature(&self, row: usize, at: usize) -> *mut f32 {
        self.features.at(row * self.tapped.1 + at)
    }

    /// Of the pass that has just been.
    pub fn features(&self) -> Option<Features<'_>> {
        let (rows, width) = self.tapped;
        // SAFETY: the pass is over, and has written all of it.
        let numbers = unsafe { std::slice::from_raw_parts(self.features.at(0), rows * width) };
        (width > 0).then(|| Features::new(numbers, width))
    }

    /// Makes room for a pass over the nodes of `tree` from number `first` on, after `at` positions of a text that is
    /// `long` or not.
    pub fn prepare(
        &mut self,
        config: &ModelConfig,
        tree: &TokenTree,
        (at, first, long): (usize, usize, bool),
        scored: usize,
        (members, copies): (usize, usize),
        tile: usize,
    ) {
        let rows = tree.len() - first;
        let whole = |width: usize| width.next_multiple_of(LANES);
        let (queries, keys) = (config.heads * config.head_size, config.kv_heads * config.head_size);
        self.hidden.reserve(rows * whole(config.hidden));
        if config.family.post_norms || config.experts.as_ref().is_some_and(|experts| experts.shared.is_some())
        {
            self.branch.reserve(rows * whole(config.hidden));
        }
        self.normed.resize_with(self.normed.len().max(copies), Inputs::default);
        self.normed[..copies].iter_mut().for_each(|normed| normed.prepare(rows, config.hidden, tile));
        if let Some(head) = &config.draft_head {
            let states = if head.assistant.is_some() { config.carried() } else { head.states() };
            self.states.prepare(rows, states, tile);
            match &head.block {
                None => self.joined.prepare(rows, 2 * config.carried(), tile),
                Some(block) => self.prepare_block(block, config, (rows, scored), tile),
            }
        }
        self.mixed.prepare(
            rows,
            config
                .attention_kinds
                .iter()
                .map(|kind| config.heads * config.latent.map_or(kind.keys.size, |latent| latent.value)),
            tile,
        );
        if let Some(experts) = &config.experts {
            self.routed.prepare(rows, config.hidden, experts, tile);
        }
        let dense = |experts: &Experts| experts.beside || experts.shared.is_some() || experts.after > 0;
        if config.experts.as_ref().is_none_or(dense) {
            let widths = (0..config.layers).map(|layer| config.intermediate_of(layer));
            self.gated.prepare(rows, widths.chain(config.per_layer), tile);
        }
        if config.experts.as_ref().is_some_and(|experts| experts.beside) {
            self.ranked.prepare(rows, config.hidden, tile);
            self.beside.reserve(rows * whole(config.hidden));
        }
        if let Some(width) = config.per_layer {
            // Whole vectors are read behind the last of them.
            self.told.reserve(rows * whole(config.layers * width) + LANES);
        }
        if let Some(recurrence) = &config.recurrence {
            self.recurrent.prepare(recurrence, rows, members, tile);
        }
        let clusters = config.assistant().and_then(|assistant| assistant.clusters);
        // Each row goes to clusters of its own.
        self.scored.prepare(scored, config.hidden, if clusters.is_some() { 1 } else { tile });
        if let Some(clusters) = clusters {
            let near = clusters.nearest * whole(clusters.size(config.vocabulary));
            self.centroids.reserve(scored * whole(clusters.count));
            self.nearest.reserve(scored * clusters.nearest);
            self.near.reserve(scored * near);
        }
        if let Some(latent) = config.latent {
            self.latents.prepare(rows, config.heads, latent, tile);
        }
        self.queries.reserve(rows * whole(queries));
        self.keys.reserve(rows * whole(keys));
        self.values.reserve(rows * whole(keys));
        if config.family.gated_attention {
            self.gates.reserve(rows * whole(queries));
        }
        let groups = config.attention_kinds.iter().map(|kind| config.heads / kind.keys.count);
        self.scores_of_member = groups.max().unwrap_or(1) * Attention::scores(at + tree.len());
        self.scores.reserve(members * self.scores_of_member);
        self.logits.reserve(scored * whole(config.vocabulary));
        self.slices.reserve(scored * config.vocabulary.div_ceil(STRETCH));
        self.visible = tree.visible().split_off(first);
        let mut positions: Vec<usize> =
            tree.depths().split_off(first).iter().map(|depth| at + depth).collect();
        if config.assistant().is_some() {
            // All of its rows stand after the text, and have no keys that others could see.
            self.visible.iter_mut().for_each(Vec::clear);
            positions.fill(at);
        }
        self.rotations.resize_with(config.attention_kinds.len(), Default::default);
        for (kind, [keys, queries]) in config.attention_kinds.iter().zip(&mut self.rotations) {
            kind.rotary.tabulate(&positions, long, keys);
            if let Some(growth) = kind.rotary.growth {
                growth.tabulate(&positions, keys, queries);
            }
        }
    }

    /// Makes room for what a draft head needs that guesses blocks, beside what others do.
    fn prepare_block(
        &mut self,
        block: &BlockHead,
        config: &ModelConfig,
        (rows, scored): (usize, usize),
        tile: usize,
    ) {
        let whole = |width: usize| width.next_multiple_of(LANES);
        self.block = (0..rows).collect();
        if let Some(Convolution { taps, group }) = block.convolution {
            self.dynamic.reserve(rows * whole(2 * taps * (config.hidden / group)));
            self.convolved.prepare(rows, config.hidden, tile);
            self.branch.reserve(rows * whole(config.hidden));
        }
        if let Some(selector) = block.selector {
            self.places.reserve(scored * whole(selector.rank));
        }
        if let Some(rank) = block.markov {
            self.before.prepare(1, rank, tile);
            self.bias.reserve(whole(config.vocabulary));
        }
    }

    /// Finds the peaks of the `rows` of logits of the pass that has just been.
    pub fn find_peaks(&mut self, vocabulary: usize, rows: usize) {
        let slices = vocabulary.div_ceil(STRETCH);
        self.peaks.clear();
        for row in 0..rows {
            // SAFETY: the pass is over, and has written all of it.
            let slices = unsafe { std::slice::from_raw_parts(self.slices.at(row * slices), slices) };
            let logits =
                &self.rows(vocabulary, rows)[row * vocabulary.next_multiple_of(LANES)..][..vocabulary];
            self.peaks.push(Peak::of_slices(logits, slices, STRETCH));
        }
    }

    /// Of the pass that has just been, after [`Self::find_peaks`].
    pub fn logits(&self, vocabulary: usize) -> Logits<'_> {
        let rows = self.rows(vocabulary, self.peaks.len());
        Logits::new(rows, vocabulary, vocabulary.next_multiple_of(LANES), &self.peaks)
    }

    /// What a selector knows of a row of the pass that has just been, `[rank]`.
    pub fn place(&self, row: usize, rank: usize) -> &[f32] {
        // SAFETY: the pass is over, and has written all of it.
        unsafe { std::slice::from_raw_parts(self.places.at(row * rank.next_multiple_of(LANES)), rank) }
    }

    /// The normed state of a row asked for of the pass that has just been, `[hidden]`.
    pub fn scored_row(&self, row: usize, hidden: usize) -> &[f32] {
        // SAFETY: the pass is over, and has written all of it.
        unsafe { std::slice::from_raw_parts(self.scored.row(row), hidden) }
    }

    /// What the token before a place adds to its scores, `[vocabulary]` and more.
    pub fn bias(&self) -> &[f32] {
        // SAFETY: it was computed, and nobody computes another.
        unsafe { std::slice::from_raw_parts(self.bias.at(0), self.bias.len()) }
    }

    /// `[rows, vocabulary padded to LANES]`
    fn rows(&self, vocabulary: usize, rows: usize) -> &[f32] {
        // SAFETY: the pass is over, and has written all of it.
        unsafe { std::slice::from_raw_parts(self.logits.at(0), rows * vocabulary.next_multiple_of(LANES)) }
    }
}
