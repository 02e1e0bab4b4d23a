//! Matrix products of a pass: each panel of weights is read once for all rows of a tile.

use std::ops::Range;

use super::{PassContext, add};
use crate::cpu::activations::{BLOCK, TileRow};
use crate::cpu::buffer::Buffer;
use crate::cpu::feed_forward::Dense;
use crate::cpu::network::Attention;
use crate::cpu::panels::Panels;
use crate::cpu::prefetch::{first_address, share_with_prefetch};
use crate::cpu::product::Product;
use crate::cpu::simd::LANES;
use crate::cpu::team::Member;
use crate::cpu::workspace::Inputs;

/// Largest tile of any instruction set, in rows.
const MAX_ROWS: usize = 8;

/// A matrix product to compute: weights, input rows, and destination.
pub struct Task<'a> {
    pub weights: &'a Panels,
    /// Number of panels to multiply, from the first on.
    pub panels: usize,
    pub inputs: &'a Inputs,
    pub rows: Range<usize>,
    /// Output of row 0.
    pub out: *mut f32,
    /// Numbers from one row's output to the next.
    pub stride: usize,
    /// Adds to the output instead of overwriting it.
    pub add: bool,
}

/// A panel of weights.
#[derive(Clone, Copy)]
pub struct WeightPanel<'a> {
    pub weights: &'a Panels,
    pub index: usize,
    /// Address of the weights read afterwards.
    pub next: *const u8,
}

