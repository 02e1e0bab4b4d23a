//! Outputs of a pass beside scores: tapped states, and what a head that drafts blocks needs for
//! rescoring.

use foretoken_model::ModelConfig;
use foretoken_model::error::Result;
use wgpu::Buffer;

use super::block::Block;
use super::device::GpuDevice;
use super::recording::Recording;
use super::state::State;
use crate::Taps;
use crate::cpu::simd::LANES;

/// Buffers through which outputs are downloaded.
pub struct OutputBuffers {
    /// Tapped states, `[taps, rows, hidden in whole vectors]`.
    pub states: Buffer,
    through: [Buffer; 3],
    /// Numbers of each output in this pass.
    counts: [usize; 3],
}

/// Outputs of all chunks of a pass.
#[derive(Default)]
pub struct Outputs {
    pub features: Vec<f32>, // [nodes, tapped]
    /// Position factors of the scored rows, in a head that drafts blocks, and their normed states.
    pub position_factors: Vec<f32>, // [requested rows, rank in whole vectors]
    pub scored: Vec<f32>,   // [requested rows, hidden in whole vectors]
}

impl OutputBuffers {
    /// # Errors
    /// `Error::Compute` when the device has no room, as of the others.
    pub fn new(device: &GpuDevice) -> Result<Self> {
        let way = || device.readable(16);
        Ok(Self { states: device.buffer(16)?, through: [way()?, way()?, way()?], counts: [0; 3] })
    }

    /// Makes room for the outputs of `rows` rows, of which `scored` are scored.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn prepare(
        &mut self,
        device: &GpuDevice,
        config: &ModelConfig,
        taps: Option<&Taps>,
        block: Option<&Block>,
        rows: usize,
        scored: usize,
    ) -> Result<()> {
        let width = config.hidden.next_multiple_of(LANES);
        let tapped = taps.map_or(0, |taps| taps.states());
        let rank = block.map_or(0, Block::rank);
        let of_state = block.map_or(0, |block| if block.head.reads_states() { width } else { 0 });
        self.counts = [tapped * rows * width, scored * rank, scored * of_state];
        for (buffer, count) in self.through.iter_mut().zip(self.counts) {
            device.grow(buffer, count)?;
        }
        if self.states.size() < 4 * self.counts[0] as u64 {
            self.states = device.buffer(4 * self.counts[0])?;
        }
        Ok(())
    }

    /// Encodes the copies to readable buffers.
    pub fn copy_out(&self, recording: &mut Recording<'_>, state: &State, block: Option<&Block>) {
        let position_factors = block.map_or(&self.states, |block| &block.position_factors);
        let sources = [&self.states, position_factors, &state.scored.plain];
        for ((from, to), count) in sources.into_iter().zip(&self.through).zip(self.counts) {
            recording.copy(from, to, 0, 4 * count as u64);
        }
    }

    /// Waits for the outputs and appends them to `to`.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    pub fn collect(
        &self,
        device: &GpuDevice,
        config: &ModelConfig,
        taps: Option<&Taps>,
        rows: usize,
        to: &mut Outputs,
    ) -> Result<()> {
        let [states, position_factors, scored] = self.counts;
        if states > 0 {
            let width = config.hidden.next_multiple_of(LANES);
            let states = device.fetch(&self.through[0], states)?;
            // The last tap is the final norm, which is not scaled.
            let states_of_layers = taps.map_or(0, |taps| taps.entering.len());
            let tapped = taps.map_or(0, |taps| taps.states());
            for (row, tap) in (0..rows).flat_map(|row| (0..tapped).map(move |tap| (row, tap))) {
                let at = (tap * rows + row) * width;
                let scale = if tap < states_of_layers { config.state_scale } else { 1.0 };
                to.features.extend(states[at..at + config.hidden].iter().map(|number| number * scale));
            }
        }
        for (numbers, at, count) in
            [(&mut to.position_factors, 1, position_factors), (&mut to.scored, 2, scored)]
        {
            if count > 0 {
                numbers.extend(device.fetch(&self.through[at], count)?);
            }
        }
        Ok(())
    }
}
