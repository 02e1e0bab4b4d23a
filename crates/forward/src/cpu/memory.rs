//! States of a recurrent layer, and a log of the last tokens' steps, in the slots that
//! [`StateHistory`](crate::state_history::StateHistory) assigns.

use std::collections::TryReserveError;

use foretoken_model::Recurrence;

use super::buffer::SharedBuffer;
use super::simd::LANES;
use super::step::COLUMNS;
use crate::state_history::{SlotCounts, StatePlan, UsedSlots};

/// States and step records of one layer; empty for attention layers. Texts share them as they share
/// the pages of a [`KvCache`](super::cache::KvCache).
#[derive(Debug, Default, Clone)]
pub struct Memory {
    layout: Layout,
    states: Vec<SharedBuffer<f32>>,
    records: Vec<SharedBuffer<f32>>,
}

/// Layout of a state and of a record.
///
/// A state is the convolution's tail, `[taps - 1, channels]`, and the matrix of each head,
/// `[value heads, blocks, keys, COLUMNS]`. A record is the step of one token: convolution inputs,
/// decay of each value head, key of each key head, and correction of each value head.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    channels: usize,
    tail: usize,
    decays: usize,
    keys: usize,
    corrections: usize,
    key_size: usize,
    value_size: usize,
    /// Numbers of a record.
    pub record: usize,
    /// Numbers of a state.
    state: usize,
}

impl Layout {
    pub fn of(recurrence: &Recurrence) -> Self {
        let heads = &recurrence.heads;
        // The tail's last row is read in whole vectors.
        let tail = recurrence.tail().next_multiple_of(LANES) + LANES;
        let decays = recurrence.channels.next_multiple_of(LANES);
        let keys = decays + heads.values.next_multiple_of(LANES);
        let corrections = keys + heads.key_width();
        Self {
            channels: recurrence.channels,
            tail,
            decays,
            keys,
            corrections,
            key_size: heads.key_size,
            value_size: heads.value_size,
            record: corrections + heads.value_width(),
            state: tail + recurrence.state() - recurrence.tail(),
        }
    }

    /// Bytes of a state.
    pub fn state_bytes(&self) -> usize {
        self.state * size_of::<f32>()
    }
}

/// Record of one token's step. Its pointers are valid for the ranges in [`Layout`], as long as its
/// memory lives.
#[derive(Debug, Clone, Copy)]
pub struct StepRecord {
    numbers: *mut f32,
    layout: Layout,
}

impl StepRecord {
    /// Wraps `numbers`, which must be valid for [`Layout::record`] numbers.
    pub fn new(numbers: *mut f32, layout: Layout) -> Self {
        Self { numbers, layout }
    }

    /// Convolution inputs from `channel` on.
    pub fn inputs(&self, channel: usize) -> *mut f32 {
        self.numbers.wrapping_add(channel)
    }

    /// Decay of a value head.
    pub fn decay(&self, head: usize) -> *mut f32 {
        self.numbers.wrapping_add(self.layout.decays + head)
    }

    /// Key of a key head, `[key_size]`.
    pub fn key(&self, key_head: usize) -> *mut f32 {
        self.numbers.wrapping_add(self.layout.keys + key_head * self.layout.key_size)
    }

    /// Block of a value head's correction, `[COLUMNS]`.
    pub fn correction(&self, head: usize, block: usize) -> *mut f32 {
        let at = self.layout.corrections + head * self.layout.value_size + block * COLUMNS;
        self.numbers.wrapping_add(at)
    }
}

impl Memory {
    pub fn new(recurrence: &Recurrence) -> Self {
        Self { layout: Layout::of(recurrence), states: Vec::new(), records: Vec::new() }
    }

    /// Bytes to allocate for these states and records.
    pub fn bytes_to_reserve(&self, SlotCounts { states, logs: records }: SlotCounts) -> usize {
        let states = states.saturating_sub(self.states.len()) * self.layout.state;
        let records = records.saturating_sub(self.records.len()) * self.layout.record;
        (states + records) * size_of::<f32>()
    }

