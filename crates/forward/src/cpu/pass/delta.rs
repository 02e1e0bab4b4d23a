//! Gated DeltaNet (Yang et al. 2025), the mixer of linear attention layers: each row corrects the
//! state matrix of every value head, and its query reads the result.
//!
//! A row with decay g, key k and value v changes the matrix S to `g S + k d^T` with the correction
//! `d = beta (v - g S^T k)`. Its query q then reads `g S^T q + (k q) d`. So a row reads the old S
//! once for both and records g, k and d. Its change to S is applied when the next row reads.

use foretoken_model::{Heads, Recurrence};

use super::PassContext;
use super::conv_inputs::{Channels, ConvInputs};
use super::state_matrices::HeadBlock;
use crate::cpu::kernels::Kernels;
use crate::cpu::memory::Memory;
use crate::cpu::panels::Panels;
use crate::cpu::recurrent::{Delta, QK_EPSILON};
use crate::cpu::simd::LANES;
use crate::cpu::step::{COLUMNS, Correction, Read};
use crate::cpu::team::Member;
use crate::cpu::workspace::Inputs;

// Why the unsafe blocks are sound: see `pass/mod.rs`.
impl PassContext<'_> {
    /// Adds the layer's mixer over `normed` to the states, as [`Self::add_product`] does.
    pub fn mix_by_delta(
        &self,
        member: &Member<'_>,
        delta: &Delta,
        memory: &Memory,
        normed: &Inputs,
        to_branch: bool,
        prefetch: &Panels,
    ) {
        let Some(recurrence) = self.config.recurrence() else { return };
        let (scratch, heads) = (&self.workspace.recurrent, &recurrence.heads);
        let [betas, alphas] = &scratch.rates;
        let tasks = [
            self.task(&delta.inputs, normed, scratch.inputs.at(0), false),
            self.task(&delta.gate, normed, scratch.mixed.row(0), false),
            self.task(&delta.beta, normed, betas.at(0), false),
            self.task(&delta.alpha, normed, alphas.at(0), false),
        ];
        self.products(member, &tasks, &delta.output);
        member.share(2 * heads.keys + heads.values, 1, |units| {
            // SAFETY: a head of queries, keys or values belongs to this unit.
            units.for_each(|head| unsafe { self.convolve_delta_head(delta, memory, heads, head) });
        });
        member.barrier();
        member.share(heads.values, 1, |units| {
            // SAFETY: a value head belongs to this unit.
            units.for_each(|head| unsafe { self.mix_head(member, memory, delta, recurrence, head) });
        });
        member.barrier();
        self.add_product(member, &delta.output, &scratch.mixed, to_branch, prefetch);
    }

    /// Convolves the queries, keys or values of a head, and norms queries and keys. For a value
    /// head also computes decay and beta. Heads of queries come first, then keys, then values.
    ///
    /// # Safety
    /// The head must belong to this unit.
    unsafe fn convolve_delta_head(&self, delta: &Delta, memory: &Memory, heads: &Heads, head: usize) {
        let scratch = &self.workspace.recurrent;
        let value = head.checked_sub(2 * heads.keys);
        let (channel, size) = value.map_or((head * heads.key_size, heads.key_size), |value| {
            (2 * heads.key_width() + value * heads.value_size, heads.value_size)
        });
        let stride = delta.kernel.stride;
        let inputs = ConvInputs { first: scratch.inputs.at(0), stride };
        let out = |row: usize| scratch.convolved.at(row * stride + channel);
        let channels = Channels { first: channel, count: size };
        // SAFETY: guaranteed by the caller.
        unsafe { self.convolve_channels(&delta.kernel, memory, inputs, channels, true, out) };
        for row in 0..self.nodes {
            let record = self.record(memory, self.first + row);
            let Some(value) = value else {
                let key = head.checked_sub(heads.keys);
                let norm = &delta.qk_norms[usize::from(key.is_some())];
                let to = key.map_or(out(row), |key| record.key(key));
                // SAFETY: guaranteed by the caller; all are a head's numbers.
                unsafe {
                    (self.kernels.rms_norm)(out(row), norm.as_ptr(), to, size, QK_EPSILON / size as f32);
                }
                continue;
            };
            let rate = row * heads.values.next_multiple_of(LANES) + value;
            let [beta, alpha] = scratch.rates.each_ref().map(|rates| rates.at(rate));
            // SAFETY: guaranteed by the caller.
            unsafe {
                let Kernels { sigmoid, softplus, exp, .. } = self.kernels;
                *beta = sigmoid(*beta);
                *record.decay(value) = exp(delta.decay[value] * softplus(*alpha + delta.bias[value]));
            }
        }
    }

    /// Takes a head's state matrix through all rows and gates what they read.
    ///
    /// # Safety
    /// The head must belong to this unit.
    unsafe fn mix_head(
        &self,
        member: &Member<'_>,
        memory: &Memory,
        delta: &Delta,
        recurrence: &Recurrence,
        head: usize,
    ) {
        let (scratch, heads) = (&self.workspace.recurrent, &recurrence.heads);
        for block in (0..heads.value_size / COLUMNS).map(|block| HeadBlock { head, block }) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                self.walk_block(member, memory, recurrence, block, |node, read| {
                    self.correct(memory, recurrence, block, node, read);
                });
            }
        }
        let (size, epsilon) = (heads.value_size, self.config.norm_epsilon as f32);
        let own = head * size..(head + 1) * size;
        for row in 0..self.nodes {
            let read = scratch.read.at(row * heads.value_width() + own.start);
            let mixed = scratch.mixed.row(row).wrapping_add(own.start);
            // SAFETY: guaranteed by the caller; all are a head's numbers, which are whole vectors.
            unsafe {
                (self.kernels.rms_norm)(read, delta.norm.as_ptr(), read, size, epsilon);
                (self.kernels.silu_times)(mixed, read, size);
                self.quantise(&scratch.mixed, row, own.clone(), mixed);
            }
        }
    }

    /// Computes a row's correction in a block of a head's values, and what its query reads.
    ///
    /// # Safety
    /// The head must belong to this unit.
    unsafe fn correct(
        &self,
        memory: &Memory,
        recurrence: &Recurrence,
        HeadBlock { head, block }: HeadBlock,
        node: usize,
        read: &Read,
    ) {
        let (scratch, heads, row) = (&self.workspace.recurrent, &recurrence.heads, node - self.first);
        let record = self.record(memory, node);
        let at = head * heads.value_size + block * COLUMNS;
        // SAFETY: guaranteed by the caller; what is read was written before this phase began.
        unsafe {
            let rate = row * heads.values.next_multiple_of(LANES) + head;
            (self.kernels.correct)(&Correction {
                read,
                decay: *record.decay(head),
                beta: *scratch.rates[0].at(rate),
                values: self.convolved(row, recurrence.values() + at),
                correction: record.correction(head, block),
                out: scratch.read.at(row * heads.value_width() + at),
            });
        }
    }
}
