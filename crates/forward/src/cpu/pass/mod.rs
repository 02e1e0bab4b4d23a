//! One pass of a model: which kernel runs on which rows, phase by phase. This file has the hidden
//! states and their norms.
//!
//! - `head_input`: inputs of EAGLE and MTP heads
//! - `block`: draft heads that fill a block in one pass (DFlash)
//! - `assistant`, `clusters`: Gemma 4's assistant, which attends to its target's cache
//! - `products`: matrix products
//! - `heads`, `latent`: attention, and multi-head latent attention (MLA); `runs` divides their work
//! - `experts`: routing and mixture of experts
//! - `short_conv`, `delta`, `mamba`: recurrent layers, with `conv_inputs` and `state_matrices`
//! - `per_layer`: per-layer inputs
//! - `score`: logits
//!
//! All members of a team run a pass together. Its memory is allocated before it begins, and members
//! write to parts that do not overlap: a unit of work is a row, a row's heads, or a panel of output
//! rows.
//!
//! A barrier stops all members, and a layer of a small model is a tenth of a millisecond of
//! reading. So a single row has five barriers a layer: after queries, keys and values, after
//! attention, after its output, after gate and up, and after down. [`copies_of_norms`] saves those
//! of the norms. A single row's heads are rotated by the member that attends with them.

mod assistant;
mod block;
mod clusters;
mod conv_inputs;
mod delta;
mod experts;
mod head_input;
mod heads;
mod latent;
mod mamba;
mod per_layer;
mod products;
mod runs;
mod score;
mod short_conv;
mod state_matrices;

use std::ops::Range;

use foretoken_model::ModelConfig;

use super::activations::{BLOCK, TileRow};
use super::block_head::Convolution;
use super::cache::KvCache;
use super::feed_forward::FeedForward;
use super::head::Head;
use super::kernels::Kernels;
use super::memory::Memory;
use super::network::{Mixer, Network};
use super::simd::LANES;
use super::team::Member;
use super::workspace::{Inputs, Workspace};
use crate::tree::TokenTree;
use crate::{HeadInput, MediaRows, Taps};

/// Numbers that one member can norm and round in the time that a barrier takes.
const BARRIER_COST: usize = 1 << 12;

/// Copies of the normed states that a pass needs: one that the members share, or one for each
/// member. With copies of their own the members compute every norm redundantly and need no barrier.
/// That pays where `rows` are few.
pub fn copies_of_norms(config: &ModelConfig, rows: usize, members: usize) -> usize {
    let saved = (rows - rows.div_ceil(members)) * config.hidden;
    // Norms that also write to something shared, such as states or convolution inputs, run once.
    let convolved = config.block().is_some_and(|block| block.convolution.is_some());
    let scaled = config.layers.iter().any(|layer| layer.output_scale);
    let completed = config.has_post_norms() || config.attention_parts().output_bias || scaled;
    let shared = completed || convolved || saved > BARRIER_COST;
    if shared { 1 } else { members }
}

/// A pass in progress, shared by all members of the team.
pub struct PassContext<'a> {
    pub config: &'a ModelConfig,
    pub network: &'a Network,
    pub kernels: &'static Kernels,
    pub caches: &'a [KvCache],
    pub memories: &'a [Memory],
    pub workspace: &'a Workspace,
    /// Normed states: one shared buffer or one for each member, see [`copies_of_norms`].
    pub normed: &'a [Inputs],
    pub tree: &'a TokenTree,
    /// Number of cached positions before the tree.
    pub cached: usize,
    /// First node that this pass runs, in row 0 of the workspace.
    pub first: usize,
    /// Nodes that this pass runs.
    pub nodes: usize,
    /// Rows that get logits.
    pub rows: Range<usize>,
    /// Tokens that get logits: ids below this.
    pub vocabulary: usize,
    /// Hidden states to return for all rows.
    pub taps: Option<&'a Taps>,
    /// Inputs of a draft head for all rows.
    pub head_input: Option<HeadInput<'a>>,
    /// Embeddings of pictures among the tree's nodes.
    pub media: &'a MediaRows,
}

/// Operations on the hidden states that the next norm carries out first.
#[derive(Clone, Copy)]
struct Pending<'a> {
    /// Weight of a post norm: the normed branch is added to the state.
    norm: Option<&'a [f32]>,
    /// Output bias of the branch that was added last.
    bias: Option<&'a [f32]>,
    /// Factor of the state after both.
    scale: f32,
}

impl Default for Pending<'_> {
    fn default() -> Self {
        Self { norm: None, bias: None, scale: 1.0 }
    }
}

/// Work on a state that precedes its norm.
#[derive(Clone, Copy, Default)]
struct Completion<'a> {
    pending: Pending<'a>,
    /// Index among a row's features where the completed state is stored, if it is tapped.
    tap: Option<usize>,
}

