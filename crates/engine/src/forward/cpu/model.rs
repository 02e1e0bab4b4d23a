//! A loaded model on the CPU and one pass of it: which kernel is run on what, phase by phase.
//!
//! All memory a pass needs is there before it begins, and its members write to parts of it that do not
//! overlap: a unit of work is a row, a row's heads, or a panel of output rows.

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

use super::activations::{Activations, BLOCK};
use super::attention::{Attention, Rotation};
use super::buffer::Buffer;
use super::cache::Cache;
use super::isa::Isa;
use super::kernels::Kernels;
use super::network::{Layer, Network};
use super::panels::{Format, Panels};
use super::product::{Product, Rows};
use super::simd::LANES;
use super::team::{Member, Team};
use super::worth::Worth;
use crate::device;
use crate::error::Result;
use crate::forward::{Logits, Model, Peak, admit};
use crate::model::{Activation, ModelConfig, ModelSource};
use crate::trace::TokenId;
use crate::tree::TokenTree;

/// A model on the CPU and its cache.
pub struct CpuModel {
    config: ModelConfig,
    network: Network,
    /// Bytes of weights that a pass reads.
    bytes: usize,
    kernels: &'static Kernels,
    team: Arc<Team>,
    /// How many of its members passes are worth; `None` where that stays what their sizes say, whatever
    /// passes take and other programs do.
    worth: Option<Worth>,
    caches: Vec<Cache>,
    room: Room,
    cached: Vec<TokenId>,
    /// How many of `cached` the last pass added.
    last_pass: usize,
}

/// Weights that a thread has to read before it pays to wake another, in bytes, as long as nothing else is
/// known.
const WORTH_SHARING: usize = 1 << 20;

/// Scores of one row that are summed up as one unit of work.
const SLICE: usize = 1 << 12;

impl CpuModel {
    /// # Errors
    /// Those of `Network::load`, and `Error::Setting` for an instruction set that is asked for in vain.
    pub fn load(source: &ModelSource) -> Result<Self> {
        let mut model = Self::with(source, Isa::choose()?, device::threads())?;
        if device::adapts() {
            let members = |rows| model.members(rows);
            model.worth = Some(Worth::new(model.team.threads(), members));
        }
        Ok(model)
    }

    /// On so many threads, always, with the instructions of `isa`, which this processor must have.
    ///
    /// # Errors
    /// Those of `Network::load`.
    ///
    /// # Panics
    /// If the processor lacks the instructions.
    pub fn with(source: &ModelSource, isa: Isa, threads: usize) -> Result<Self> {
        assert!(isa.available(), "this processor does not have {isa}");
        let config = source.config()?.clone();
        let network = Network::load(&source.weights(&candle_core::Device::Cpu)?, &config)?;
        let cache = |_| Cache::new(config.kv_heads, config.head_size);
        Ok(Self {
            caches: (0..config.layers).map(cache).collect(),
            bytes: network.matrices().map(Panels::bytes).sum(),
            network,
            kernels: isa.kernels(),
            team: Team::shared(threads),
            worth: None,
            room: Room::default(),
            cached: Vec::new(),
            last_pass: 0,
            config,
        })
    }

    /// Members of the next pass, over `rows`: those it is worth, of those the team may use.
    fn members(&self, rows: usize) -> usize {
        let sharing = || self.bytes.saturating_mul(rows) / WORTH_SHARING;
        match &self.worth {
            None => sharing().clamp(1, self.team.threads()),
            Some(worth) => worth.members(rows).unwrap_or_else(sharing).clamp(1, self.team.members()),
        }
    }
}

impl Model for CpuModel {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn cached(&self) -> &[TokenId] {
        &self.cached
    }

    fn last_pass(&self) -> usize {
        self.last_pass
    }

