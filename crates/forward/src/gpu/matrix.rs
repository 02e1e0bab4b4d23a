//! Packed matrices on the device: the CPU engine's panels, byte for byte, in an order that suits
//! the kernels.

use std::num::NonZeroU64;

use foretoken_model::error::{Error, Result};
use wgpu::Buffer;

use super::device::GpuDevice;
use super::failure::failed;
use super::kernels::TILES;
use crate::cpu::panels::{Format, Panels};
use crate::cpu::simd::LANES;

/// Most rows for which a panel is unpacked once.
pub const TILE: usize = TILES[TILES.len() - 1];

/// Interleaved panels of gate and up that together give one quantised block of outputs.
pub const GATED_PANELS: usize = 4;

/// A matrix, or several with the same inputs, in parts that fit into a buffer.
#[derive(Debug)]
pub struct Matrix {
    pub format: Format,
    pub inputs: usize,
    pub panels: usize,
    pub parts: Vec<Part>,
}

/// Consecutive panels of a matrix, from number `first` on.
#[derive(Debug)]
pub struct Part {
    pub weights: Buffer,
    pub first: usize,
    pub panels: usize,
}

impl Matrix {
    /// Uploads a matrix.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room, as for the other constructors.
    pub fn upload(device: &GpuDevice, panels: &Panels) -> Result<Self> {
        Self::stack(device, &[panels])
    }

    /// Uploads matrices of the same shape, stacked vertically.
    ///
    /// # Errors
    /// `Error::NotOnGpu` for matrices in different formats.
    pub fn stack(device: &GpuDevice, matrices: &[&Panels]) -> Result<Self> {
        if !alike(matrices) {
            return Err(Error::NotOnGpu("experts whose matrices are in several formats"));
        }
        check_factors(matrices)?;
        let panels: Vec<&[u8]> = matrices.iter().flat_map(|matrix| all(matrix)).collect();
        Self::of(device, matrices[0], &panels, 1)
    }

    /// Uploads matrices stacked vertically; neighbours of the same format become one.
    pub fn below(device: &GpuDevice, matrices: &[&Panels]) -> Result<Vec<Self>> {
        let runs = matrices.chunk_by(|one, next| one.format() == next.format());
        runs.map(|run| Self::stack(device, run)).collect()
    }

    /// Uploads gates and ups with two panels of each interleaved. `None` if formats differ or two
    /// panels are not a whole block.
    pub fn interleave(device: &GpuDevice, gates: &[&Panels], ups: &[&Panels]) -> Result<Option<Self>> {
        let both = [gates, ups].concat();
        if !alike(&both) || both.iter().any(|matrix| !matrix.rows().is_multiple_of(2 * LANES)) {
            return Ok(None);
        }
        check_factors(&both)?;
        let panels: Vec<&[u8]> =
            gates.iter().zip(ups).flat_map(|(gate, up)| interleaved_panels(gate, up)).collect();
        Self::of(device, gates[0], &panels, GATED_PANELS).map(Some)
    }

    /// Uploads panels of the shape of those in `one`. Groups of `together` panels stay in one part.
    fn of(device: &GpuDevice, one: &Panels, panels: &[&[u8]], together: usize) -> Result<Self> {
        let size = one.panel(0).len();
        // A dispatch has at most 65,535 workgroups.
        let most = (device.largest_buffer() as usize / size).min(65_535) / together * together;
        let most = most.max(together);
        let part = |(index, panels): (usize, &[&[u8]])| {
            let bytes = panels.len() * size;
            let weights = device.buffer(bytes)?;
            let view = NonZeroU64::new(bytes as u64)
                .and_then(|bytes| device.queue().write_buffer_with(&weights, 0, bytes));
            let mut view =
                view.ok_or_else(|| failed("out of memory: no room to hand over weights".to_owned()))?;
            for (index, panel) in panels.iter().enumerate() {
                view.slice(index * size..(index + 1) * size).copy_from_slice(panel);
            }
            Ok(Part { weights, first: index * most, panels: panels.len() })
        };
        let parts = panels.chunks(most).enumerate().map(part).collect::<Result<_>>()?;
        Ok(Self { format: one.format(), inputs: one.inputs(), panels: panels.len(), parts })
    }

    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.weights.size()).sum()
    }

    /// Bytes that are unpacked for `rows` rows.
    pub fn reads(&self, rows: usize) -> u64 {
        rows.div_ceil(TILE) as u64 * self.bytes()
    }

    /// Length of an input row, in the kernels' units: 8-bit blocks or numbers.
    pub fn length(&self) -> usize {
        if self.format.quantised() { self.inputs / 32 } else { self.inputs }
    }
}

/// # Errors
/// `Error::NotOnGpu` for matrices whose products are multiplied by a number.
fn check_factors(matrices: &[&Panels]) -> Result<()> {
    match matrices.iter().all(|matrix| matrix.factor() == 1.0) {
        true => Ok(()),
        false => Err(Error::NotOnGpu("NVFP4 matrices with a scale of their own")),
    }
}

fn alike(matrices: &[&Panels]) -> bool {
    matrices.iter().all(|matrix| matrix.format() == matrices[0].format())
}

/// Interleaves two panels of the gate with two of up.
fn interleaved_panels<'a>(gate: &'a Panels, up: &'a Panels) -> impl Iterator<Item = &'a [u8]> {
    let two = |matrix: &'a Panels, first: usize| [matrix.panel(first), matrix.panel(first + 1)];
    (0..gate.panels()).step_by(2).flat_map(move |first| [two(gate, first), two(up, first)]).flatten()
}

fn all(matrix: &Panels) -> impl Iterator<Item = &[u8]> {
    (0..matrix.panels()).map(|panel| matrix.panel(panel))
}
