//! Buffers of recurrent layers in a pass.

use foretoken_model::{Recurrence, RecurrentKind};

use super::buffer::Buffer;
use super::memory::{Layout, StepRecord};
use super::simd::LANES;
use super::step::COLUMNS;
use super::tree_walk::TreeWalk;
use super::workspace::Inputs;

#[derive(Debug, Default)]
pub struct RecurrentBuffers {
    pub walk: TreeWalk,
    layout: Layout,
    /// Convolution inputs of each row, and whatever else the same matrix computes.
    pub inputs: Buffer<f32>, // [rows, projected padded to LANES]
    pub convolved: Buffer<f32>, // [rows, channels padded to LANES]
    /// Correction rate (beta) of each value head, and the input of its decay.
    pub rates: [Buffer<f32>; 2], // [rows, values padded to LANES]
    /// Output of the state matrices.
    pub read: Buffer<f32>, // [rows, values * value_size]
    /// Input of a layer's last matrix.
    pub mixed: Inputs, // values * value_size, or channels
    /// Records of nodes that are not kept after the pass.
    temporary: Buffer<f32>, // [nodes, record]
    /// Copies of matrix blocks at branches of the tree.
    copies: Buffer<f32>, // [members, copies, key_size, COLUMNS]
}

impl RecurrentBuffers {
    /// Allocates buffers for a pass over `rows`; its `walk` must be known.
    pub fn prepare(&mut self, recurrence: &Recurrence, rows: usize, members: usize, tile: usize) {
        let (layout, heads) = (Layout::of(recurrence), &recurrence.heads);
        self.layout = layout;
        let projected = match recurrence.kind {
            RecurrentKind::ShortConv => 3 * recurrence.channels,
            _ => recurrence.channels,
        };
        self.inputs.reserve(rows * projected.next_multiple_of(LANES));
        self.convolved.reserve(rows * recurrence.channels.next_multiple_of(LANES));
        let width = heads.value_width();
        self.rates.iter_mut().for_each(|rates| rates.reserve(rows * heads.values.next_multiple_of(LANES)));
        self.read.reserve(rows * width);
        self.mixed.prepare(rows, if width == 0 { recurrence.channels } else { width }, tile);
        let temporary = self.walk.plan.logs.iter().filter(|row| row.is_none()).count();
        self.temporary.reserve(temporary * layout.record);
        self.copies.reserve(members * self.walk.copies * heads.key_size * COLUMNS);
    }

    /// Record of a node that is not kept after the pass.
    pub fn temporary_record(&self, node: usize) -> StepRecord {
        StepRecord::new(self.temporary.at(node * self.layout.record), self.layout)
    }

    /// A member's copy of a matrix block, `[key_size, COLUMNS]`.
    pub fn copy(&self, member: usize, copy: usize, key_size: usize) -> *mut f32 {
        self.copies.at((member * self.walk.copies + copy) * key_size * COLUMNS)
    }
}
