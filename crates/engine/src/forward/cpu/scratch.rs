//! The memory of a pass in recurrent layers, beside that of all layers.

use super::buffer::Buffer;
use super::memory::{Layout, Record};
use super::simd::LANES;
use super::step::BLOCK;
use super::walk::Walk;
use super::workspace::Inputs;
use crate::model::{Mixer, Recurrence};

#[derive(Debug, Default)]
pub struct Scratch {
    pub walk: Walk,
    layout: Layout,
    /// What is convolved of every row, and what else the same matrix gives.
    pub inputs: Buffer<f32>, // [rows, projected padded to LANES]
    pub convolved: Buffer<f32>, // [rows, channels padded to LANES]
    /// Of every value head how much it is corrected, and how fast its matrix decays.
    pub rates: [Buffer<f32>; 2], // [rows, values padded to LANES]
    /// What is read of the matrices.
    pub read: Buffer<f32>, // [rows, values * value_size]
    /// What goes through the last matrix of a layer.
    pub mixed: Inputs, // values * value_size, or channels
    /// Records that need not last.
    passing: Buffer<f32>, // [nodes, record]
    /// Blocks of matrices.
    copies: Buffer<f32>, // [members, copies, key_size, BLOCK]
}

impl Scratch {
    /// Makes room for a pass over so many rows, the way of which is known.
    pub fn prepare(&mut self, recurrence: &Recurrence, rows: usize, members: usize, tile: usize) {
        let (layout, heads) = (Layout::of(recurrence), &recurrence.heads);
        self.layout = layout;
        let projected = match recurrence.mixer {
            Mixer::ShortConv => 3 * recurrence.channels,
            _ => recurrence.channels,
        };
        self.inputs.reserve(rows * projected.next_multiple_of(LANES));
        self.convolved.reserve(rows * recurrence.channels.next_multiple_of(LANES));
        let width = heads.value_width();
        self.rates.iter_mut().for_each(|rates| rates.reserve(rows * heads.values.next_multiple_of(LANES)));
        self.read.reserve(rows * width);
        self.mixed.prepare(rows, if width == 0 { recurrence.channels } else { width }, tile);
        let passing = self.walk.plan.rows.iter().filter(|row| row.is_none()).count();
        self.passing.reserve(passing * layout.record);
        self.copies.reserve(members * self.walk.copies * heads.key_size * BLOCK);
    }

    /// The record of a node that needs none that lasts.
    pub fn passing(&self, node: usize) -> Record {
        Record::new(self.passing.at(node * self.layout.record), self.layout)
    }

    /// A member's copy of a block, `[key_size, BLOCK]`.
    pub fn copy(&self, member: usize, copy: usize, key_size: usize) -> *mut f32 {
        self.copies.at((member * self.walk.copies + copy) * key_size * BLOCK)
    }
}
