//! A program with the buffers it works on: bound once, run in many passes. What it is asked for in a pass comes with it
//! as at most sixteen words.

use std::ops::Range;

use wgpu::{BindGroup, Buffer, ComputePass, ComputePipeline};

use super::device::GpuDevice;
use super::kernels::{IMMEDIATE_BYTES, Kernel};
use super::network::Matrix;
use super::state::Rows;
use crate::error::Result;
use crate::forward::cpu::simd::LANES;

/// A kernel and its buffers.
#[derive(Debug)]
pub struct Step {
    pipeline: ComputePipeline,
    group: BindGroup,
}

impl Step {
    /// `buffers` in the order of the kernel's bindings.
    ///
    /// # Errors
    /// `Error::Compute` when the driver does not take the kernel.
    pub fn new(device: &GpuDevice, kernel: Kernel, buffers: &[&Buffer]) -> Result<Self> {
        let pipeline = device.pipelines().get(device, kernel)?;
        let group = bind(device, &pipeline, buffers)?;
        Ok(Self { pipeline, group })
    }

    /// Runs `groups` of its workgroups, across and down.
    pub fn run(&self, pass: &mut ComputePass<'_>, asked: &[u32], groups: (usize, usize)) {
        dispatch(pass, (&self.pipeline, &self.group), asked, groups);
    }
}

/// Rounds rows of numbers to eight bits, where they can be had so.
#[derive(Debug)]
pub struct Quantise {
    step: Step,
    /// Of a row.
    blocks: Option<usize>,
}

impl Quantise {
    /// # Errors
    /// As [`Step::new`].
    pub fn new(device: &GpuDevice, rows: &Rows) -> Result<Self> {
        let buffers = [&rows.plain, &rows.quants, &rows.scales];
        Ok(Self { step: Step::new(device, Kernel::Quantise, &buffers)?, blocks: rows.blocks })
    }

    /// The first `rows`.
    pub fn run(&self, pass: &mut ComputePass<'_>, rows: usize) {
        if let Some(blocks) = self.blocks {
            let blocks = rows * blocks;
            self.step.run(pass, &[blocks as u32], (blocks.div_ceil(64), 1));
        }
    }
}

pub(super) fn bind(device: &GpuDevice, pipeline: &ComputePipeline, buffers: &[&Buffer]) -> Result<BindGroup> {
    let buffers = (0u32..).zip(buffers);
    let entries = buffers
        .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() });
    let entries: Vec<_> = entries.collect();
    let layout = pipeline.get_bind_group_layout(0);
    let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries };
    device.guarded(|| device.raw().create_bind_group(&descriptor))
}

pub(super) fn dispatch(
    pass: &mut ComputePass<'_>,
    (pipeline, group): (&ComputePipeline, &BindGroup),
    asked: &[u32],
    (across, down): (usize, usize),
) {
    let mut bytes = [0u8; IMMEDIATE_BYTES as usize];
    for (to, word) in bytes.chunks_exact_mut(4).zip(asked) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    pass.set_pipeline(pipeline);
    pass.set_bind_group(0, group, &[]);
    pass.set_immediates(0, &bytes);
    pass.dispatch_workgroups(across as u32, down as u32, 1);
}

/// A matrix with the rows it is multiplied with and where the result goes.
#[derive(Debug)]
pub struct Product {
    /// By the rows of their tiles, smallest first.
    pipelines: Vec<(usize, ComputePipeline)>,
    /// Of each part of the matrix its first panel and how many it has.
    parts: Vec<(BindGroup, usize, usize)>,
    /// Of a row: blocks in eight bits, or inputs.
    length: usize,
    /// Of the rows it is multiplied with.
    width: usize,
    /// Of a row that comes out.
    stride: usize,
    add: bool,
}

impl Product {
    /// `out = matrix * rows`, or added to it.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn new(device: &GpuDevice, matrix: &Matrix, rows: &Rows, out: &Buffer, add: bool) -> Result<Self> {
        let format = matrix.format;
        let make = |&tile| Ok((tile, device.pipelines().get(device, Kernel::Product(format, tile))?));
        let pipelines = device.tiles().iter().map(make).collect::<Result<Vec<_>>>()?;
        let parts = matrix.parts.iter().map(|part| {
            let [x, scales] = rows.given(format);
            let buffers = [&part.weights, out, x, scales];
            Ok((bind(device, &pipelines[0].1, &buffers)?, part.first, part.panels))
        });
        Ok(Self {
            parts: parts.collect::<Result<_>>()?,
            pipelines,
            length: if format.quantised() { matrix.inputs / 32 } else { matrix.inputs },
            width: rows.width,
            stride: matrix.rows.next_multiple_of(LANES),
            add,
        })
    }

    /// Of the first `rows`: in the largest tiles, and the rest in one that it fits in.
    pub fn run(&self, pass: &mut ComputePass<'_>, rows: usize) {
        let largest = self.pipelines.last().map_or(1, |(size, _)| *size);
        let rest = rows % largest;
        if rows > rest {
            self.run_in_tiles(pass, 0..rows - rest, largest);
        }
        if rest > 0 {
            self.run_in_tiles(pass, rows - rest..rows, rest);
        }
    }

    /// In tiles of as many rows, or the next larger ones.
    pub fn run_in_tiles(&self, pass: &mut ComputePass<'_>, rows: Range<usize>, tile: usize) {
        let fits = self.pipelines.iter().find(|(size, _)| *size >= tile).or(self.pipelines.last());
        let Some((size, pipeline)) = fits else { return };
        for (group, first, panels) in &self.parts {
            let asked = [
                self.length as u32,
                rows.start as u32,
                rows.end as u32,
                self.stride as u32,
                *first as u32,
                u32::from(self.add),
                self.width as u32,
            ];
            dispatch(pass, (pipeline, group), &asked, (*panels, rows.len().div_ceil(*size)));
        }
    }
}
