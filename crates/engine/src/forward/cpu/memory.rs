//! What a recurrent layer remembers of a text: states, and records of what its last tokens did to them, at the places
//! that [`Past`](crate::forward::past::Past) names.

use std::collections::TryReserveError;

use super::buffer::Buffer;
use super::simd::LANES;
use super::step::BLOCK;
use crate::model::Recurrence;

/// The states and records of a layer; of one with attention there are none.
#[derive(Debug, Default)]
pub struct Memory {
    layout: Layout,
    states: Vec<Buffer<f32>>,
    records: Vec<Buffer<f32>>,
}

/// Where the numbers of a state and of a record are.
///
/// A state is `[taps - 1, channels]`, what a convolution sees of the rows before, and `[value heads, blocks, keys,
/// BLOCK]`, the matrix of each head. A record is what was convolved, of every value head its decay, of every key head
/// its key and of every value head what corrected its values.
#[derive(Debug, Default, Clone, Copy)]
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
        // Its last row is read in whole vectors.
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

/// A record. What it points to is good for what [`Layout`] says, as long as its memory.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    numbers: *mut f32,
    layout: Layout,
}

impl Record {
    /// `numbers` must be good for [`Layout::record`].
    pub fn new(numbers: *mut f32, layout: Layout) -> Self {
        Self { numbers, layout }
    }

    /// What was convolved, from `channel` on.
    pub fn inputs(&self, channel: usize) -> *mut f32 {
        self.numbers.wrapping_add(channel)
    }

    pub fn decay(&self, head: usize) -> *mut f32 {
        self.numbers.wrapping_add(self.layout.decays + head)
    }

    /// `[key_size]`
    pub fn key(&self, key_head: usize) -> *mut f32 {
        self.numbers.wrapping_add(self.layout.keys + key_head * self.layout.key_size)
    }

    /// A block of them, `[BLOCK]`.
    pub fn correction(&self, head: usize, block: usize) -> *mut f32 {
        let at = self.layout.corrections + head * self.layout.value_size + block * BLOCK;
        self.numbers.wrapping_add(at)
    }
}

impl Memory {
    pub fn new(recurrence: &Recurrence) -> Self {
        Self { layout: Layout::of(recurrence), states: Vec::new(), records: Vec::new() }
    }

    /// Bytes that so many states and records need beyond those that are there.
    pub fn missing(&self, (states, records): (usize, usize)) -> usize {
        let states = states.saturating_sub(self.states.len()) * self.layout.state;
        let records = records.saturating_sub(self.records.len()) * self.layout.record;
        (states + records) * size_of::<f32>()
    }

    /// Makes room for so many states and records.
    ///
    /// # Errors
    /// When the system has no memory to give; what is there stays.
    pub fn reserve(&mut self, (states, records): (usize, usize)) -> Result<(), TryReserveError> {
        let grow = |buffers: &mut Vec<Buffer<f32>>, count: usize, size: usize| {
            while buffers.len() < count {
                let mut buffer = Buffer::default();
                buffer.try_reserve(size)?;
                buffers.push(buffer);
            }
            Ok(())
        };
        grow(&mut self.states, states, self.layout.state)?;
        grow(&mut self.records, records, self.layout.record)
    }

    /// Of the state at a place, of the row `back` rows before the last that it is of (0 for that), what a convolution
    /// sees from `channel` on; `taps` is what it sees at most.
    pub fn tail(&self, place: usize, back: usize, taps: usize, channel: usize) -> *mut f32 {
        self.states[place].at((taps - 2 - back) * self.layout.channels + channel)
    }

    /// Of the state at a place a block of a head's matrix, `[key_size, BLOCK]`.
    pub fn matrix(&self, place: usize, head: usize, block: usize) -> *mut f32 {
        let blocks = head * (self.layout.value_size / BLOCK) + block;
        self.states[place].at(self.layout.tail + blocks * self.layout.key_size * BLOCK)
    }

    pub fn record(&self, place: usize) -> Record {
        Record::new(self.records[place].at(0), self.layout)
    }
}
