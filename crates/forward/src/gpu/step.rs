//! A kernel with its buffers: bound once, run in many passes. A dispatch passes at most sixteen
//! words of immediates.

use foretoken_model::error::Result;
use wgpu::{BindGroup, Buffer};

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::Kernel;
use super::pipelines::Pipeline;
use super::state::Rows;

/// A kernel and its buffers.
#[derive(Debug)]
pub struct Step {
    pipeline: Pipeline,
    group: BindGroup,
}

impl Step {
    /// Binds `buffers` in the order of the kernel's bindings.
    ///
    /// # Errors
    /// `Error::Compute` when the driver rejects the kernel.
    pub fn new(device: &GpuDevice, kernel: Kernel, buffers: &[&Buffer]) -> Result<Self> {
        let pipeline = device.pipelines().get(device, kernel)?;
        let group = bind(device, &pipeline, buffers)?;
        Ok(Self { pipeline, group })
    }

    /// Encodes a dispatch of `groups` workgroups in x and y.
    pub fn run(&self, pass: &mut Dispatches, params: &[u32], groups: [usize; 2]) {
        pass.run(&self.pipeline, &self.group, params, groups);
    }
}

/// Quantises rows of numbers to 8-bit blocks. Does nothing if rows are not whole blocks.
#[derive(Debug)]
pub struct Quantise {
    step: Step,
    /// Blocks per row.
    blocks: Option<usize>,
}

impl Quantise {
    /// # Errors
    /// As [`Step::new`].
    pub fn new(device: &GpuDevice, rows: &Rows) -> Result<Self> {
        let buffers = [&rows.plain, &rows.quants, &rows.scales];
        Ok(Self { step: Step::new(device, Kernel::Quantise, &buffers)?, blocks: rows.blocks })
    }

    /// Quantises the first `rows`.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        if let Some(blocks) = self.blocks {
            self.step.run(pass, &[rows as u32, blocks as u32], [(rows * blocks).div_ceil(64), 1]);
        }
    }
}

pub(super) fn bind(device: &GpuDevice, pipeline: &Pipeline, buffers: &[&Buffer]) -> Result<BindGroup> {
    let buffers = (0u32..).zip(buffers);
    let entries = buffers
        .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() });
    let entries: Vec<_> = entries.collect();
    let layout = pipeline.raw.get_bind_group_layout(0);
    let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries };
    device.guarded(|| device.raw().create_bind_group(&descriptor))
}