// Why the unsafe blocks of a pass are sound: the processor has the kernels' instructions
// (`CpuModel::with`), `Workspace::prepare` made room for every row, and units of work do not
// overlap.
impl PassContext<'_> {
    /// Runs all phases on one member of the team.
    pub fn run(&self, member: &Member<'_>) {
        let mut eagle3 = None;
        match (&self.network.head, self.head_input) {
            (Some(Head::Block(head)), Some(input)) => {
                return self.cache_states(member, head, input.features());
            }
            (Some(Head::Assistant(_)), Some(HeadInput::Target(rows))) => {
                return self.cache_target_kv(member, rows);
            }
            (Some(Head::Assistant(assistant)), Some(HeadInput::Own(states))) => {
                self.assistant_input(member, assistant, states);
            }
            (Some(Head::Assistant(_)), None) => {}
            (Some(Head::Mtp(mtp)), Some(input)) => self.mtp_input(member, mtp, input.features()),
            (Some(Head::Eagle3(head)), Some(input)) => eagle3 = Some((head, input)),
            (Some(Head::Eagle3(_) | Head::Mtp(_) | Head::Block(_)) | None, _) => self.embed(member),
        }
        if let Some((per_layer, width)) = self.network.per_layer.as_ref().zip(self.config.per_layer_input()) {
            let first =
                self.network.layers.first().map_or(&*self.network.output, |layer| layer.mixer.first());
            self.compute_per_layer_inputs(member, per_layer, width, first);
        }
        let mut pending = Pending::default();
        for (index, layer) in self.network.layers.iter().enumerate() {
            let cache = &self.caches[self.config.cache_of(index)];
            let next = self.network.layers.get(index + 1);
            let next = next.map_or(&*self.network.output, |next| next.mixer.first());
            let completion = Completion { pending, tap: self.tap_of(index) };
            let normed = match eagle3 {
                Some((head, head_input)) => self.eagle_input(
                    member,
                    head,
                    head_input,
                    layer.mixer_norm.as_deref().unwrap_or_default(),
                ),
                None => self.normalise(
                    member,
                    layer.mixer_norm.as_deref(),
                    completion,
                    0..self.nodes,
                    self.normed,
                ),
            };
            pending = Pending {
                norm: layer.mixer_post_norm.as_deref(),
                bias: layer.mixer.output_bias(),
                scale: 1.0,
            };
            let [mixer_convolution, feed_convolution] =
                layer.convolutions.as_ref().map_or([None, None], |[a, b]| [Some(a), Some(b)]);
            let convolve = |convolution: Option<&Convolution>, normed, prefetch| {
                convolution
                    .map_or(normed, |convolution| self.convolve_inputs(member, convolution, normed, prefetch))
            };
            let to_branch = pending.norm.is_some() || mixer_convolution.is_some();
            let normed = convolve(mixer_convolution, normed, layer.mixer.first());
            let (memory, prefetch) = (&self.memories[index], layer.feed_forward.first());
            match &layer.mixer {
                Mixer::Attention(attention) => {
                    self.mix_by_attention(member, attention, cache, normed, to_branch, prefetch);
                }
                Mixer::Latent(latent) => {
                    self.mix_by_latent_attention(member, latent, cache, normed, to_branch, prefetch)
                }
                Mixer::ShortConv(conv) => {
                    self.mix_by_convolution(member, conv, memory, normed, to_branch, prefetch);
                }
                Mixer::Delta(delta) => self.mix_by_delta(member, delta, memory, normed, to_branch, prefetch),
                Mixer::Mamba(mamba) => self.mix_by_mamba(member, mamba, memory, normed, to_branch, prefetch),
            }
            mixer_convolution.inspect(|convolution| self.convolve_branch(member, convolution));
            let completion = Completion { pending, tap: None };
            let norm = layer.feed_forward_norm.as_deref();
            let normed = self.normalise(member, norm, completion, 0..self.nodes, self.normed);
            pending =
                Pending { norm: layer.feed_forward_post_norm.as_deref(), bias: None, scale: layer.scale };
            let to_branch = pending.norm.is_some() || feed_convolution.is_some();
            let normed = convolve(feed_convolution, normed, layer.feed_forward.first());
            let prefetch = layer.per_layer_input.as_ref().map_or(next, |input| &input.gate);
            match &layer.feed_forward {
                FeedForward::Dense(dense) => self.feed_forward(member, dense, normed, to_branch, prefetch),
                FeedForward::Experts(experts) => {
                    self.route(member, experts, normed, normed, to_branch, prefetch)
                }
                FeedForward::DenseAndExperts(both) => {
                    self.run_dense_and_experts(member, both, normed, prefetch)
                }
                FeedForward::WithSharedExpert(shared) => {
                    self.run_with_shared_expert(member, shared, normed, prefetch)
                }
            }
            feed_convolution.inspect(|convolution| self.convolve_branch(member, convolution));
            if let Some(input) = &layer.per_layer_input {
                pending = self.apply_per_layer_input(member, input, index, pending, next);
            }
            if self.media.adds(index) {
                self.add_media(member, index);
            }
        }
        if self.taps.is_some_and(|taps| !taps.is_early(self.config.depth())) {
            match self.network.head.as_ref().and_then(Head::assistant) {
                Some(assistant) => self.output_states(member, assistant, pending),
                None => self.write_features(member, pending),
            }
            pending = Pending::default();
        }
        if !self.rows.is_empty() {
            self.score(member, pending);
        }
    }

    /// Numbers from one row of the hidden states to the next.
    fn width(&self) -> usize {
        self.config.hidden.next_multiple_of(LANES)
    }

    /// A row's hidden state.
    fn hidden(&self, row: usize) -> *mut f32 {
        self.workspace.hidden.at(row * self.width())
    }

    /// A row's branch: the output of a mixer or feed-forward network.
    fn branch(&self, row: usize) -> *mut f32 {
        self.workspace.branch.at(row * self.width())
    }

    /// Writes the scaled, and in some families normed, embeddings of all rows to the hidden states.
    fn embed(&self, member: &Member<'_>) {
        let Some(embedding) = &self.network.embedding else { return };
        let (scale, epsilon) = (self.config.embedding_scale, self.config.norm_epsilon as f32);
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                // SAFETY: the row belongs to this unit.
                let state = unsafe { std::slice::from_raw_parts_mut(self.hidden(row), self.width()) };
                let (state, rest) = state.split_at_mut(self.config.hidden);
                if !self.copy_media(row, state) {
                    embedding.unpack_row(self.tree.token(self.first + row) as usize, state);
                    if scale != 1.0 {
                        state.iter_mut().for_each(|number| *number *= scale);
                    }
                }
                rest.fill(0.0);
                if let Some(norm) = &self.network.embedding_norm {
                    let (state, length) = (state.as_mut_ptr(), state.len());
                    // SAFETY: as above; the norm is as long.
                    unsafe { (self.kernels.rms_norm)(state, norm.as_ptr(), state, length, epsilon) };
                }
            }
        });
        member.barrier();
    }

    /// Copies a row's embedding of a picture to `state`; returns false if the row is a token's.
    pub(super) fn copy_media(&self, row: usize, state: &mut [f32]) -> bool {
        let Some(embedding) = self.media.row(self.first + row) else { return false };
        state.iter_mut().zip(embedding).for_each(|(number, &half)| *number = half.to_f32());
        true
    }

    /// Adds what embeddings of pictures have for the states after layer `index` (DeepStack).
    fn add_media(&self, member: &Member<'_>, index: usize) {
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                let Some(added) = self.media.added(self.first + row, index) else { continue };
                // SAFETY: the row belongs to this unit.
                let state = unsafe { std::slice::from_raw_parts_mut(self.hidden(row), self.config.hidden) };
                state.iter_mut().zip(added).for_each(|(number, half)| *number += half.to_f32());
            }
        });
        member.barrier();
    }

    /// Returns the RMS norm of the states of `rows`, or the states without a weight, as rows from 0
    /// on. Completes the states by [`Self::complete_state`] first. Writes to the shared buffer in
    /// `to`, or to this member's.
    fn normalise<'a>(
        &self,
        member: &Member<'_>,
        weight: Option<&[f32]>,
        completion: Completion<'_>,
        rows: Range<usize>,
        to: &'a [Inputs],
    ) -> &'a Inputs {
        let (hidden, epsilon) = (self.config.hidden, self.config.norm_epsilon as f32);
        let first = rows.start;
        let normalise = |row: usize, completion, to: &Inputs| {
            let out = to.row(row);
            // SAFETY: see above; all are valid for `hidden` numbers.
            unsafe {
                let state = self.complete_state(first + row, completion);
                match weight {
                    Some(weight) => (self.kernels.rms_norm)(state, weight.as_ptr(), out, hidden, epsilon),
                    None => std::ptr::copy_nonoverlapping(state, out, hidden),
                }
                self.quantise(to, row, 0..hidden, out);
            }
        };
        if let [shared] = to {
            member.share(rows.len(), 1, |units| units.for_each(|row| normalise(row, completion, shared)));
            member.barrier();
            return shared;
        }
        // All members norm every row, and each copies its share of the tapped states.
        let own = &to[member.index()];
        let tapped = member.portion(rows.len(), member.index());
        member.on_every_member(|| {
            for row in 0..rows.len() {
                let tap = completion.tap.filter(|_| tapped.contains(&row));
                normalise(row, Completion { tap, ..completion }, own);
            }
        });
        own
    }

    /// Completes a row's state by what is pending, copies it to the features if it is tapped, and
    /// returns it.
    ///
    /// # Safety
    /// The row must belong to this unit, if something is pending or the state is tapped.
    unsafe fn complete_state(&self, row: usize, Completion { pending, tap }: Completion<'_>) -> *mut f32 {
        let (hidden, epsilon) = (self.config.hidden, self.config.post_norm_epsilon as f32);
        let state = self.hidden(row);
        // SAFETY: guaranteed by the caller; all are valid for `hidden` numbers.
        unsafe {
            if let Some(bias) = pending.bias {
                add(state, &bias[..hidden]);
            }
            if let Some(weight) = pending.norm {
                let branch = self.branch(row);
                (self.kernels.rms_norm)(branch, weight.as_ptr(), branch, hidden, epsilon);
                add(state, std::slice::from_raw_parts(branch, hidden));
            }
            if pending.scale != 1.0 {
                let state = std::slice::from_raw_parts_mut(state, hidden);
                state.iter_mut().for_each(|number| *number *= pending.scale);
            }
            if let Some(tap) = tap {
                let feature =
                    std::slice::from_raw_parts_mut(self.workspace.feature(row, tap * hidden), hidden);
                feature.copy_from_slice(std::slice::from_raw_parts(state, hidden));
                if self.config.state_scale != 1.0 {
                    feature.iter_mut().for_each(|number| *number *= self.config.state_scale);
                }
            }
        }
        state
    }

    /// Index of the state that enters `layer` among the tapped states.
    fn tap_of(&self, layer: usize) -> Option<usize> {
        self.taps?.entering.iter().position(|&entering| entering == layer)
    }

    /// Completes the states after the last layer and writes the features of all rows: the last
    /// state, its norm, and cached keys and values.
    fn write_features(&self, member: &Member<'_>, pending: Pending<'_>) {
        let (hidden, epsilon) = (self.config.hidden, self.config.norm_epsilon as f32);
        let completion = Completion { pending, tap: self.tap_of(self.config.depth()) };
        let last = self.taps.filter(|taps| taps.last).map(|taps| taps.entering.len() * hidden);
        let cached = self.taps.map_or(&[][..], |taps| &taps.cached);
        let states = self.taps.map_or(0, |taps| taps.states_width(self.config));
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                // SAFETY: the row belongs to this unit.
                unsafe {
                    let state = self.complete_state(row, completion);
                    if let Some(last) = last {
                        let (norm, out) =
                            (self.network.output_norm.as_ptr(), self.workspace.feature(row, last));
                        (self.kernels.rms_norm)(state, norm, out, hidden, epsilon);
                    }
                    let mut at = states;
                    for &layer in cached {
                        let Some(keys) = self.config.cached_keys(layer) else { continue };
                        let count = keys.cached();
                        let out = std::slice::from_raw_parts_mut(self.workspace.feature(row, at), count);
                        self.caches[layer].load(self.cached + self.first + row, out);
                        at += count;
                    }
                }
            }
        });
        member.barrier();
    }

    /// Quantises numbers `range` of a row to 8 bits, if the row is whole blocks.
    ///
    /// # Safety
    /// If the row is whole blocks, the range must be, too, and belong to this unit.
    unsafe fn quantise(&self, inputs: &Inputs, row: usize, range: Range<usize>, from: *const f32) {
        if inputs.is_quantisable {
            // SAFETY: guaranteed by the caller.
            unsafe { self.quantise_at(inputs, inputs.quantised.tile_row(row), range, from) };
        }
    }

    /// Quantises as [`Self::quantise`] does, for a row given by its position in a tile.
    ///
    /// # Safety
    /// As [`Self::quantise`].
    unsafe fn quantise_at(&self, inputs: &Inputs, tile_row: TileRow, range: Range<usize>, from: *const f32) {
        if inputs.is_quantisable {
            let (block, count) = (range.start / BLOCK, range.len() / BLOCK);
            // SAFETY: guaranteed by the caller, whole blocks of the row that belong to this unit.
            unsafe { (self.kernels.quantise)(&inputs.quantised, tile_row, block, count, from) };
        }
    }
}

/// `to += numbers`
///
/// # Safety
/// `to` must be valid for as many numbers, and nothing else may access them meanwhile.
unsafe fn add(to: *mut f32, numbers: &[f32]) {
    // SAFETY: see above.
    let to = unsafe { std::slice::from_raw_parts_mut(to, numbers.len()) };
    to.iter_mut().zip(numbers).for_each(|(to, number)| *to += number);
}