    fn pass(&mut self, tree: &TokenTree, first: usize, rows: Range<usize>) -> Result<Logits<'_>> {
        let at = self.cached.len() - first;
        admit(tree, &self.config, at)?;
        self.caches.iter_mut().for_each(|cache| cache.reserve(at + tree.len()));
        let nodes = tree.len() - first;
        let threads = self.members(nodes);
        let copies = copies_of_norms(&self.config, nodes, threads);
        self.room.prepare(&self.config, tree, (at, first), rows.len(), (threads, copies), self.kernels.tile);
        if nodes > 0 {
            let pass = Pass {
                config: &self.config,
                network: &self.network,
                kernels: self.kernels,
                caches: &self.caches,
                room: &self.room,
                normed: &self.room.normed[..copies],
                tree,
                at,
                first,
                nodes,
                rows: rows.start - first..rows.end - first,
            };
            let taken = self.team.run(threads, &|member| pass.run(member));
            // Passes over as many rows are alike where all are scored.
            if let Some(worth) = self.worth.as_mut().filter(|_| rows.len() == nodes) {
                worth.learn(nodes, taken);
            }
        }
        self.cached.extend(tree.tokens().skip(first));
        self.last_pass = tree.len();
        Ok(self.room.logits(self.config.vocabulary, rows.len()))
    }

    fn read_weights(&self) -> usize {
        self.team.run(self.members(1), &|member| {
            for matrix in self.network.matrices() {
                member.share(matrix.panels(), run(matrix.panels(), member), |panels| {
                    // SAFETY: the kernels are those of instructions the processor has.
                    panels.for_each(|panel| unsafe {
                        black_box((self.kernels.read)(matrix.panel(panel)));
                    });
                });
                member.meet();
            }
        });
        self.bytes
    }

    fn keep(&mut self, path: &[usize]) -> Result<()> {
        let start = self.cached.len() - self.last_pass;
        for (to, &from) in path.iter().enumerate().filter(|&(to, &from)| to != from) {
            self.caches.iter_mut().for_each(|cache| cache.copy(start + from, start + to));
            self.cached[start + to] = self.cached[start + from];
        }
        self.cached.truncate(start + path.len());
        self.last_pass = path.len();
        Ok(())
    }

    fn truncate(&mut self, length: usize) {
        self.cached.truncate(length);
        self.last_pass = 0;
    }
}

/// Rows to multiply with, as numbers and, for weights that want them so, in eight bits.
#[derive(Debug, Default)]
struct Inputs {
    width: usize,
    plain: Buffer<f32>, // [rows, width]
    eight: Activations,
    /// Rows are whole blocks, so that they can be had in eight bits.
    blocks: bool,
}

impl Inputs {
    /// Room for `rows` of `width`.
    fn prepare(&mut self, rows: usize, width: usize, tile: usize) {
        self.width = width.next_multiple_of(LANES);
        self.plain.reserve(rows * self.width);
        self.blocks = width.is_multiple_of(BLOCK);
        if self.blocks {
            self.eight.resize(rows, width, tile);
        }
    }

    fn row(&self, row: usize) -> *mut f32 {
        self.plain.at(row * self.width)
    }

    /// A tile as weights of `format` want it.
    fn tile(&self, format: Format, index: usize, first: usize, rows: usize) -> Rows {
        if format.quantised() {
            Rows::Quantised(self.eight.tile(index))
        } else {
            Rows::Plain { rows, x: self.row(first), stride: self.width }
        }
    }
}

/// The memory of a pass.
#[derive(Debug, Default)]
struct Room {
    /// The state that runs through the layers.
    hidden: Buffer<f32>, // [rows, hidden in whole vectors]
    normed: Vec<Inputs>, // hidden; one for all members or one for each
    mixed: Inputs,       // heads * head_size
    gated: Inputs,       // intermediate
    scored: Inputs,      // hidden, of the rows asked for
    /// What attention or the feed-forward network gave, on its way through a norm.
    branch: Buffer<f32>, // as the state
    queries: Buffer<f32>, // [rows, heads * head_size in whole vectors]
    keys: Buffer<f32>,   // [rows, kv_heads * head_size in whole vectors]
    values: Buffer<f32>, // as the keys
    /// Of every node's position, for every reach: cosines and sines, [rows, size / 2] each.
    turns: Vec<(Vec<f32>, Vec<f32>)>,
    /// Of every node its ancestors and itself, which are as many as its depth is large, and one more.
    visible: Vec<Vec<usize>>,
    scores: Buffer<f32>, // [members, heads of a group, positions]
    logits: Buffer<f32>, // [rows asked for, vocabulary in whole vectors]
    /// Of each slice of the logits: the largest, and the sum of e^(x - largest).
    slices: Buffer<(f32, f32)>,
    peaks: Vec<Peak>,
}

