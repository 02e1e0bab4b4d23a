//! Embedding lookup on the device, for models whose output matrix is also the embedding.

use foretoken_model::error::Result;
use wgpu::Buffer;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::Kernel;
use super::matrix::Matrix;
use super::step::Step;
use crate::cpu::simd::LANES;

/// Lookup of matrix rows.
pub struct Embed {
    /// For each part of the matrix its kernel, its first panel and its number of panels.
    parts: Vec<(Step, usize, usize)>,
    length: usize,
    /// Stride of output rows.
    stride: usize,
    scale: f32,
}

impl Embed {
    /// Binds a lookup of rows `tokens` of `matrix`, times `scale`, into `out`.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn new(
        device: &GpuDevice,
        matrix: &Matrix,
        tokens: &Buffer,
        out: &Buffer,
        scale: f32,
    ) -> Result<Self> {
        let parts = matrix.parts.iter().map(|part| {
            let step = Step::new(device, Kernel::Embed(matrix.format), &[&part.weights, tokens, out])?;
            Ok((step, part.first, part.panels))
        });
        let stride = matrix.inputs.next_multiple_of(LANES);
        Ok(Self { parts: parts.collect::<Result<_>>()?, length: matrix.length(), stride, scale })
    }

    /// Looks up the first `rows` tokens.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        for (step, first, panels) in &self.parts {
            let sizes = [self.length, self.stride, *first, *panels].map(|n| n as u32);
            let params = [&sizes[..], &[self.scale.to_bits()]].concat();
            step.run(pass, &params, [self.length.div_ceil(64), rows]);
        }
    }
}