    /// Allocates memory for these states and records.
    ///
    /// # Errors
    /// Fails if the system cannot allocate; the contents stay.
    pub fn reserve(
        &mut self,
        SlotCounts { states, logs: records }: SlotCounts,
    ) -> Result<(), TryReserveError> {
        let grow = |buffers: &mut Vec<SharedBuffer<f32>>, count: usize, size: usize| {
            while buffers.len() < count {
                buffers.push(SharedBuffer::try_zeros(size)?);
            }
            Ok(())
        };
        grow(&mut self.states, states, self.layout.state)?;
        grow(&mut self.records, records, self.layout.record)
    }

    /// Bytes to allocate before a pass writes what is planned.
    pub fn bytes_to_own(&self, plan: &StatePlan) -> usize {
        let states = plan.to.iter().chain(&plan.end).map(|&slot| &self.states[slot]);
        let records = plan.logs.iter().flatten().map(|&slot| &self.records[slot]);
        let shared = states.chain(records).filter(|buffer| buffer.is_shared());
        shared.map(|buffer| buffer.len() * size_of::<f32>()).sum()
    }

    /// Replaces shared buffers that a pass writes by own ones. Only a state that it advances in
    /// place is copied.
    ///
    /// # Errors
    /// Fails if the system cannot allocate; the contents stay.
    pub fn own(&mut self, plan: &StatePlan) -> Result<(), TryReserveError> {
        for slot in plan.to.into_iter().chain(plan.end) {
            self.states[slot].try_own(plan.from == Some(slot))?;
        }
        plan.logs.iter().flatten().try_for_each(|&slot| self.records[slot].try_own(false))
    }

    /// The states and records in these slots, whose buffers are shared with this memory.
    pub fn share(&self, slots: &UsedSlots) -> Self {
        let of = |buffers: &[SharedBuffer<f32>], slots: &[usize]| {
            slots.iter().map(|&slot| buffers[slot].clone()).collect()
        };
        let (states, records) = (of(&self.states, &slots.states), of(&self.records, &slots.logs));
        Self { layout: self.layout, states, records }
    }

    /// Returns true if `other` has the same sizes.
    pub fn is_like(&self, other: &Self) -> bool {
        self.layout == other.layout
    }

    /// Numbers of all states, then of all records.
    pub fn numbers(&mut self) -> impl Iterator<Item = &[f32]> {
        self.states.iter_mut().chain(&mut self.records).map(SharedBuffer::numbers)
    }

    /// Bytes of this many states and records.
    pub fn bytes(&self, SlotCounts { states, logs }: SlotCounts) -> usize {
        (states * self.layout.state + logs * self.layout.record) * size_of::<f32>()
    }

    /// Adds states or records, of which [`Self::numbers`] returned `numbers`.
    pub fn push(&mut self, counts: SlotCounts, numbers: &[f32]) {
        let (states, records) = numbers.split_at(counts.states * self.layout.state);
        let buffers = |count: usize, size: usize, numbers: &[f32]| {
            (0..count).map(|slot| numbers[slot * size..][..size].to_vec().into()).collect()
        };
        self.states = buffers(counts.states, self.layout.state, states);
        self.records = buffers(counts.logs, self.layout.record, records);
    }

    /// Address and bytes of each buffer.
    pub fn buffers(&self) -> impl Iterator<Item = (usize, usize)> {
        let buffers = self.states.iter().chain(&self.records);
        buffers.map(|buffer| (buffer.address(), buffer.len() * size_of::<f32>()))
    }

    /// Convolution tail of the state in `slot` from `channel` on: the row `back` rows before the
    /// state's last one. `taps` is the convolution's width.
    pub fn tail(&self, slot: usize, back: usize, taps: usize, channel: usize) -> *mut f32 {
        self.states[slot].at((taps - 2 - back) * self.layout.channels + channel)
    }

    /// Matrix block of the state in `slot`, `[key_size, COLUMNS]`.
    pub fn matrix(&self, slot: usize, head: usize, block: usize) -> *mut f32 {
        let blocks = head * (self.layout.value_size / COLUMNS) + block;
        self.states[slot].at(self.layout.tail + blocks * self.layout.key_size * COLUMNS)
    }

    /// Record in `slot`.
    pub fn record(&self, slot: usize) -> StepRecord {
        StepRecord::new(self.records[slot].at(0), self.layout)
    }
}