impl Room {
    fn prepare(
        &mut self,
        config: &ModelConfig,
        tree: &TokenTree,
        (at, first): (usize, usize),
        scored: usize,
        (members, copies): (usize, usize),
        tile: usize,
    ) {
        let rows = tree.len() - first;
        let whole = |width: usize| width.next_multiple_of(LANES);
        let (queries, keys) = (config.heads * config.head_size, config.kv_heads * config.head_size);
        self.hidden.reserve(rows * whole(config.hidden));
        if config.family.post_norms {
            self.branch.reserve(rows * whole(config.hidden));
        }
        self.normed.resize_with(self.normed.len().max(copies), Inputs::default);
        self.normed[..copies].iter_mut().for_each(|normed| normed.prepare(rows, config.hidden, tile));
        self.mixed.prepare(rows, queries, tile);
        self.gated.prepare(rows, config.intermediate, tile);
        self.scored.prepare(scored, config.hidden, tile);
        self.queries.reserve(rows * whole(queries));
        self.keys.reserve(rows * whole(keys));
        self.values.reserve(rows * whole(keys));
        let group = config.heads / config.kv_heads;
        self.scores.reserve(members * group * Attention::scores(at + tree.len()));
        self.logits.reserve(scored * whole(config.vocabulary));
        self.slices.reserve(scored * config.vocabulary.div_ceil(SLICE));
        self.visible = tree.visible().split_off(first);
        let positions: Vec<usize> = tree.depths().split_off(first).iter().map(|depth| at + depth).collect();
        self.turns.resize_with(config.reaches.len(), Default::default);
        for (reach, (cosines, sines)) in config.reaches.iter().zip(&mut self.turns) {
            reach.rotary.turns(&positions, cosines, sines);
        }
    }

    /// Of the pass that has just been.
    fn logits(&mut self, vocabulary: usize, rows: usize) -> Logits<'_> {
        let stride = vocabulary.next_multiple_of(LANES);
        // SAFETY: the pass is over, and has written all of it.
        let values = unsafe { std::slice::from_raw_parts(self.logits.at(0), rows * stride) };
        let slices = vocabulary.div_ceil(SLICE);
        self.peaks.clear();
        for row in 0..rows {
            // SAFETY: as above.
            let slices = unsafe { std::slice::from_raw_parts(self.slices.at(row * slices), slices) };
            self.peaks.push(Peak::of_slices(&values[row * stride..][..vocabulary], slices, SLICE));
        }
        Logits::new(values, vocabulary, stride, &self.peaks)
    }
}

/// Numbers that a member can norm and round while members meet.
const WORTH_MEETING: usize = 1 << 12;

/// Norms of a pass: one that the members share, or one for each, who then take every norm by themselves
/// and need not meet, where that costs less than to meet.
fn copies_of_norms(config: &ModelConfig, rows: usize, members: usize) -> usize {
    let saved = (rows - rows.div_ceil(members)) * config.hidden;
    if config.family.post_norms || saved > WORTH_MEETING { 1 } else { members }
}

/// What all members of a pass share.
struct Pass<'a> {
    config: &'a ModelConfig,
    network: &'a Network,
    kernels: &'static Kernels,
    caches: &'a [Cache],
    room: &'a Room,
    /// See [`copies_of_norms`].
    normed: &'a [Inputs],
    tree: &'a TokenTree,
    /// Positions before the tree.
    at: usize,
    /// The first node to run, whose row is row 0, and how many there are.
    first: usize,
    nodes: usize,
    /// Rows whose logits are asked for.
    rows: Range<usize>,
}

/// A matrix, the rows to multiply it with, and where the result goes.
struct Task<'a> {
    weights: &'a Panels,
    inputs: &'a Inputs,
    rows: usize,
    out: *mut f32,
    stride: usize,
    add: bool,
}

