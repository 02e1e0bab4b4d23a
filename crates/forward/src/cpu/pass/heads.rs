//! Attention in a pass: norms, rotary embedding and caching of heads, then attention over the cache
//! and the tree.

use foretoken_model::{KeyHeads, ModelConfig, RopeTable};

use super::runs::{LayerAttention, RowHeads};
use super::{PassContext, add};
use crate::cpu::activations::BLOCK;
use crate::cpu::attention::Rotation;
use crate::cpu::attention_units::AttentionShape;
use crate::cpu::cache::KvCache;
use crate::cpu::network::{Attention, HeadNorms};
use crate::cpu::panels::Panels;
use crate::cpu::simd::LANES;
use crate::cpu::team::Member;
use crate::cpu::workspace::Inputs;

// Why the unsafe blocks are sound: see `pass/mod.rs`.
impl PassContext<'_> {
    /// Adds attention over the states in `normed` to the hidden states, or writes it to the branch
    /// if `to_branch`. `prefetch`: weights read next.
    pub fn mix_by_attention(
        &self,
        member: &Member<'_>,
        attention: &Attention,
        cache: &KvCache,
        normed: &Inputs,
        to_branch: bool,
        prefetch: &Panels,
    ) {
        self.project(member, attention, normed, &attention.output);
        if let Some(norms) = attention.head_norms.as_ref().filter(|norms| norms.together) {
            self.normalise_all_heads(member, norms);
        }
        if self.nodes > 1 {
            self.complete(member, attention, cache);
        }
        self.attend(member, attention, cache);
        self.add_product(member, &attention.output, self.mixed(attention), to_branch, prefetch);
    }

    /// Buffer for the output of a layer's attention heads.
    fn mixed(&self, attention: &Attention) -> &Inputs {
        self.workspace.mixed.of(attention.output.inputs())
    }

    /// Key heads of a layer.
    fn keys(&self, attention: &Attention) -> KeyHeads {
        self.config.attention_kinds[attention.kind].keys
    }

    /// Norms all heads of a row together, with one weight as wide as all of them.
    fn normalise_all_heads(&self, member: &Member<'_>, norms: &HeadNorms) {
        let ModelConfig { heads, norm_epsilon, .. } = *self.config;
        let head_size = self.config.head_size();
        let (queries, keys) = (heads * head_size, self.config.kv_heads() * head_size);
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                let query = self.workspace.queries.at(row * queries.next_multiple_of(LANES));
                let key = self.workspace.keys.at(row * keys.next_multiple_of(LANES));
                for (heads, weight, width) in [(query, &norms.query, queries), (key, &norms.key, keys)] {
                    // SAFETY: the row belongs to this unit and is as wide as the weight.
                    unsafe {
                        (self.kernels.rms_norm)(heads, weight.as_ptr(), heads, width, norm_epsilon as f32);
                    }
                }
            }
        });
        member.barrier();
    }

    /// Completes queries, keys and values of all rows.
    fn complete(&self, member: &Member<'_>, attention: &Attention, cache: &KvCache) {
        let KeyHeads { count: kv_heads, size: head_size, .. } = self.keys(attention);
        let width = self.config.heads * head_size;
        member.share(self.nodes * kv_heads, kv_heads, |units| {
            for (row, kv_head) in units.map(|unit| (unit / kv_heads, unit % kv_heads)) {
                let first = row * width.next_multiple_of(LANES) + kv_head * (width / kv_heads);
                // SAFETY: the heads of a row belong to this unit.
                unsafe {
                    self.complete_queries(attention, row, kv_head, self.workspace.queries.at(first));
                    if attention.key.is_some() {
                        self.complete_key(attention, cache, row, kv_head);
                    }
                }
            }
        });
        member.barrier();
    }

    /// Completes the queries of one key head's group, which are in `query`: adds biases, norms them
    /// and applies rotary embedding.
    ///
    /// # Safety
    /// `query` must have as many numbers and belong to this unit.
    unsafe fn complete_queries(&self, attention: &Attention, row: usize, kv_head: usize, query: *mut f32) {
        let KeyHeads { count: kv_heads, size: head_size, .. } = self.keys(attention);
        let group = self.config.heads / kv_heads;
        let rotation = self.rotation(attention.kind, row, true);
        // SAFETY: guaranteed by the caller.
        unsafe {
            if let Some(biases) = &attention.biases {
                let first = kv_head * group * head_size;
                add(query, &biases.query[first..first + group * head_size]);
            }
            for head in 0..group {
                let query = query.add(head * head_size);
                if let Some(norms) = attention.head_norms.as_ref().filter(|norms| !norms.together) {
                    self.normalise_head(query, &norms.query, head_size);
                }
                (self.kernels.rotate)(&rotation, query);
            }
        }
    }

    /// Completes the key and the value of a key head, and writes them into the cache.
    ///
    /// # Safety
    /// The heads of the row, and their position in the cache, must belong to this unit.
    pub unsafe fn complete_key(&self, attention: &Attention, cache: &KvCache, row: usize, kv_head: usize) {
        let KeyHeads { count: kv_heads, size: head_size, .. } = self.keys(attention);
        let at = row * (kv_heads * head_size).next_multiple_of(LANES) + kv_head * head_size;
        let (key, value) = (self.workspace.keys.at(at), self.workspace.values.at(at));
        // SAFETY: guaranteed by the caller.
        unsafe {
            if let Some(biases) = &attention.biases {
                let own = kv_head * head_size..(kv_head + 1) * head_size;
                add(key, &biases.key[own.clone()]);
                add(value, &biases.value[own]);
            }
            if attention.value.is_none() {
                std::ptr::copy_nonoverlapping(key, value, head_size);
            }
            if let Some(norm) = &attention.value_norm {
                self.normalise_head(value, norm, head_size);
            }
            if let Some(norms) = attention.head_norms.as_ref().filter(|norms| !norms.together) {
                self.normalise_head(key, &norms.key, head_size);
            }
            (self.kernels.rotate)(&self.rotation(attention.kind, row, false), key);
            let position = self.cached + self.first + row;
            (self.kernels.store_kv)(cache, kv_head, position, head_size, key, value);
        }
    }

    /// Rotary angles of a row's queries or keys. They differ where attention is scaled by position.
    pub fn rotation(&self, kind: usize, row: usize, of_queries: bool) -> Rotation {
        let rotary = &self.config.attention_kinds[kind].rotary;
        let [keys, queries] = &self.workspace.rotations[kind];
        let RopeTable { cosines, sines } =
            if of_queries && rotary.attn_temperature.is_some() { queries } else { keys };
        let half = rotary.size() / 2;
        Rotation {
            layout: rotary.layout,
            rotary_dim: rotary.size(),
            cosines: cosines[row * half..].as_ptr(),
            sines: sines[row * half..].as_ptr(),
        }
    }

    /// Norms one head in place.
    ///
    /// # Safety
    /// `head` must be valid for a head's numbers and belong to this unit.
    unsafe fn normalise_head(&self, head: *mut f32, weight: &[f32], size: usize) {
        let epsilon = self.config.norm_epsilon as f32;
        // SAFETY: guaranteed by the caller; the weight has as many numbers.
        unsafe { (self.kernels.rms_norm)(head, weight.as_ptr(), head, size, epsilon) };
    }

    /// Attends to all positions, or to those in the window. In a pass of one row each unit
    /// completes its own queries, and one of them the key, which saves a barrier.
    fn attend(&self, member: &Member<'_>, attention: &Attention, cache: &KvCache) {
        let KeyHeads { count: kv_heads, size: head_size, .. } = self.keys(attention);
        let (rows, heads) = (self.nodes, self.config.heads);
        let width = heads / kv_heads * head_size;
        let mixed = self.mixed(attention);
        let layer = LayerAttention {
            shape: AttentionShape::of(self.config, attention.kind),
            cache,
            sinks: &attention.sinks,
            window: self.config.attention_kinds[attention.kind].window.unwrap_or(usize::MAX),
            causal: attention.causal,
        };
        // Each group's output is whole quantisation blocks, so a unit can quantise its own.
        let whole_blocks = width.is_multiple_of(BLOCK) || !mixed.is_quantisable;
        let load = |RowHeads { row, group }: RowHeads, is_last: bool, to: *mut f32| {
            // SAFETY: `to` has room for the group's queries. What is completed in a pass of one row
            // belongs to this unit.
            unsafe {
                let queries = self.workspace.queries.at(row * mixed.width + group * width);
                std::ptr::copy_nonoverlapping(queries, to, width);
                if rows == 1 {
                    self.complete_queries(attention, row, group, to);
                }
                if rows == 1 && is_last && attention.key.is_some() {
                    self.complete_key(attention, cache, row, group);
                }
            }
        };
        self.attend_by_runs(member, &layer, load, |RowHeads { row, group }, join| {
            let first = group * width;
            let out = mixed.row(row).wrapping_add(first);
            join(out);
            // SAFETY: the heads of a row belong to this unit.
            unsafe {
                if attention.gate.is_some() {
                    let gate = self.workspace.gates.at(row * mixed.width + first);
                    (self.kernels.sigmoid_times)(out, gate, width);
                }
                if whole_blocks {
                    self.quantise(mixed, row, first..first + width, out);
                }
            }
        });
        if !whole_blocks {
            let width = heads * head_size;
            member.share(rows, 1, |rows| {
                // SAFETY: a row belongs to this unit.
                rows.for_each(|row| unsafe {
                    self.quantise(mixed, row, 0..width, mixed.row(row));
                });
            });
            member.barrier();
        }
    }
}
