//! Matrix products on the device: matrices bound to their input rows and outputs, with kernels for
//! tiles of every size. The number of rows selects the kernel.

use std::ops::Range;

use foretoken_model::Activation;
use foretoken_model::error::Result;
use wgpu::{BindGroup, Buffer};

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::{Kernel, NONE};
use super::matrix::{GATED_PANELS, Matrix};
use super::pipelines::Pipeline;
use super::state::Rows;
use super::step::bind;
use crate::cpu::panels::Format;
use crate::cpu::simd::LANES;

/// Kernels for tiles of every size, bound to the parts of a matrix.
#[derive(Debug)]
struct Tiled {
    /// Pipelines with their rows per tile, smallest first.
    pipelines: Vec<(usize, Pipeline)>,
    parts: Vec<Bound>,
    /// Length of an input row: 8-bit blocks, or numbers.
    length: usize,
    /// Width of an input row.
    width: usize,
}

/// A part of a matrix: buffers, first panel and number of panels.
#[derive(Debug)]
struct Bound {
    group: BindGroup,
    first: usize,
    panels: usize,
}

/// Treatment of the sums, and layout of the outputs.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// Mode of the kernel, as its source defines it.
    mode: u32,
    /// Stride of output rows.
    stride: usize,
    /// Gate and up are interleaved.
    is_gated: bool,
}

impl Tiled {
    /// Binds a matrix. `out` is the kernel's first output; `others` are bound after the rows.
    fn new(
        device: &GpuDevice,
        tiles: &[usize],
        kernel: fn(Format, usize) -> Kernel,
        matrix: &Matrix,
        rows: &Rows,
        out: &Buffer,
        others: &[&Buffer],
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

    /// Kernel for tiles of at least `rows` rows, or the largest one, with its rows per tile.
    fn fitting(&self, rows: usize) -> &(usize, Pipeline) {
        let largest = &self.pipelines[self.pipelines.len() - 1];
        self.pipelines.iter().find(|(size, _)| *size >= rows).unwrap_or(largest)
    }
}

impl Way {
    fn of(mode: u32, stride: usize) -> Self {
        Self { mode, stride, is_gated: false }
    }

    fn gated(activation: Activation, stride: usize) -> Self {
        Self { mode: activation_mode(activation), stride, is_gated: true }
    }

    /// Panels of a workgroup.
    fn unit(self, pipeline: &Pipeline) -> usize {
        if self.is_gated { GATED_PANELS } else { pipeline.lanes.count() / LANES }
    }
}

/// Mode that selects the activation in `activation.wgsl`.
pub fn activation_mode(activation: Activation) -> u32 {
    match activation {
        Activation::Silu => 0,
        Activation::Gelu => 1,
        Activation::Clamped => 2,
    }
}

/// Output of a product.
#[derive(Debug, Clone, Copy)]
pub enum Out<'a> {
    /// Overwrites the numbers.
    Store(&'a Buffer),
    /// Adds to the numbers.
    Add(&'a Buffer),
}

/// Product of matrices, stacked vertically, with rows.
#[derive(Debug)]
pub struct Product {
    /// Matrices, each with the number of panels above it.
    matrices: Vec<(usize, Tiled)>,
    way: Way,
}

impl Product {
    /// Binds `out = matrices * rows` or `out += matrices * rows`.
    ///
    /// # Errors
    /// `Error::Compute` when the driver rejects a kernel, as for the other constructors.
    pub fn new(device: &GpuDevice, matrices: &[Matrix], rows: &Rows, out: Out<'_>) -> Result<Self> {
        Self::in_tiles(device, device.tiles(), matrices, rows, out)
    }

    /// Does what [`Self::new`] does, with kernels only for these tile sizes.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn in_tiles(
        device: &GpuDevice,
        tiles: &[usize],
        matrices: &[Matrix],
        rows: &Rows,
        out: Out<'_>,
    ) -> Result<Self> {
        let (Out::Store(buffer) | Out::Add(buffer)) = out;
        let mut above = 0;
        let tiled = matrices.iter().map(|matrix| {
            let tiled = Tiled::new(device, tiles, Kernel::Product, matrix, rows, buffer, &[])?;
            above += matrix.panels;
            Ok((above - matrix.panels, tiled))
        });
        let matrices = tiled.collect::<Result<_>>()?;
        Ok(Self { matrices, way: Way::of(u32::from(matches!(out, Out::Add(_))), above * LANES) })
    }

    /// Binds `to = activation(gate * rows) * (up * rows)` for a matrix with gate and up
    /// interleaved. The result is written as numbers and in 8 bits.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn gated(
        device: &GpuDevice,
        interleave: &Matrix,
        rows: &Rows,
        to: &Rows,
        activation: Activation,
    ) -> Result<Self> {
        let (tiles, others) = (device.tiles(), [&to.quants, &to.scales]);
        let tiled = Tiled::new(device, tiles, Kernel::Gated, interleave, rows, &to.plain, &others)?;
        Ok(Self { matrices: vec![(0, tiled)], way: Way::gated(activation, to.width) })
    }