// What is unsafe here rests on three things: the kernels are those of instructions the processor has
// (`CpuModel::with`), `Room::prepare` made room for every row, and units of work do not overlap.
impl Pass<'_> {
    fn run(&self, member: &Member<'_>) {
        self.embed(member);
        let mut pending = None;
        for (index, (layer, cache)) in self.network.layers.iter().zip(self.caches).enumerate() {
            let kind = self.config.reach_of[index];
            let Layer { attention_output, gate, down, .. } = layer;
            let next = self.network.layers.get(index + 1).map_or(&*self.network.output, |next| &next.query);
            let normed = self.normalise(member, &layer.attention_norm, pending, 0..self.nodes, self.normed);
            self.project(member, layer, normed, attention_output);
            if self.nodes > 1 {
                self.turn(member, layer, cache, kind);
            }
            self.attend(member, layer, cache, kind);
            pending = layer.attention_post_norm.as_deref();
            self.add_product(member, attention_output, &self.room.mixed, pending, gate);
            let normed =
                self.normalise(member, &layer.feed_forward_norm, pending, 0..self.nodes, self.normed);
            self.gate(member, layer, normed, down);
            pending = layer.feed_forward_post_norm.as_deref();
            self.add_product(member, down, &self.room.gated, pending, next);
        }
        if !self.rows.is_empty() {
            self.score(member, pending);
        }
    }

    fn width(&self) -> usize {
        self.config.hidden.next_multiple_of(LANES)
    }

    fn hidden(&self, row: usize) -> *mut f32 {
        self.room.hidden.at(row * self.width())
    }

    fn branch(&self, row: usize) -> *mut f32 {
        self.room.branch.at(row * self.width())
    }

    fn embed(&self, member: &Member<'_>) {
        let scale = self.config.embedding_scale();
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                // SAFETY: the row is this unit's.
                let state = unsafe { std::slice::from_raw_parts_mut(self.hidden(row), self.width()) };
                let (state, rest) = state.split_at_mut(self.config.hidden);
                self.network.embedding.unpack_row(self.tree.token(self.first + row) as usize, state);
                if scale != 1.0 {
                    state.iter_mut().for_each(|number| *number *= scale);
                }
                rest.fill(0.0);
            }
        });
        member.meet();
    }

    /// The norm of the states of `rows`, as rows from 0 on: of the one in `to`, or of this member's.
    /// First the branch is added to the states if there is one `pending`, through the norm that it waits
    /// for.
    fn normalise<'a>(
        &self,
        member: &Member<'_>,
        weight: &[f32],
        pending: Option<&[f32]>,
        rows: Range<usize>,
        to: &'a [Inputs],
    ) -> &'a Inputs {
        let (hidden, epsilon) = (self.config.hidden, self.config.norm_epsilon as f32);
        let first = rows.start;
        let normalise = |units: Range<usize>, to: &Inputs| {
            for row in units {
                let out = to.row(row);
                // SAFETY: see above; all are good for `hidden` numbers.
                unsafe {
                    let state = self.hidden(first + row);
                    if let Some(weight) = pending {
                        let branch = self.branch(first + row);
                        (self.kernels.rms_norm)(branch, weight.as_ptr(), branch, hidden, epsilon);
                        add(state, std::slice::from_raw_parts(branch, hidden));
                    }
                    (self.kernels.rms_norm)(state, weight.as_ptr(), out, hidden, epsilon);
                    self.round(to, row, 0..hidden, out);
                }
            }
        };
        if let [shared] = to {
            member.share(rows.len(), 1, |units| normalise(units, shared));
            member.meet();
            return shared;
        }
        let own = &to[member.index()];
        member.for_itself(|| normalise(0..rows.len(), own));
        own
    }

    /// Numbers `range` of a row in eight bits, if they can be had so.
    ///
    /// # Safety
    /// If the row is whole blocks, the range must be, too, and be this unit's.
    unsafe fn round(&self, inputs: &Inputs, row: usize, range: Range<usize>, from: *const f32) {
        if inputs.blocks {
            let (block, count) = (range.start / BLOCK, range.len() / BLOCK);
            unsafe { (self.kernels.quantise)(&inputs.eight, row, block, count, from) };
        }
    }

    /// Queries, keys and values. `then` is what is read next, as it is of the other products.
    fn project(&self, member: &Member<'_>, layer: &Layer, normed: &Inputs, then: &Panels) {
        let room = self.room;
        let task = |weights, out: &Buffer<f32>| self.task(weights, normed, out.at(0), false);
        let tasks = [
            task(&layer.query, &room.queries),
            task(&layer.key, &room.keys),
            task(&layer.value, &room.values),
        ];
        self.products(member, &tasks, then);
    }

    fn task<'a>(&self, weights: &'a Panels, inputs: &'a Inputs, out: *mut f32, add: bool) -> Task<'a> {
        let stride = weights.rows().next_multiple_of(LANES);
        Task { weights, inputs, rows: self.nodes, out, stride, add }
    }

    /// `state += weights * inputs`; or `branch = weights * inputs`, if that has a norm `pending`.
    fn add_product(
        &self,
        member: &Member<'_>,
        weights: &Panels,
        inputs: &Inputs,
        pending: Option<&[f32]>,
        then: &Panels,
    ) {
        let task = match pending {
            None => self.task(weights, inputs, self.hidden(0), true),
            Some(_) => self.task(weights, inputs, self.branch(0), false),
        };
        self.products(member, &[task], then);
    }

    /// The panels of all tasks, shared out together.
    fn products(&self, member: &Member<'_>, tasks: &[Task<'_>], then: &Panels) {
        let total = tasks.iter().map(|task| task.weights.panels()).sum();
        let find = |mut panel: usize| {
            tasks.iter().find_map(|task| {
                let panels = task.weights.panels();
                let found = (panel < panels).then_some((task, panel));
                panel = panel.wrapping_sub(panels);
                found
            })
        };
        let at =
            |unit| find(unit).map_or(std::ptr::null(), |(task, panel)| task.weights.panel(panel).as_ptr());
        share_reading(member, total, at, opening(then, member), |unit, next| {
            if let Some((task, panel)) = find(unit) {
                self.product(task, panel, next);
            }
        });
        member.meet();
    }

    /// One panel times all rows, tile by tile; at `next` is what will be read then.
    fn product(&self, task: &Task<'_>, panel: usize, next: *const u8) {
        let tile = self.kernels.tile;
        for (index, first) in (0..task.rows).step_by(tile).enumerate() {
            let rows = tile.min(task.rows - first);
            // SAFETY: see above; `out` is good for all rows of the task.
            unsafe {
                let out = task.out.add(first * task.stride + panel * LANES);
                self.multiply(
                    (task.weights, panel, next),
                    task.inputs,
                    (index, first, rows),
                    out,
                    task.stride,
                    task.add,
                );
            }
        }
    }

    /// A panel, before what is at `next`, times a tile, given as its number, its first row and how many
    /// it has.
    unsafe fn multiply(
        &self,
        (weights, panel, next): (&Panels, usize, *const u8),
        inputs: &Inputs,
        (tile, first, rows): (usize, usize, usize),
        out: *mut f32,
        stride: usize,
        add: bool,
    ) {
        let format = weights.format();
        let product = Product {
            panel: weights.panel(panel).as_ptr(),
            blocks: weights.inputs() / format.inputs(),
            next,
            x: inputs.tile(format, tile, first, rows),
            out,
            stride,
            add,
        };
        unsafe { (self.kernels.product)(format, rows)(&product) };
    }

    /// Completes queries, keys and values of all rows, see [`Self::turn_heads`].
    fn turn(&self, member: &Member<'_>, layer: &Layer, cache: &Cache, kind: usize) {
        let kv_heads = self.config.kv_heads;
        member.share(self.nodes * kv_heads, kv_heads, |units| {
            for (row, kv_head) in units.map(|unit| (unit / kv_heads, unit % kv_heads)) {
                // SAFETY: the heads of a row are this unit's.
                unsafe { self.turn_heads(layer, cache, kind, row, kv_head) };
            }
        });
        member.meet();
    }

    /// Completes queries, keys and values of a key head's group by what the family does to them, turns
    /// queries and keys by their positions and writes keys and values into the cache.
    ///
    /// # Safety
    /// The group's heads of the row, and their place in the cache, must belong to this unit.
    unsafe fn turn_heads(&self, layer: &Layer, cache: &Cache, kind: usize, row: usize, kv_head: usize) {
        let ModelConfig { heads, kv_heads, head_size, .. } = *self.config;
        let group = heads / kv_heads;
        let (queries, keys) = (heads * head_size, kv_heads * head_size);
        let rotary = &self.config.reaches[kind].rotary;
        let (cosines, sines) = &self.room.turns[kind];
        let half = rotary.size() / 2;
        let rotation = Rotation {
            layout: rotary.layout,
            size: rotary.size(),
            cosines: cosines[row * half..].as_ptr(),
            sines: sines[row * half..].as_ptr(),
        };
        let query = self.room.queries.at(row * queries.next_multiple_of(LANES));
        let query_heads = kv_head * group..(kv_head + 1) * group;
        let at = row * keys.next_multiple_of(LANES) + kv_head * head_size;
        let (key, value) = (self.room.keys.at(at), self.room.values.at(at));
        // SAFETY: as promised.
        unsafe {
            if let Some(biases) = &layer.biases {
                let (first, end) = (query_heads.start * head_size, query_heads.end * head_size);
                let own = kv_head * head_size..(kv_head + 1) * head_size;
                add(query.add(first), &biases.query[first..end]);
                add(key, &biases.key[own.clone()]);
                add(value, &biases.value[own]);
            }
            for head in query_heads {
                let query = query.add(head * head_size);
                if let Some(norms) = &layer.head_norms {
                    self.normalise_head(query, &norms.query);
                }
                (self.kernels.turn)(&rotation, query);
            }
            if let Some(norms) = &layer.head_norms {
                self.normalise_head(key, &norms.key);
            }
            (self.kernels.turn)(&rotation, key);
            let position = self.at + self.first + row;
            (self.kernels.remember)(cache, kv_head, position, head_size, key, value);
        }
    }

    /// # Safety
    /// `head` must be good for a head's numbers and belong to this unit.
    unsafe fn normalise_head(&self, head: *mut f32, weight: &[f32]) {
        let (size, epsilon) = (self.config.head_size, self.config.norm_epsilon as f32);
        unsafe { (self.kernels.rms_norm)(head, weight.as_ptr(), head, size, epsilon) };
    }

    /// Attention to all tokens, or to the last ones that this kind of layer reaches. Who has the only
    /// row's heads completes them first, see [`Self::turn_heads`]: other rows do not wait for them.
    fn attend(&self, member: &Member<'_>, layer: &Layer, cache: &Cache, kind: usize) {
        let ModelConfig { heads, kv_heads, head_size, .. } = *self.config;
        let group = heads / kv_heads;
        let rows = self.nodes;
        let mixed = &self.room.mixed;
        let window = self.config.reaches[kind].window.unwrap_or(usize::MAX);
        let scratch = member.index() * group * Attention::scores(self.at + self.tree.len());
        // Whether what a key head's group gives is whole blocks.
        let blocks = (group * head_size).is_multiple_of(BLOCK) || !mixed.blocks;
        member.share(rows * kv_heads, 1, |units| {
            // The rows of a key head follow each other, so that its keys stay near.
            for (kv_head, row) in units.map(|unit| (unit / rows, unit % rows)) {
                let first = kv_head * group * head_size;
                let visible = &self.room.visible[row];
                let position = self.at + visible.len();
                // SAFETY: the heads of a row are this unit's, the scratch memory this member's.
                unsafe {
                    if rows == 1 {
                        self.turn_heads(layer, cache, kind, row, kv_head);
                    }
                    let out = mixed.row(row).add(first);
                    (self.kernels.attend)(&Attention {
                        cache,
                        kv_head,
                        head_size,
                        heads: group,
                        scale: self.config.query_scale,
                        queries: self.room.queries.at(row * mixed.width + first),
                        out,
                        cached: self.at,
                        first: position.saturating_sub(window).min(self.at),
                        own: &visible[visible.len().saturating_sub(window)..],
                        scratch: self.room.scores.at(scratch),
                    });
                    if blocks {
                        self.round(mixed, row, first..first + group * head_size, out);
                    }
                }
            }
        });
        member.meet();
        if !blocks {
            let width = heads * head_size;
            member.share(rows, 1, |rows| {
                // SAFETY: a row is this unit's.
                rows.for_each(|row| unsafe { self.round(mixed, row, 0..width, mixed.row(row)) });
            });
            member.meet();
        }
    }

    /// `activation(gate * x) * (up * x)`, two panels at a time: a block of what `down` takes.
    fn gate(&self, member: &Member<'_>, layer: &Layer, normed: &Inputs, then: &Panels) {
        let gated = &self.room.gated;
        let (rows, tile, panels) = (self.nodes, self.kernels.tile, layer.gate.panels());
        let units = panels.div_ceil(2);
        let activate = match self.config.family.activation {
            Activation::Silu => self.kernels.silu_times,
            Activation::Gelu => self.kernels.gelu_times,
        };
        let mut up = [0f32; MOST_ROWS * BLOCK];
        let at = |unit: usize| layer.gate.panel(2 * unit).as_ptr();
        share_reading(member, units, at, opening(then, member), |unit, next| {
            let first_panel = 2 * unit;
            let count = (panels - first_panel).min(2);
            for (index, first) in (0..rows).step_by(tile).enumerate() {
                let tile = (index, first, tile.min(rows - first));
                let at = first_panel * LANES;
                // SAFETY: see above; `up` has room for a tile's block.
                unsafe {
                    let out = gated.row(first).add(at);
                    for panel in 0..count {
                        let (number, at) = (first_panel + panel, panel * LANES);
                        let (gate_out, up_out) = (out.add(at), up.as_mut_ptr().add(at));
                        let of_up = layer.up.panel(number).as_ptr();
                        let next =
                            if panel + 1 < count { layer.gate.panel(number + 1).as_ptr() } else { next };
                        let (gate, up) = ((&layer.gate, number, of_up), (&layer.up, number, next));
                        self.multiply(gate, normed, tile, gate_out, gated.width, false);
                        self.multiply(up, normed, tile, up_out, BLOCK, false);
                    }
                    for row in 0..tile.2 {
                        let (out, up) = (out.add(row * gated.width), up.as_ptr().add(row * BLOCK));
                        activate(out, up, count * LANES);
                        self.round(gated, first + row, at..at + count * LANES, out);
                    }
                }
            }
        });
        member.meet();
    }

    /// The logits of the rows asked for, and of every slice of them the largest and the sum.
    fn score(&self, member: &Member<'_>, pending: Option<&[f32]>) {
        let (room, vocabulary) = (self.room, self.config.vocabulary);
        let stride = vocabulary.next_multiple_of(LANES);
        let to = std::slice::from_ref(&room.scored);
        let scored = self.normalise(member, &self.network.output_norm, pending, self.rows.clone(), to);
        let task = Task {
            weights: &self.network.output,
            inputs: scored,
            rows: self.rows.len(),
            out: room.logits.at(0),
            stride,
            add: false,
        };
        // The next pass begins where this one did.
        let first = self.network.layers.first().map_or(&*self.network.output, |layer| &layer.query);
        self.products(member, &[task], first);
        let slices = vocabulary.div_ceil(SLICE);
        member.share(self.rows.len() * slices, 1, |units| {
            for (row, slice) in units.map(|unit| (unit / slices, unit % slices)) {
                let start = slice * SLICE;
                let length = SLICE.min(vocabulary - start);
                let logits = room.logits.at(row * stride + start);
                // SAFETY: a slice is this unit's; after the last one there is room for whole vectors.
                unsafe {
                    let whole = length.next_multiple_of(LANES);
                    (length..whole).for_each(|beyond| *logits.add(beyond) = f32::NEG_INFINITY);
                    let found = (self.kernels.largest_and_sum)(logits, whole);
                    room.slices.at(row * slices + slice).write(found);
                }
            }
        });
        member.meet();
    }
}

