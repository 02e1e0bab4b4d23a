//! Gated short convolution in place of attention (LFM2).

use super::PassContext;
use super::conv_inputs::{Channels, ConvInputs};
use crate::cpu::activations::BLOCK;
use crate::cpu::memory::Memory;
use crate::cpu::panels::Panels;
use crate::cpu::recurrent::ShortConv;
use crate::cpu::team::Member;
use crate::cpu::workspace::Inputs;

// Why the unsafe blocks are sound: see `pass/mod.rs`.
impl PassContext<'_> {
    /// Computes `output * (c * convolved(b * v))` with `[b, c, v] = projection * normed`, added as
    /// [`Self::add_product`] does.
    pub fn mix_by_convolution(
        &self,
        member: &Member<'_>,
        conv: &ShortConv,
        memory: &Memory,
        normed: &Inputs,
        to_branch: bool,
        prefetch: &Panels,
    ) {
        let scratch = &self.workspace.recurrent;
        let projected = self.task(&conv.projection, normed, scratch.inputs.at(0), false);
        let stride = projected.stride;
        self.products(member, &[projected], &conv.output);
        let width = conv.projection.rows() / 3;
        member.share(width.div_ceil(BLOCK), 1, |blocks| {
            for channel in blocks.map(|block| block * BLOCK) {
                let channels = Channels { first: channel, count: BLOCK.min(width - channel) };
                // SAFETY: a block of channels belongs to this unit.
                unsafe { self.convolve_block(conv, memory, channels, stride, width) };
            }
        });
        member.barrier();
        self.add_product(member, &conv.output, &scratch.mixed, to_branch, prefetch);
    }

    /// Convolves and gates a block of channels for all rows.
    ///
    /// # Safety
    /// The block must belong to this unit.
    unsafe fn convolve_block(
        &self,
        conv: &ShortConv,
        memory: &Memory,
        channels: Channels,
        stride: usize,
        width: usize,
    ) {
        let Channels { first: channel, count } = channels;
        let scratch = &self.workspace.recurrent;
        let part = |row: usize, part: usize| scratch.inputs.at(row * stride + part * width + channel);
        for row in 0..self.nodes {
            // SAFETY: guaranteed by the caller, these channels belong to this unit.
            unsafe {
                let (b, v) = (std::slice::from_raw_parts_mut(part(row, 0), count), part(row, 2));
                b.iter_mut().zip(std::slice::from_raw_parts(v, count)).for_each(|(b, v)| *b *= v);
            }
        }
        let inputs = ConvInputs { first: scratch.inputs.at(0), stride };
        let out = |row| scratch.mixed.row(row).wrapping_add(channel);
        // SAFETY: guaranteed by the caller.
        unsafe { self.convolve_channels(&conv.kernel, memory, inputs, channels, false, out) };
        for row in 0..self.nodes {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let mixed = std::slice::from_raw_parts_mut(out(row), count);
                let c = std::slice::from_raw_parts(part(row, 1), count);
                mixed.iter_mut().zip(c).for_each(|(mixed, c)| *mixed *= c);
                self.quantise(&scratch.mixed, row, channel..channel + count, out(row));
            }
        }
    }
}
