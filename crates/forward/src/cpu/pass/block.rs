//! Draft heads that fill a block in one pass (DFlash): context from the target's states, of which
//! each layer caches keys and values only, and convolutions over the rows of a block.

use super::products::Task;
use super::{Completion, PassContext};
use crate::Features;
use crate::cpu::block_head::{BlockHead, Convolution};
use crate::cpu::network::{Attention, Mixer};
use crate::cpu::panels::Panels;
use crate::cpu::simd::LANES;
use crate::cpu::team::Member;
use crate::cpu::workspace::Inputs;

// Why the unsafe blocks are sound: see `pass/mod.rs`.
impl<'a> PassContext<'a> {
    /// Caches keys and values of every layer for rows of the target's `states`, computed from
    /// `c = rms(fuse * states)`.
    pub fn cache_states(&self, member: &Member<'_>, head: &BlockHead, states: Features<'_>) {
        let attention = |index: usize| {
            let layer = self.network.layers.get(index)?;
            match &layer.mixer {
                Mixer::Attention(attention) => Some(&**attention),
                _ => None,
            }
        };
        let key_of = |index: usize| attention(index).and_then(|attention| attention.key.as_ref());
        let first = key_of(0).unwrap_or(&head.fuse);
        self.fuse(member, &head.fuse, &[], states, first);
        let completion = Completion::default();
        let normed = self.normalise(member, Some(&head.fused_norm), completion, 0..self.nodes, self.normed);
        for (index, cache) in self.caches.iter().enumerate() {
            let Some(Attention { key: Some(key), value: Some(value), .. }) = attention(index) else { break };
            let (keys, values) = (&self.workspace.keys, &self.workspace.values);
            let tasks =
                [self.task(key, normed, keys.at(0), false), self.task(value, normed, values.at(0), false)];
            self.products(member, &tasks, key_of(index + 1).unwrap_or(first));
            let kv_heads = self.config.kv_heads();
            member.share(self.nodes * kv_heads, kv_heads, |units| {
                for (row, kv_head) in units.map(|unit| (unit / kv_heads, unit % kv_heads)) {
                    let Some(attention) = attention(index) else { return };
                    // SAFETY: a row's key head belongs to this unit.
                    unsafe { self.complete_key(attention, cache, row, kv_head) };
                }
            });
            member.barrier();
        }
    }

    /// Convolves the rows of `normed` before attention or the feed-forward network. Also computes
    /// the kernels that [`Self::convolve_branch`] uses behind it.
    pub fn convolve_inputs(
        &self,
        member: &Member<'_>,
        convolution: &Convolution,
        normed: &Inputs,
        prefetch: &Panels,
    ) -> &'a Inputs {
        let task = self.task(&convolution.projection, normed, self.workspace.dynamic.at(0), false);
        self.products(member, &[task], prefetch);
        let to = &self.workspace.convolved;
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                let out = to.row(row);
                // SAFETY: the row belongs to this unit, and the others are only read.
                unsafe {
                    std::slice::from_raw_parts_mut(out, self.config.hidden).fill(0.0);
                    self.convolve(convolution, 0, row, |from| normed.row(from), out);
                    self.quantise(to, row, 0..self.config.hidden, out);
                }
            }
        });
        member.barrier();
        to
    }

    /// Convolves the rows of the branch and adds them to the states.
    pub fn convolve_branch(&self, member: &Member<'_>, convolution: &Convolution) {
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                // SAFETY: the row's state belongs to this unit, and the branches are only read.
                unsafe { self.convolve(convolution, 1, row, |from| self.branch(from), self.hidden(row)) };
            }
        });
        member.barrier();
    }

    /// Computes `to += sum over taps t of (base[t] + dynamic[t]) * from(row - t)`; rows before the
    /// first are 0.
    ///
    /// # Safety
    /// `to` must belong to this unit, and the rows that are read must not be written meanwhile.
    unsafe fn convolve(
        &self,
        convolution: &Convolution,
        side: usize,
        row: usize,
        from: impl Fn(usize) -> *mut f32,
        to: *mut f32,
    ) {
        let (hidden, taps) = (self.config.hidden, convolution.sizes.taps);
        let groups = hidden / convolution.sizes.group;
        let dynamic = self.workspace.dynamic.at(row * convolution.projection.rows().next_multiple_of(LANES));
        // SAFETY: guaranteed by the caller; a row has `hidden` numbers, and those computed of it
        // for both sides.
        let (to, dynamic) = unsafe {
            (
                std::slice::from_raw_parts_mut(to, hidden),
                std::slice::from_raw_parts(dynamic, 2 * taps * groups),
            )
        };
        for tap in 0..taps.min(row + 1) {
            let at = side * taps + tap;
            let (base, dynamic) = (&convolution.base[at * hidden..], &dynamic[at * groups..]);
            // SAFETY: guaranteed by the caller.
            let from = unsafe { std::slice::from_raw_parts(from(row - tap), hidden) };
            for number in 0..hidden {
                to[number] += (base[number] + dynamic[number / convolution.sizes.group]) * from[number];
            }
        }
    }

    /// Loads rows for [`Self::multiply_correction`]: `count` of them, one after the other.
    pub fn load_correction(&self, rows: &[f32], count: usize) {
        let width = rows.len() / count;
        let inputs = self.workspace.correction_inputs.of(width);
        for (at, row) in rows.chunks_exact(width).enumerate() {
            // SAFETY: there is room for the rows, and no pass is under way.
            unsafe {
                std::ptr::copy_nonoverlapping(row.as_ptr(), inputs.row(at), width);
                self.quantise(inputs, at, 0..width, inputs.row(at));
            }
        }
    }

    /// Computes the product of a correction's matrix with the `count` loaded rows.
    pub fn multiply_correction(&self, member: &Member<'_>, weights: &Panels, count: usize) {
        let inputs = self.workspace.correction_inputs.of(weights.inputs());
        let task = self.task(weights, inputs, self.workspace.correction_output.at(0), false);
        self.products(member, &[Task { rows: 0..count, ..task }], weights);
    }
}
