//! Compute pass that is being encoded, with a count of its dispatches.

use std::sync::Arc;

use wgpu::{BindGroup, CommandEncoder, ComputePass};

use super::device::GpuDevice;
use super::kernels::IMMEDIATE_BYTES;
use super::pipelines::Pipeline;
use super::timestamps::{Dispatch, Timestamps};

/// Compute pass under construction.
pub struct Dispatches {
    pass: ComputePass<'static>,
    pub count: usize,
    timestamps: Option<Arc<Timestamps>>,
}

impl Dispatches {
    /// Begins a compute pass. `encoder` accepts nothing else until this is dropped.
    pub fn begin(device: &GpuDevice, encoder: &mut CommandEncoder) -> Self {
        let mut pass = encoder.begin_compute_pass(&Default::default()).forget_lifetime();
        let timestamps = device.timestamps();
        if let Some(timestamps) = &timestamps {
            timestamps.mark(&mut pass, None);
        }
        Self { pass, count: 0, timestamps }
    }

    /// Encodes a dispatch: pipeline, buffers, immediates, and workgroups in x and y.
    pub fn run(
        &mut self,
        pipeline: &Pipeline,
        group: &BindGroup,
        params: &[u32],
        [across, down]: [usize; 2],
    ) {
        let mut bytes = [0u8; IMMEDIATE_BYTES as usize];
        for (to, word) in bytes.chunks_exact_mut(4).zip(params) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        self.pass.set_pipeline(&pipeline.raw);
        self.pass.set_bind_group(0, group, &[]);
        self.pass.set_immediates(0, &bytes);
        self.pass.dispatch_workgroups(across as u32, down as u32, 1);
        self.count += 1;
        if let Some(timestamps) = &self.timestamps {
            let dispatch = Dispatch { kernel: pipeline.kernel, groups: [across, down] };
            timestamps.mark(&mut self.pass, Some(dispatch));
        }
    }
}
