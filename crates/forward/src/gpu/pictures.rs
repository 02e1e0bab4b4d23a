//! Embeddings of pictures on the device, for models that look up embeddings there: they replace
//! those of their placeholders.

use std::ops::Range;

use foretoken_model::error::Result;
use wgpu::Buffer;

use super::device::GpuDevice;
use super::recording::Recording;
use crate::MediaRows;

/// Uploaded embeddings of a pass.
pub struct Pictures {
    /// First row of each run of pictures in the pass, and the run's embeddings.
    runs: Vec<(usize, Buffer)>,
    /// Numbers from one row of the hidden states to the next.
    width: usize,
}

impl Pictures {
    /// Uploads those among `nodes`, in rows of `width` numbers.
    ///
    /// # Errors
    /// As [`GpuDevice::buffer`].
    pub fn upload(device: &GpuDevice, media: &MediaRows, nodes: Range<usize>, width: usize) -> Result<Self> {
        let mut runs = Vec::new();
        let rows: Vec<usize> = (0..nodes.len()).collect();
        let is_picture = |row: &usize| media.row(nodes.start + row).is_some();
        for run in rows.chunk_by(|left, right| is_picture(left) == is_picture(right)) {
            if !is_picture(&run[0]) {
                continue;
            }
            let mut numbers = vec![0.0; run.len() * width];
            for (&row, out) in run.iter().zip(numbers.chunks_exact_mut(width)) {
                let embedding = media.row(nodes.start + row).unwrap_or_default();
                out.iter_mut().zip(embedding).for_each(|(number, half)| *number = half.to_f32());
            }
            let buffer = device.buffer(4 * numbers.len())?;
            device.write(&buffer, numbers.into_iter().map(f32::to_bits));
            runs.push((run[0], buffer));
        }
        Ok(Self { runs, width })
    }

    /// Copies them into the hidden states.
    pub fn copy(&self, recording: &mut Recording<'_>, hidden: &Buffer) {
        for (row, run) in &self.runs {
            recording.copy(run, hidden, (4 * row * self.width) as u64, run.size());
        }
    }
}
