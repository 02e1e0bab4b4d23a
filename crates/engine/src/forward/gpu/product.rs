//! Matrices with the rows they are multiplied with and where the result goes: programs for tiles of every size, of which
//! one is chosen by how many rows there are.

use std::ops::Range;

use wgpu::{BindGroup, Buffer, ComputePipeline};

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::Kernel;
use super::matrix::{Matrix, TURN};
use super::state::Rows;
use super::step::bind;
use crate::error::Result;
use crate::forward::cpu::panels::Format;
use crate::forward::cpu::simd::LANES;
use crate::model::Activation;

/// Programs for tiles of every size, over the parts of a matrix.
#[derive(Debug)]
struct Tiled {
    /// By the rows of their tiles, smallest first.
    pipelines: Vec<(usize, ComputePipeline)>,
    parts: Vec<Bound>,
    /// Of a row: blocks in eight bits, or inputs.
    length: usize,
    /// Of the rows it is multiplied with.
    width: usize,
}

/// A part of a matrix: its first panel, and how many it has.
#[derive(Debug)]
struct Bound {
    group: BindGroup,
    first: usize,
    panels: usize,
}

/// What is done with the sums, and where they go.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// See the programs.
    mode: u32,
    /// Of a row that comes out.
    stride: usize,
    /// Panels of a workgroup.
    unit: usize,
}

impl Tiled {
    /// `out` is what the kernel writes first, `others` come after the rows.
    fn new(
        (device, tiles): (&GpuDevice, &[usize]),
        (kernel, matrix): (fn(Format, usize) -> Kernel, &Matrix),
        rows: &Rows,
        (out, others): (&Buffer, &[&Buffer]),
    ) -> Result<Self> {
        let make = |&tile: &usize| Ok((tile, device.pipelines().get(device, kernel(matrix.format, tile))?));
        let pipelines = tiles.iter().map(make).collect::<Result<Vec<_>>>()?;
        let parts = matrix.parts.iter().map(|part| {
            let [x, scales] = rows.given(matrix.format);
            let buffers = [&[&part.weights, out, x, scales], others].concat();
            let group = bind(device, &pipelines[0].1, &buffers)?;
            Ok(Bound { group, first: part.first, panels: part.panels })
        });
        let parts = parts.collect::<Result<_>>()?;
        Ok(Self { parts, pipelines, length: matrix.length(), width: rows.width })
    }

    /// The program for tiles of as many rows, or the next larger ones, with that number.
    fn fitting(&self, rows: usize) -> &(usize, ComputePipeline) {
        let largest = &self.pipelines[self.pipelines.len() - 1];
        self.pipelines.iter().find(|(size, _)| *size >= rows).unwrap_or(largest)
    }
}

impl Way {
    fn of(mode: u32, stride: usize) -> Self {
        Self { mode, stride, unit: 1 }
    }

    fn gated(activation: Activation, stride: usize) -> Self {
        Self { mode: activation_mode(activation), stride, unit: TURN }
    }
}

/// What `activation.wgsl` calls it.
pub fn activation_mode(activation: Activation) -> u32 {
    u32::from(activation == Activation::Gelu)
}

/// Matrices one below the other with the rows they are multiplied with.
#[derive(Debug)]
pub struct Product {
    /// Each with how many panels are above it.
    matrices: Vec<(usize, Tiled)>,
    way: Way,
}

impl Product {
    /// `out = matrices * rows`, or added to it.
    ///
    /// # Errors
    /// `Error::Compute` when the driver does not take a program, as of the others.
    pub fn new(device: &GpuDevice, matrices: &[Matrix], rows: &Rows, out: (&Buffer, bool)) -> Result<Self> {
        Self::in_tiles((device, device.tiles()), matrices, rows, out)
    }

