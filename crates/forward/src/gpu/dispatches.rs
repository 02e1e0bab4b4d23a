//! Compute pass that is being encoded, with a count of its dispatches.

use wgpu::{BindGroup, CommandEncoder, ComputePass, ComputePipeline};

use super::kernels::IMMEDIATE_BYTES;

/// Compute pass under construction.
pub struct Dispatches {
    pass: ComputePass<'static>,
    pub count: usize,
}

impl Dispatches {
    /// Begins a compute pass. `encoder` accepts nothing else until this is dropped.
    pub fn begin(encoder: &mut CommandEncoder) -> Self {
        Self { pass: encoder.begin_compute_pass(&Default::default()).forget_lifetime(), count: 0 }
    }

    /// Encodes a dispatch: pipeline, buffers, immediates, and workgroups in x and y.
    pub fn run(
        &mut self,
        pipeline: &ComputePipeline,
        group: &BindGroup,
        params: &[u32],
        [across, down]: [usize; 2],
    ) {
        let mut bytes = [0u8; IMMEDIATE_BYTES as usize];
        for (to, word) in bytes.chunks_exact_mut(4).zip(params) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        self.pass.set_pipeline(pipeline);
        self.pass.set_bind_group(0, group, &[]);
        self.pass.set_immediates(0, &bytes);
        self.pass.dispatch_workgroups(across as u32, down as u32, 1);
        self.count += 1;
    }
}
