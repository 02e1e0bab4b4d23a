//! Embeddings of pictures on the device. They replace those of their placeholders, where embeddings
//! are looked up there, and some are added to states after the first layers (DeepStack).

use std::ops::Range;

use foretoken_model::error::Result;
use half::f16;
use wgpu::Buffer;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::Kernel;
use super::recording::Recording;
use super::step::Step;
use crate::MediaRows;
use crate::cpu::simd::LANES;

/// Uploaded embeddings of a pass.
pub struct Pictures {
    /// Rows that replace embeddings: the first row of each run of pictures, and its numbers.
    replaced: Vec<(usize, Buffer)>,
    added: Vec<Added>,
    /// Numbers of a row.
    hidden: usize,
}

/// Rows that are added to a run of states after a layer.
struct Added {
    layer: usize,
    first: usize,
    rows: usize,
    step: Step,
}

/// Embeddings of pictures among the nodes of a pass.
pub struct Uploaded<'a> {
    pub media: &'a MediaRows,
    pub nodes: Range<usize>,
    pub hidden: usize,
    /// Embeddings are looked up on the device.
    pub looked_up: bool,
}

impl Uploaded<'_> {
    /// Uploads the embeddings; `state` are the states to which some are added.
    ///
    /// # Errors
    /// As [`GpuDevice::buffer`] and [`Step::new`].
    pub fn upload(&self, device: &GpuDevice, state: &Buffer) -> Result<Pictures> {
        let mut pictures = Pictures { replaced: Vec::new(), added: Vec::new(), hidden: self.hidden };
        let rows: Vec<usize> = (0..self.nodes.len()).collect();
        let is_picture = |row: &usize| self.media.row(self.nodes.start + row).is_some();
        for run in rows.chunk_by(|left, right| is_picture(left) == is_picture(right)) {
            if !is_picture(&run[0]) {
                continue;
            }
            if self.looked_up {
                pictures.replaced.push((run[0], self.buffer(device, run, |node| self.media.row(node))?));
            }
            for layer in (0..).take_while(|&layer| self.media.adds(layer)) {
                let added = self.buffer(device, run, |node| self.media.added(node, layer))?;
                let step = Step::new(device, Kernel::AddRows, &[&added, state])?;
                pictures.added.push(Added { layer, first: run[0], rows: run.len(), step });
            }
        }
        Ok(pictures)
    }

    /// Uploads the numbers of these rows.
    fn buffer<'a>(
        &self,
        device: &GpuDevice,
        rows: &[usize],
        of: impl Fn(usize) -> Option<&'a [f16]>,
    ) -> Result<Buffer> {
        let width = self.hidden.next_multiple_of(LANES);
        let mut numbers = vec![0.0; rows.len() * width];
        for (&row, out) in rows.iter().zip(numbers.chunks_exact_mut(width)) {
            let halves = of(self.nodes.start + row).unwrap_or_default();
            out.iter_mut().zip(halves).for_each(|(number, half)| *number = half.to_f32());
        }
        let buffer = device.buffer(4 * numbers.len())?;
        device.write(&buffer, numbers.into_iter().map(f32::to_bits));
        Ok(buffer)
    }
}

impl Pictures {
    /// Copies those that replace embeddings into the hidden states.
    pub fn copy(&self, recording: &mut Recording<'_>, hidden: &Buffer) {
        let width = self.hidden.next_multiple_of(LANES);
        for (row, run) in &self.replaced {
            recording.copy(run, hidden, (4 * row * width) as u64, run.size());
        }
    }

    /// Adds those for the states after `layer`.
    pub fn add(&self, pass: &mut Dispatches, layer: usize) {
        let width = self.hidden.next_multiple_of(LANES);
        for added in self.added.iter().filter(|added| added.layer == layer) {
            let params = [self.hidden, width, added.first].map(|number| number as u32);
            added.step.run(pass, &params, [self.hidden.div_ceil(64), added.rows]);
        }
    }
}