    /// Computes the first `rows`, in one tile if they fit.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        self.run_below(pass, rows, 0);
    }

    /// Computes the first `rows` for the panels from number `panel` on.
    pub fn run_below(&self, pass: &mut Dispatches, rows: usize, panel: usize) {
        self.run_in_tiles(pass, 0..rows, rows, panel);
    }

    /// Computes the first `rows` for the first `panels` panels.
    pub fn run_above(&self, pass: &mut Dispatches, rows: usize, panels: usize) {
        self.run_panels(pass, 0..rows, rows, 0..panels);
    }

    /// Computes `rows` in tiles of at least `tile` rows. Later tiles find the panels in the cache.
    pub fn run_in_tiles(&self, pass: &mut Dispatches, rows: Range<usize>, tile: usize, panel: usize) {
        self.run_panels(pass, rows, tile, panel..usize::MAX);
    }

    fn run_panels(&self, pass: &mut Dispatches, rows: Range<usize>, tile: usize, panels: Range<usize>) {
        let Way { mode, stride, .. } = self.way;
        for (above, matrix) in &self.matrices {
            let (size, pipeline) = matrix.fitting(tile);
            let unit = self.way.unit(pipeline);
            for part in &matrix.parts {
                let first = above + part.first;
                let [skip, end] =
                    [panels.start, panels.end].map(|panel| panel.saturating_sub(first).min(part.panels));
                let (length, width) = (matrix.length, matrix.width);
                let all = [length, rows.start, rows.end, stride, first, skip, mode as usize, width];
                let params = [&all[..], &[first + part.panels, end]].concat();
                let params: Vec<u32> = params.into_iter().map(|number| number as u32).collect();
                let groups = [rows.len().div_ceil(*size), (end - skip).div_ceil(unit)];
                pass.run(pipeline, &part.group, &params, groups);
            }
        }
    }
}

/// Parts of a slot product that lie at the slot's row, rather than at the slot.
#[derive(Debug, Clone, Copy)]
enum ByRow {
    Nothing,
    Inputs,
    InputsAndOutputs,
}

/// Product of each expert's matrix with its slots.
#[derive(Debug)]
pub struct SlotProduct {
    tiled: Tiled,
    way: Way,
    /// Panels of one expert's matrix.
    panels: usize,
    by_row: ByRow,
    /// Offset of the experts' biases, or [`NONE`].
    biases: u32,
}

impl SlotProduct {
    /// Binds `out = matrix * row` for each slot, with the matrices of `count` experts.
    ///
    /// # Errors
    /// As [`Product::new`].
    pub fn new(
        device: &GpuDevice,
        stack: &Matrix,
        count: usize,
        rows: &Rows,
        by_row: bool,
        out: &Buffer,
        slots: &Buffer,
    ) -> Result<Self> {
        let tiled = Tiled::new(device, device.tiles(), Kernel::SlotProduct, stack, rows, out, &[slots])?;
        let panels = stack.panels / count;
        let by_row = if by_row { ByRow::Inputs } else { ByRow::Nothing };
        Ok(Self { tiled, way: Way::of(0, panels * LANES), panels, by_row, biases: NONE })
    }

    /// Binds `out = matrix * row` for each row and head, with a matrix of each of `heads` heads.
    /// Rows of `out` are `stride` apart.
    ///
    /// # Errors
    /// As [`Product::new`].
    pub fn of_heads(
        device: &GpuDevice,
        stack: &Matrix,
        heads: usize,
        rows: &Rows,
        out: &Buffer,
        stride: usize,
        slots: &Buffer,
    ) -> Result<Self> {
        let product = Self::new(device, stack, heads, rows, true, out, slots)?;
        Ok(Self { way: Way::of(0, stride), by_row: ByRow::InputsAndOutputs, ..product })
    }

    /// Binds `to = activation(gate * row) * (up * row)` for each slot, with the interleaved
    /// matrices of `count` experts. `buffers` are the vectors and the slots.
    ///
    /// # Errors
    /// As [`Product::new`].
    pub fn gated(
        device: &GpuDevice,
        stack: &Matrix,
        count: usize,
        rows: &Rows,
        to: &Rows,
        buffers: [&Buffer; 2],
        activation: Activation,
    ) -> Result<Self> {
        let [vectors, slots] = buffers;
        let (tiles, others) = (device.tiles(), [&to.quants, &to.scales, vectors, slots]);
        let tiled = Tiled::new(device, tiles, Kernel::SlotGated, stack, rows, &to.plain, &others)?;
        let (way, panels) = (Way::gated(activation, to.width), stack.panels / count);
        Ok(Self { tiled, way, panels, by_row: ByRow::Inputs, biases: NONE })
    }

    /// Adds biases of gate and up, at this offset in the vectors.
    pub fn with_biases(self, biases: u32) -> Self {
        Self { biases, ..self }
    }

    /// Slots per tile of the kernel that runs `slots` slots.
    pub fn tile(&self, slots: usize) -> usize {
        self.tiled.fitting(slots).0
    }

    /// Computes `slots` slots in tiles of size `tile`.
    pub fn run(&self, pass: &mut Dispatches, slots: usize, tile: usize) {
        let (_, pipeline) = self.tiled.fitting(tile);
        let Way { mode, stride, .. } = self.way;
        let unit = self.way.unit(pipeline);
        for part in &self.tiled.parts {
            let (length, width, by_row) = (self.tiled.length, self.tiled.width, self.by_row as usize);
            let of_part = [length, 0, slots, stride, part.first, 0, mode as usize, width];
            let params = [&of_part[..], &[self.panels, part.panels, by_row]].concat();
            let params = params.into_iter().map(|n| n as u32).chain([self.biases]);
            let params: Vec<u32> = params.collect();
            pass.run(pipeline, &part.group, &params, [slots, self.panels.div_ceil(unit)]);
        }
    }
}
