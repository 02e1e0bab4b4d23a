//! Mamba-2 (Dao and Gu 2024), row by row. Each head's state matrix decays by a factor, the outer
//! product of key and value is added, and a query reads the result.

use std::ops::Range;

use foretoken_model::Recurrence;

use super::PassContext;
use super::conv_inputs::{Channels, ConvInputs};
use super::state_matrices::HeadBlock;
use crate::cpu::memory::Memory;
use crate::cpu::panels::Panels;
use crate::cpu::recurrent::Mamba;
use crate::cpu::simd::LANES;
use crate::cpu::step::{COLUMNS, Read, ReadOut};
use crate::cpu::team::Member;
use crate::cpu::workspace::Inputs;

// Why the unsafe blocks are sound: see `pass/mod.rs`.
impl PassContext<'_> {
    /// Adds the layer's mixer over `normed` to the states, as [`Self::add_product`] does.
    pub fn mix_by_mamba(
        &self,
        member: &Member<'_>,
        mamba: &Mamba,
        memory: &Memory,
        normed: &Inputs,
        to_branch: bool,
        prefetch: &Panels,
    ) {
        let Some(recurrence) = self.config.recurrence() else { return };
        let (scratch, heads) = (&self.workspace.recurrent, &recurrence.heads);
        let tasks = [
            self.task(&mamba.inputs, normed, scratch.inputs.at(0), false),
            self.task(&mamba.gate, normed, scratch.mixed.row(0), false),
            self.task(&mamba.dt, normed, scratch.rates[1].at(0), false),
        ];
        self.products(member, &tasks, &mamba.output);
        member.share(2 * heads.keys + heads.values, 1, |units| {
            // SAFETY: a head of keys, queries or values belongs to this unit.
            units.for_each(|head| unsafe { self.convolve_mamba_head(mamba, memory, recurrence, head) });
        });
        member.barrier();
        member.share(heads.values, 1, |units| {
            // SAFETY: a value head belongs to this unit.
            units.for_each(|head| unsafe { self.read_head(member, memory, mamba, recurrence, head) });
        });
        member.barrier();
        member.share(self.nodes * heads.keys, 1, |units| {
            // SAFETY: a row's heads of one key belong to this unit.
            units.for_each(|unit| unsafe { self.gate_group(mamba, recurrence, unit) });
        });
        member.barrier();
        self.add_product(member, &mamba.output, &scratch.mixed, to_branch, prefetch);
    }

    /// Convolves the keys, queries or values of a head. For a value head also computes decay and
    /// the scaled value that is added to its matrix. Heads of keys come first, then queries, then
    /// values.
    ///
    /// # Safety
    /// The head must belong to this unit.
    unsafe fn convolve_mamba_head(
        &self,
        mamba: &Mamba,
        memory: &Memory,
        recurrence: &Recurrence,
        head: usize,
    ) {
        let (kernel, heads) = (&mamba.kernel, &recurrence.heads);
        let inputs = ConvInputs { first: self.workspace.recurrent.inputs.at(0), stride: kernel.stride };
        let record = |row: usize| self.record(memory, self.first + row);
        let Some(value) = head.checked_sub(2 * heads.keys) else {
            let query = head.checked_sub(heads.keys);
            let channel = query.map_or(recurrence.keys() + head * heads.key_size, |query| {
                recurrence.queries() + query * heads.key_size
            });
            let out = |row: usize| match query {
                Some(_) => self.convolved(row, channel),
                None => record(row).key(head),
            };
            let channels = Channels { first: channel, count: heads.key_size };
            // SAFETY: guaranteed by the caller; a record has room for a key.
            unsafe { self.convolve_channels(kernel, memory, inputs, channels, true, out) };
            return;
        };
        let channel = recurrence.values() + value * heads.value_size;
        let out = |row: usize| self.convolved(row, channel);
        let channels = Channels { first: channel, count: heads.value_size };
        // SAFETY: guaranteed by the caller.
        unsafe { self.convolve_channels(kernel, memory, inputs, channels, true, out) };
        for row in 0..self.nodes {
            let rate =
                self.workspace.recurrent.rates[1].at(row * heads.values.next_multiple_of(LANES) + value);
            // SAFETY: guaranteed by the caller; the product that gave the step is over.
            unsafe {
                let step = (self.kernels.softplus)(*rate + mamba.bias[value]);
                let step = step.clamp(recurrence.steps[0], recurrence.steps[1]);
                *record(row).decay(value) = (self.kernels.exp)(mamba.decay[value] * step);
                let added =
                    std::slice::from_raw_parts_mut(record(row).correction(value, 0), heads.value_size);
                let values = std::slice::from_raw_parts(out(row), heads.value_size);
                added.iter_mut().zip(values).for_each(|(added, value)| *added = step * value);
            }
        }
    }

    /// Takes a head's state matrix through all rows and stores what they read.
    ///
    /// # Safety
    /// The head must belong to this unit.
    unsafe fn read_head(
        &self,
        member: &Member<'_>,
        memory: &Memory,
        mamba: &Mamba,
        recurrence: &Recurrence,
        head: usize,
    ) {
        let (heads, skip) = (&recurrence.heads, mamba.d[head]);
        for block in 0..heads.value_size / COLUMNS {
            let at = head * heads.value_size + block * COLUMNS;
            let write = |node: usize, read: &Read| {
                let (row, record) = (node - self.first, self.record(memory, node));
                let (added, values) =
                    (record.correction(head, block), self.convolved(row, recurrence.values() + at));
                let out = self.workspace.recurrent.read.at(row * heads.value_width() + at);
                // SAFETY: guaranteed by the caller; what is read was written before this phase
                // began.
                unsafe {
                    let decay = *record.decay(head);
                    (self.kernels.read_out)(&ReadOut { read, decay, added, skip, values, out });
                }
            };
            let block = HeadBlock { head, block };
            // SAFETY: guaranteed by the caller.
            unsafe { self.walk_block(member, memory, recurrence, block, write) };
        }
    }

    /// Gates and norms what the heads of one key read in a row.
    ///
    /// # Safety
    /// These heads must belong to this unit.
    unsafe fn gate_group(&self, mamba: &Mamba, recurrence: &Recurrence, unit: usize) {
        let (scratch, heads) = (&self.workspace.recurrent, &recurrence.heads);
        let (row, group) = (unit / heads.keys, unit % heads.keys);
        let size = heads.value_width() / heads.keys;
        let own: Range<usize> = group * size..(group + 1) * size;
        let read = scratch.read.at(row * heads.value_width() + own.start);
        let mixed = scratch.mixed.row(row).wrapping_add(own.start);
        let epsilon = self.config.inner_epsilon() as f32;
        // SAFETY: guaranteed by the caller; these are whole vectors.
        unsafe {
            (self.kernels.silu_times)(mixed, read, size);
            (self.kernels.rms_norm)(mixed, mamba.norm[own.start..].as_ptr(), mixed, size, epsilon);
            self.quantise(&scratch.mixed, row, own, mixed);
        }
    }
}