    /// The same with programs for tiles of these sizes alone.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn in_tiles(
        device: (&GpuDevice, &[usize]),
        matrices: &[Matrix],
        rows: &Rows,
        (out, add): (&Buffer, bool),
    ) -> Result<Self> {
        let mut above = 0;
        let tiled = matrices.iter().map(|matrix| {
            let tiled = Tiled::new(device, (Kernel::Product, matrix), rows, (out, &[]))?;
            above += matrix.panels;
            Ok((above - matrix.panels, tiled))
        });
        let matrices = tiled.collect::<Result<_>>()?;
        Ok(Self { matrices, way: Way::of(u32::from(add), above * LANES) })
    }

    /// `to = activation(gate * rows) * (up * rows)`, of a matrix in turns, in both forms.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn gated(
        device: &GpuDevice,
        in_turns: &Matrix,
        (rows, to): (&Rows, &Rows),
        activation: Activation,
    ) -> Result<Self> {
        let out = (&to.plain, &[&to.quants, &to.scales][..]);
        let tiled = Tiled::new((device, device.tiles()), (Kernel::Gated, in_turns), rows, out)?;
        Ok(Self { matrices: vec![(0, tiled)], way: Way::gated(activation, to.width) })
    }

    /// Of the first `rows`, in one tile if they fit.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        self.run_below(pass, rows, 0);
    }

    /// The same, of the panels from number `panel` on.
    pub fn run_below(&self, pass: &mut Dispatches, rows: usize, panel: usize) {
        self.run_in_tiles(pass, 0..rows, rows, panel);
    }

    /// In tiles of as many rows, or the next larger ones: what is read of a panel for the first tile is at hand for
    /// the others.
    pub fn run_in_tiles(&self, pass: &mut Dispatches, rows: Range<usize>, tile: usize, panel: usize) {
        let Way { mode, stride, unit } = self.way;
        for (above, matrix) in &self.matrices {
            let (size, pipeline) = matrix.fitting(tile);
            for part in &matrix.parts {
                let first = above + part.first;
                let skip = panel.saturating_sub(first).min(part.panels);
                let (length, width) = (matrix.length, matrix.width);
                let asked = [length, rows.start, rows.end, stride, first, skip, mode as usize, width];
                let groups = (rows.len().div_ceil(*size), (part.panels - skip) / unit);
                pass.run((pipeline, &part.group), &asked.map(|n| n as u32), groups);
            }
        }
    }
}

/// A matrix of each expert, with the slots that go through it.
#[derive(Debug)]
pub struct SlotProduct {
    tiled: Tiled,
    way: Way,
    /// Panels of one matrix.
    panels: usize,
    /// What goes in is a row for each row, else for each slot.
    by_row: bool,
}

impl SlotProduct {
    /// `out = matrix * row` of each slot, of a stack of `count` matrices.
    ///
    /// # Errors
    /// As [`Product::new`].
    pub fn new(
        device: &GpuDevice,
        (stack, count): (&Matrix, usize),
        (rows, by_row): (&Rows, bool),
        (out, slots): (&Buffer, &Buffer),
    ) -> Result<Self> {
        let tiled =
            Tiled::new((device, device.tiles()), (Kernel::SlotProduct, stack), rows, (out, &[slots]))?;
        let panels = stack.panels / count;
        Ok(Self { tiled, way: Way::of(0, panels * LANES), panels, by_row })
    }

    /// `to = activation(gate * row) * (up * row)` of each slot, of a stack of `count` matrices in turns.
    ///
    /// # Errors
    /// As [`Product::new`].
    pub fn gated(
        device: &GpuDevice,
        (stack, count): (&Matrix, usize),
        (rows, to): (&Rows, &Rows),
        (slots, activation): (&Buffer, Activation),
    ) -> Result<Self> {
        let out = (&to.plain, &[&to.quants, &to.scales, slots][..]);
        let tiled = Tiled::new((device, device.tiles()), (Kernel::SlotGated, stack), rows, out)?;
        Ok(Self { tiled, way: Way::gated(activation, to.width), panels: stack.panels / count, by_row: true })
    }

    /// Slots of the tiles that so many are multiplied in, or are cut into.
    pub fn tile(&self, slots: usize) -> usize {
        self.tiled.fitting(slots).0
    }

    /// Of so many slots in tiles of that size.
    pub fn run(&self, pass: &mut Dispatches, (slots, tile): (usize, usize)) {
        let (_, pipeline) = self.tiled.fitting(tile);
        let Way { mode, stride, unit } = self.way;
        for part in &self.tiled.parts {
            let (length, width, by_row) = (self.tiled.length, self.tiled.width, usize::from(self.by_row));
            let of_part = [length, 0, slots, stride, part.first, 0, mode as usize, width];
            let asked = [&of_part[..], &[self.panels, part.panels, by_row]].concat();
            let asked: Vec<u32> = asked.into_iter().map(|n| n as u32).collect();
            pass.run((pipeline, &part.group), &asked, (slots, self.panels / unit));
        }
    }
}