// Why the unsafe blocks are sound: see `pass/mod.rs`.
impl PassContext<'_> {
    /// Computes queries, keys, values and gates. `prefetch`: weights read next, as in
    /// the other products.
    pub fn project(&self, member: &Member<'_>, attention: &Attention, normed: &Inputs, prefetch: &Panels) {
        let workspace = self.workspace;
        let task = |weights, out: &Buffer<f32>| self.task(weights, normed, out.at(0), false);
        let mut tasks = [(); 4].map(|()| task(&attention.query, &workspace.queries));
        let mut count = 1;
        for (weights, out) in [
            (&attention.key, &workspace.keys),
            (&attention.value, &workspace.values),
            (&attention.gate, &workspace.gates),
        ] {
            if let Some(weights) = weights {
                tasks[count] = task(weights, out);
                count += 1;
            }
        }
        self.products(member, &tasks[..count], prefetch);
    }

    /// Builds a task over all rows and all panels of `weights`.
    pub fn task<'a>(&self, weights: &'a Panels, inputs: &'a Inputs, out: *mut f32, add: bool) -> Task<'a> {
        let stride = weights.rows().next_multiple_of(LANES);
        Task { weights, panels: weights.panels(), inputs, rows: 0..self.nodes, out, stride, add }
    }

    /// Computes `state += weights * inputs`, or `branch = weights * inputs` if `to_branch`.
    pub fn add_product(
        &self,
        member: &Member<'_>,
        weights: &Panels,
        inputs: &Inputs,
        to_branch: bool,
        prefetch: &Panels,
    ) {
        let task = match to_branch {
            false => self.task(weights, inputs, self.hidden(0), true),
            true => self.task(weights, inputs, self.branch(0), false),
        };
        self.products(member, &[task], prefetch);
    }

    /// Computes all tasks, their panels shared out among the members together.
    pub fn products(&self, member: &Member<'_>, tasks: &[Task<'_>], prefetch: &Panels) {
        let total = tasks.iter().map(|task| task.panels).sum();
        let find = |mut panel: usize| {
            tasks.iter().find_map(|task| {
                let found = (panel < task.panels).then_some((task, panel));
                panel = panel.wrapping_sub(task.panels);
                found
            })
        };
        let at =
            |unit| find(unit).map_or(std::ptr::null(), |(task, panel)| task.weights.panel(panel).as_ptr());
        share_with_prefetch(member, total, at, first_address(prefetch, member), |unit, next| {
            if let Some((task, panel)) = find(unit) {
                self.product(task, panel, next);
            }
        });
        member.barrier();
    }

    /// Multiplies one panel with all rows, tile by tile. `next`: address of the weights read
    /// afterwards.
    fn product(&self, task: &Task<'_>, panel: usize, next: *const u8) {
        let tile = self.kernels.tile;
        for first in task.rows.clone().step_by(tile) {
            let rows = first..task.rows.end.min(first + tile);
            let weights = WeightPanel { weights: task.weights, index: panel, next };
            // SAFETY: see above; `out` is valid for all rows of the task.
            unsafe {
                let out = task.out.add(first * task.stride + panel * LANES);
                self.multiply(weights, task.inputs, rows, out, task.stride, task.add);
            }
        }
    }

    /// Multiplies a panel with a tile of `rows`.
    ///
    /// # Safety
    /// `out` must be valid for the tile's rows, `stride` numbers apart, and belong to this unit.
    pub(super) unsafe fn multiply(
        &self,
        WeightPanel { weights, index, next }: WeightPanel<'_>,
        inputs: &Inputs,
        rows: Range<usize>,
        out: *mut f32,
        stride: usize,
        add: bool,
    ) {
        let format = weights.format();
        let product = Product {
            panel: weights.panel(index).as_ptr(),
            blocks: weights.inputs() / format.inputs(),
            next,
            x: inputs.tile(format, rows.start, rows.len()),
            out,
            stride,
            factor: weights.factor(),
            add,
        };
        // SAFETY: the caller guarantees `out`; panel and tile have as many blocks and rows as the
        // product says.
        unsafe { (self.kernels.product)(format, rows.len())(&product) };
    }

    /// Computes `down * (activation(gate * x) * (up * x))`, added as [`Self::add_product`] does.
    pub fn feed_forward(
        &self,
        member: &Member<'_>,
        dense: &Dense,
        normed: &Inputs,
        to_branch: bool,
        prefetch: &Panels,
    ) {
        let gated = self.workspace.gated.of(dense.down.inputs());
        self.gate(member, &[(dense, 0..self.nodes)], normed, gated, &dense.down);
        self.add_product(member, &dense.down, gated, to_branch, prefetch);
    }

    /// Computes `activation(gate * x) * (up * x)` for networks of one shape, each over its range of
    /// rows. Reads `from` and writes `to`.
    pub fn gate(
        &self,
        member: &Member<'_>,
        networks: &[(&Dense, Range<usize>)],
        from: &Inputs,
        to: &Inputs,
        prefetch: &Panels,
    ) {
        let units = networks.first().map_or(1, |(dense, _)| dense.gate.panels().div_ceil(2));
        let at = |unit: usize| networks[unit / units].0.gate.panel(2 * (unit % units)).as_ptr();
        let first = first_address(prefetch, member);
        share_with_prefetch(member, networks.len() * units, at, first, |unit, next| {
            let (dense, rows) = &networks[unit / units];
            self.gate_block(dense, rows.clone(), from, to, 2 * (unit % units), next);
        });
        member.barrier();
    }

    /// Computes one block of `down`'s inputs: two panels from `first_panel` on. `next`: address of
    /// the weights read afterwards.
    fn gate_block(
        &self,
        dense: &Dense,
        rows: Range<usize>,
        from: &Inputs,
        to: &Inputs,
        first_panel: usize,
        next: *const u8,
    ) {
        let activate = self.kernels.times(self.config.activation);
        let mut up = [0f32; MAX_ROWS * BLOCK];
        let (count, at) = ((dense.gate.panels() - first_panel).min(2), first_panel * LANES);
        let tile = self.kernels.tile;
        for first in rows.clone().step_by(tile) {
            let size = tile.min(rows.end - first);
            // SAFETY: see above; `up` has room for a tile's block.
            unsafe {
                let out = to.row(first).add(at);
                for panel in 0..count {
                    let (number, at) = (first_panel + panel, panel * LANES);
                    let (gate_out, up_out) = (out.add(at), up.as_mut_ptr().add(at));
                    let of_up = dense.up.panel(number).as_ptr();
                    let next = if panel + 1 < count { dense.gate.panel(number + 1).as_ptr() } else { next };
                    let gate = WeightPanel { weights: &dense.gate, index: number, next: of_up };
                    let up = WeightPanel { weights: &dense.up, index: number, next };
                    self.multiply(gate, from, first..first + size, gate_out, to.width, false);
                    self.multiply(up, from, first..first + size, up_out, BLOCK, false);
                }
                for row in 0..size {
                    let (out, up) = (out.add(row * to.width), up.as_mut_ptr().add(row * BLOCK));
                    if let Some(biases) = &dense.biases {
                        let range = at..at + count * LANES;
                        add(out, &biases.gate[range.clone()]);
                        add(up, &biases.up[range]);
                    }
                    activate(out, up, count * LANES);
                    let tile_row = TileRow { first, rows: size, row: first + row };
                    self.quantise_at(to, tile_row, at..at + count * LANES, out);
                }
            }
        }
    }
}
