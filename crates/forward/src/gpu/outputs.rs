//! Outputs of a pass beside scores: tapped states, and what a head that drafts blocks needs for
//! rescoring.

use foretoken_model::ModelConfig;
use foretoken_model::error::Result;
use wgpu::Buffer;

use super::block::Block;
use super::device::GpuDevice;
use super::kv_rows;
use super::recording::Recording;
use super::state::State;
use crate::Taps;
use crate::cpu::simd::LANES;

/// Buffers through which outputs are downloaded.
pub struct OutputBuffers {
    /// Tapped states, `[taps, rows, width in whole vectors]`.
    pub states: Buffer,
    /// Keys and values of the tapped layers, `[rows, kv_rows::width]`.
    pub cached: Buffer,
    through: [Buffer; 4],
    /// Numbers of each output in this pass.
    counts: [usize; 4],
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
        let through = [way()?, way()?, way()?, way()?];
        Ok(Self { states: device.buffer(16)?, cached: device.buffer(16)?, through, counts: [0; 4] })
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
        let tapped = taps.map_or(0, |taps| taps.states() * config.carried().next_multiple_of(LANES));
        let rank = block.map_or(0, Block::rank);
        let of_state = block.map_or(0, |block| if block.head.reads_states() { width } else { 0 });
        let cached = taps.map_or(0, |taps| kv_rows::width(config, taps));
        self.counts = [tapped * rows, scored * rank, scored * of_state, cached * rows];
        for (buffer, count) in self.through.iter_mut().zip(self.counts) {
            device.grow(buffer, count)?;
        }
        for (buffer, count) in [(&mut self.states, self.counts[0]), (&mut self.cached, self.counts[3])] {
            if buffer.size() < 4 * count as u64 {
                *buffer = device.buffer(4 * count)?;
            }
        }
        Ok(())
    }

    /// Encodes the copies to readable buffers.
    pub fn copy_out(&self, recording: &mut Recording<'_>, state: &State, block: Option<&Block>) {
        let position_factors = block.map_or(&self.states, |block| &block.position_factors);
        let sources = [&self.states, position_factors, &state.scored.plain, &self.cached];
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
        let [states, position_factors, scored, cached] = self.counts;
        if states + cached > 0 {
            let (own, width) = (config.carried(), config.carried().next_multiple_of(LANES));
            let states = self.fetch(device, 0)?;
            let cached = self.fetch(device, 3)?;
            // The last tap is the final norm, which is not scaled.
            let states_of_layers = taps.map_or(0, |taps| taps.entering.len());
            let tapped = taps.map_or(0, |taps| taps.states());
            for row in 0..rows {
                for tap in 0..tapped {
                    let at = (tap * rows + row) * width;
                    let scale = if tap < states_of_layers { config.state_scale } else { 1.0 };
                    to.features.extend(states[at..at + own].iter().map(|number| number * scale));
                }
                let of_row = cached.len() / rows;
                to.features.extend(&cached[row * of_row..][..of_row]);
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

    /// Numbers of an output of this pass.
    fn fetch(&self, device: &GpuDevice, index: usize) -> Result<Vec<f32>> {
        match self.counts[index] {
            0 => Ok(Vec::new()),
            count => device.fetch(&self.through[index], count),
        }
    }
}
