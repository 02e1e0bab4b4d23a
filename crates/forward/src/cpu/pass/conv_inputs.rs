//! Inputs of a recurrent layer's convolution: rows of the pass, its step log, and the state before
//! them.

use super::PassContext;
use crate::cpu::memory::{Memory, StepRecord};
use crate::cpu::recurrent::ConvWeights;
use crate::cpu::step::{ConvolutionJob, MAX_TAPS};

/// Convolution inputs in the workspace: address of the first row and channel, and the distance from
/// row to row.
#[derive(Clone, Copy)]
pub struct ConvInputs {
    pub first: *const f32,
    pub stride: usize,
}

impl ConvInputs {
    /// Address of `row` from `channel` on.
    fn at(&self, row: usize, channel: usize) -> *const f32 {
        self.first.wrapping_add(row * self.stride + channel)
    }
}

/// Consecutive channels of a convolution.
#[derive(Clone, Copy)]
pub struct Channels {
    pub first: usize,
    pub count: usize,
}

// Why the unsafe blocks are sound: see `pass/mod.rs`.
impl PassContext<'_> {
    /// Convolves these channels of all rows into `out(row)`, and stores the inputs that later
    /// passes need.
    ///
    /// # Safety
    /// These channels must belong to this unit.
    pub unsafe fn convolve_channels(
        &self,
        kernel: &ConvWeights,
        memory: &Memory,
        inputs: ConvInputs,
        channels: Channels,
        activated: bool,
        out: impl Fn(usize) -> *mut f32,
    ) {
        let Channels { first: channel, count } = channels;
        for row in 0..self.nodes {
            let path = &self.workspace.visible[row];
            let mut rows = [std::ptr::null(); MAX_TAPS];
            for (back, seen) in rows[..kernel.taps].iter_mut().rev().enumerate() {
                *seen = self.input(memory, inputs, path, back, kernel.taps, channel);
            }
            // SAFETY: guaranteed by the caller; rows have as many channels, and the kernel has,
            // too.
            unsafe {
                (self.kernels.convolve)(&ConvolutionJob {
                    rows,
                    taps: kernel.taps,
                    kernel: kernel.weights.as_ptr().add(channel),
                    bias: kernel.bias.as_ref().map_or(std::ptr::null(), |bias| bias.as_ptr().add(channel)),
                    stride: kernel.stride,
                    channels: count,
                    activated,
                    out: out(row),
                });
            }
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.store_channels(memory, inputs, kernel.taps, channels) };
    }

    /// Stores inputs in the records of the pass's rows and in the states that it leaves behind.
    ///
    /// # Safety
    /// The contract of [`Self::convolve_channels`].
    unsafe fn store_channels(
        &self,
        memory: &Memory,
        inputs: ConvInputs,
        taps: usize,
        Channels { first: channel, count }: Channels,
    ) {
        let plan = &self.workspace.recurrent.walk.plan;
        let copy = |from: *const f32, to: *mut f32| {
            // SAFETY: both are valid for these channels, and `to` belongs to this unit. A state
            // that is shifted within itself overlaps nothing of a row.
            unsafe {
                match from.is_null() {
                    true => std::ptr::write_bytes(to, 0, count),
                    false => std::ptr::copy(from, to, count),
                }
            }
        };
        for row in 0..self.nodes {
            if let Some(slot) = plan.logs[self.first + row] {
                copy(inputs.at(row, channel), memory.record(slot).inputs(channel));
            }
        }
        let skipped = plan.logs.iter().take_while(|row| row.is_none()).count();
        let ends = plan.end.map(|end| (end, self.workspace.visible[skipped - 1].as_slice()));
        for (slot, path) in ends.into_iter().chain(plan.to.map(|to| (to, [].as_slice()))) {
            // Oldest first, so that a state is read before it is shifted.
            for back in (0..taps - 1).rev() {
                let from = self.input(memory, inputs, path, back, taps, channel);
                copy(from, memory.tail(slot, back, taps, channel));
            }
        }
    }

    /// Input `back` rows before the last node of `path`, a chain of tree nodes after the text. Null
    /// before the beginning of the text.
    fn input(
        &self,
        memory: &Memory,
        inputs: ConvInputs,
        path: &[usize],
        back: usize,
        taps: usize,
        channel: usize,
    ) -> *const f32 {
        let plan = &self.workspace.recurrent.walk.plan;
        if let Some(before) = path.len().checked_sub(back + 1) {
            return match path[before].checked_sub(self.first) {
                Some(row) => inputs.at(row, channel),
                None => self.record(memory, path[before]).inputs(channel),
            };
        }
        let back = back - path.len();
        match (plan.before.len().checked_sub(back + 1), plan.from) {
            (Some(before), _) => memory.record(plan.before[before]).inputs(channel),
            (None, Some(from)) => memory.tail(from, back - plan.before.len(), taps, channel),
            (None, None) => std::ptr::null(),
        }
    }

    /// Record of a node of the tree.
    pub fn record(&self, memory: &Memory, node: usize) -> StepRecord {
        let scratch = &self.workspace.recurrent;
        scratch.walk.plan.logs[node]
            .map_or_else(|| scratch.temporary_record(node), |slot| memory.record(slot))
    }
}