/// `to += numbers`
///
/// # Safety
/// `to` must be good for as many numbers, and nobody else may touch them meanwhile.
unsafe fn add(to: *mut f32, numbers: &[f32]) {
    // SAFETY: see above.
    let to = unsafe { std::slice::from_raw_parts_mut(to, numbers.len()) };
    to.iter_mut().zip(numbers).for_each(|(to, number)| *to += number);
}

/// The most rows of any tile.
const MOST_ROWS: usize = 8;

/// Units that a member takes at a time: few enough that a member that is held up does not hold up the
/// others for long, enough that memory is read in long runs.
fn run(total: usize, member: &Member<'_>) -> usize {
    (total / (8 * member.size())).max(1)
}

/// Does the member's share of the units `0..total`, each of which reads from `at(unit)` on: `work` is
/// given the unit and what will be read after it, which is what is at `then` after the last. For that a
/// run of units is taken before the one in hand is done.
fn share_reading(
    member: &Member<'_>,
    total: usize,
    at: impl Fn(usize) -> *const u8,
    then: *const u8,
    mut work: impl FnMut(usize, *const u8),
) {
    let mut in_hand = 0..0;
    let mut finish = |units: Range<usize>, then| {
        let end = units.end;
        units.for_each(|unit| work(unit, if unit + 1 < end { at(unit + 1) } else { then }));
    };
    member.share(total, run(total, member), |units| {
        let next = at(units.start);
        finish(std::mem::replace(&mut in_hand, units), next);
    });
    finish(in_hand, then);
}

/// Where this member will probably begin to read `weights`.
fn opening(weights: &Panels, member: &Member<'_>) -> *const u8 {
    let panels = weights.panels();
    weights.panel((member.index() * run(panels, member)).min(panels - 1)).as_ptr()
}
