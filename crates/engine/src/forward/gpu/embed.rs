//! What a pass begins with, where the output matrix is the embedding as well: its rows, looked up on the device.

use wgpu::Buffer;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::Kernel;
use super::matrix::Matrix;
use super::step::Step;
use crate::error::Result;
use crate::forward::cpu::simd::LANES;

/// Looks up rows of a matrix.
pub struct Embed {
    /// Of each part its first panel and how many it has.
    parts: Vec<(Step, usize, usize)>,
    length: usize,
    /// Of a row that comes out.
    stride: usize,
    scale: f32,
}

impl Embed {
    /// Rows `tokens` of `matrix` times `scale`, to `out`.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn new(
        device: &GpuDevice,
        matrix: &Matrix,
        (tokens, out): (&Buffer, &Buffer),
        scale: f32,
    ) -> Result<Self> {
        let parts = matrix.parts.iter().map(|part| {
            let step = Step::new(device, Kernel::Embed(matrix.format), &[&part.weights, tokens, out])?;
            Ok((step, part.first, part.panels))
        });
        let stride = matrix.inputs.next_multiple_of(LANES);
        Ok(Self { parts: parts.collect::<Result<_>>()?, length: matrix.length(), stride, scale })
    }

    /// The first `rows`.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        for (step, first, panels) in &self.parts {
            let sizes = [self.length, self.stride, *first, *panels].map(|n| n as u32);
            let asked = [&sizes[..], &[self.scale.to_bits()]].concat();
            step.run(pass, &asked, (self.length.div_ceil(64), rows));
        }
    }
}
