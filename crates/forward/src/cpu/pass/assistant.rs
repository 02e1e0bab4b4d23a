//! Passes of an assistant: it attends to the target's cached keys and values, takes the target's
//! embedding and a hidden state as input, and returns the hidden state for the next step.

use foretoken_model::KeyHeads;

use super::{Completion, PassContext, Pending};
use crate::Features;
use crate::cpu::assistant::Assistant;
use crate::cpu::team::Member;

// Why the unsafe blocks are sound: see `pass/mod.rs`.
impl PassContext<'_> {
    /// Caches the target's keys and values, which follow its hidden states in `rows`.
    pub fn cache_target_kv(&self, member: &Member<'_>, rows: Features<'_>) {
        let caches = self.config.attention_kinds.iter().enumerate().map(|(kind, of)| {
            let layers = &self.config.layers;
            let layer = layers.iter().position(|layer| layer.mixer.attention_kind() == Some(kind));
            (&self.caches[layer.unwrap_or_default()], of.keys)
        });
        member.share(self.nodes, 1, |units| {
            for row in units {
                let mut kv = &rows.row(row)[self.config.carried()..];
                for (cache, KeyHeads { count, size, .. }) in caches.clone() {
                    let (keys, rest) = kv.split_at(count * size);
                    let (values, rest) = rest.split_at(count * size);
                    let position = self.cached + self.first + row;
                    for (kv_head, (key, value)) in keys.chunks(size).zip(values.chunks(size)).enumerate() {
                        let (key, value) = (key.as_ptr(), value.as_ptr());
                        // SAFETY: the position belongs to this unit.
                        unsafe { (self.kernels.store_kv)(cache, kv_head, position, size, key, value) };
                    }
                    kv = rest;
                }
            }
        });
        member.barrier();
    }

    /// Computes the states that enter the first layer from the target's embeddings and `states`.
    pub fn assistant_input(&self, member: &Member<'_>, assistant: &Assistant, states: Features<'_>) {
        let (input, width) = (&self.workspace.head_input, self.config.carried());
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                // SAFETY: the row belongs to this unit and has room for both.
                unsafe {
                    let out = std::slice::from_raw_parts_mut(input.row(row), 2 * width);
                    let (embedding, state) = out.split_at_mut(width);
                    let table = &self.workspace.table[row * width..][..width];
                    for (to, number) in embedding.iter_mut().zip(table) {
                        *to = number * self.config.embedding_scale;
                    }
                    state.copy_from_slice(states.row(row));
                    self.quantise(input, row, 0..2 * width, input.row(row));
                }
            }
        });
        member.barrier();
        let first = self.network.layers.first().map_or(&*self.network.output, |layer| layer.mixer.first());
        self.products(member, &[self.task(&assistant.pre_projection, input, self.hidden(0), false)], first);
    }

    /// Completes the states after the last layer and projects them to the hidden states for the
    /// next step.
    pub(super) fn output_states(&self, member: &Member<'_>, assistant: &Assistant, pending: Pending<'_>) {
        let completion = Completion { pending, tap: None };
        let norm = Some(&*self.network.output_norm);
        let normed = self.normalise(member, norm, completion, 0..self.nodes, self.normed);
        let (states, width) = (&self.workspace.states, self.config.carried());
        let task = self.task(&assistant.post_projection, normed, states.row(0), false);
        self.products(member, &[task], &self.network.output);
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                // SAFETY: the row belongs to this unit and is as wide as the features.
                unsafe {
                    let to = self.workspace.feature(row, 0);
                    std::ptr::copy_nonoverlapping(states.row(row), to, width);
                }
            }
        });
        member.barrier();
    }
}
