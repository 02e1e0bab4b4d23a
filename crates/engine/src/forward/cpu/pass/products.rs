//! What a pass multiplies its rows with the weights by: each panel is read once for all rows of a tile.

use std::ops::Range;

use super::{Phases, add};
use crate::forward::cpu::activations::{BLOCK, Place};
use crate::forward::cpu::buffer::Buffer;
use crate::forward::cpu::feed_forward::Dense;
use crate::forward::cpu::network::Attention;
use crate::forward::cpu::panels::Panels;
use crate::forward::cpu::product::Product;
use crate::forward::cpu::reading::{opening, share_reading};
use crate::forward::cpu::simd::LANES;
use crate::forward::cpu::team::Member;
use crate::forward::cpu::workspace::Inputs;

/// The most rows of any tile.
const MAX_ROWS: usize = 8;

/// A matrix, the rows to multiply it with, and where the result goes.
pub struct Task<'a> {
    pub weights: &'a Panels,
    /// The first so many of them are multiplied.
    pub panels: usize,
    pub inputs: &'a Inputs,
    pub rows: Range<usize>,
    /// Of row 0.
    pub out: *mut f32,
    pub stride: usize,
    pub add: bool,
}

// What is unsafe here rests on what is said in `pass/mod.rs`.
impl Phases<'_> {
    /// Queries, keys, values and gates. `then` is what is read next, as it is of the other products.
    pub fn project(&self, member: &Member<'_>, attention: &Attention, normed: &Inputs, then: &Panels) {
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
        self.products(member, &tasks[..count], then);
    }

    /// Of all rows.
    pub fn task<'a>(&self, weights: &'a Panels, inputs: &'a Inputs, out: *mut f32, add: bool) -> Task<'a> {
        let stride = weights.rows().next_multiple_of(LANES);
        Task { weights, panels: weights.panels(), inputs, rows: 0..self.nodes, out, stride, add }
    }

    /// `state += weights * inputs`; or `branch = weights * inputs`, if it is put `aside`.
    pub fn add_product(
        &self,
        member: &Member<'_>,
        weights: &Panels,
        inputs: &Inputs,
        aside: bool,
        then: &Panels,
    ) {
        let task = match aside {
            false => self.task(weights, inputs, self.hidden(0), true),
            true => self.task(weights, inputs, self.branch(0), false),
        };
        self.products(member, &[task], then);
    }

    /// The panels of all tasks, shared out together.
    pub fn products(&self, member: &Member<'_>, tasks: &[Task<'_>], then: &Panels) {
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
        share_reading(member, total, at, opening(then, member), |unit, next| {
            if let Some((task, panel)) = find(unit) {
                self.product(task, panel, next);
            }
        });
        member.meet();
    }

    /// One panel times all rows, tile by tile; at `next` is what will be read then.
    fn product(&self, task: &Task<'_>, panel: usize, next: *const u8) {
        let tile = self.kernels.tile;
        for first in task.rows.clone().step_by(tile) {
            let rows = tile.min(task.rows.end - first);
            // SAFETY: see above; `out` is good for all rows of the task.
            unsafe {
                let out = task.out.add(first * task.stride + panel * LANES);
                self.multiply(
                    (task.weights, panel, next),
                    task.inputs,
                    (first, rows),
                    out,
                    task.stride,
                    task.add,
                );
            }
        }
    }

    /// A panel, before what is at `next`, times a tile, given as its first row and how many it has.
    pub(super) unsafe fn multiply(
        &self,
        (weights, panel, next): (&Panels, usize, *const u8),
        inputs: &Inputs,
        (first, rows): (usize, usize),
        out: *mut f32,
        stride: usize,
        add: bool,
    ) {
        let format = weights.format();
        let product = Product {
            panel: weights.panel(panel).as_ptr(),
            blocks: weights.inputs() / format.inputs(),
            next,
            x: inputs.tile(format, first, rows),
            out,
            stride,
            add,
        };
        // SAFETY: the caller promises `out`; panel and tile have as many blocks and rows as the product says.
        unsafe { (self.kernels.product)(format, rows)(&product) };
    }

    /// `down * (activation(gate * x) * (up * x))`, added as [`Self::add_product`] does.
    pub fn feed_forward(
        &self,
        member: &Member<'_>,
        dense: &Dense,
        normed: &Inputs,
        aside: bool,
        then: &Panels,
    ) {
        let gated = self.workspace.gated.of(dense.down.inputs());
        self.gate(member, &[(dense, 0..self.nodes)], (normed, gated), &dense.down);
        self.add_product(member, &dense.down, gated, aside, then);
    }

    /// `activation(gate * x) * (up * x)` of networks of one shape and the rows that each is given, from one
    /// `Inputs` to the other.
    pub fn gate(
        &self,
        member: &Member<'_>,
        networks: &[(&Dense, Range<usize>)],
        (from, to): (&Inputs, &Inputs),
        then: &Panels,
    ) {
        let units = networks.first().map_or(1, |(dense, _)| dense.gate.panels().div_ceil(2));
        let at = |unit: usize| networks[unit / units].0.gate.panel(2 * (unit % units)).as_ptr();
        share_reading(member, networks.len() * units, at, opening(then, member), |unit, next| {
            let (dense, rows) = &networks[unit / units];
            self.gate_block(dense, rows.clone(), (from, to), (2 * (unit % units), next));
        });
        member.meet();
    }

    /// Two panels at a time, which is a block of what `down` takes: those from `first_panel` on, before what is
    /// at `next`.
    fn gate_block(
        &self,
        dense: &Dense,
        rows: Range<usize>,
        (from, to): (&Inputs, &Inputs),
        (first_panel, next): (usize, *const u8),
    ) {
        let activate = self.kernels.times(self.config.family.activation);
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
                    let (gate, up) = ((&dense.gate, number, of_up), (&dense.up, number, next));
                    self.multiply(gate, from, (first, size), gate_out, to.width, false);
                    self.multiply(up, from, (first, size), up_out, BLOCK, false);
                }
                for row in 0..size {
                    let (out, up) = (out.add(row * to.width), up.as_mut_ptr().add(row * BLOCK));
                    if let Some(biases) = &dense.biases {
                        let range = at..at + count * LANES;
                        add(out, &biases.gate[range.clone()]);
                        add(up, &biases.up[range]);
                    }
                    activate(out, up, count * LANES);
                    let place = Place { first, rows: size, row: first + row };
                    self.round_at(to, place, at..at + count * LANES, out);
                }
            }
        }
    }
}
