//! Input of a draft head's pass on the device: the target's states are fused into one, or the
//! head's own state continues, and either is concatenated with the token's embedding (Li et al.
//! 2025). Norms before that run on the CPU, with the CPU engine's functions.

use std::ops::Range;

use foretoken_model::error::Result;
use foretoken_model::token::TokenId;
use foretoken_model::{ModelConfig, Weights};
use wgpu::Buffer;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::Kernel;
use super::matrix::Matrix;
use super::network::Network;
use super::product::{Out, Product};
use super::state::{ROWS, Rows, State};
use super::step::{Quantise, Step};
use crate::HeadInput;
use crate::cpu::head::Eagle3;
use crate::cpu::network as cpu;
use crate::cpu::reference::rms_norm;
use crate::cpu::simd::LANES;

/// Kernels of a head that drafts token by token.
pub struct HeadInputSteps {
    hidden: usize,
    epsilon: f32,
    normed_residual: bool,
    /// Norms before fusion: one over all states, one per state, or none.
    fused_norms: Vec<Vec<f32>>,
    embedding_norm: Vec<f32>,
    states: Rows,
    quantise: Quantise,
    fuse: Product,
    /// Concatenated embedding and state.
    halves: (usize, Buffer), // width of a row; [rows, width]
    concat: Step,
}

impl HeadInputSteps {
    /// Loads the head's parts; `None` for other models.
    ///
    /// # Errors
    /// As `Network::load`.
    pub fn load(
        device: &GpuDevice,
        weights: &Weights,
        config: &ModelConfig,
        state: &State,
    ) -> Result<Option<Self>> {
        let (Some(head), Some(rows)) = (&config.draft_head, &state.fused_input) else { return Ok(None) };
        let Some(options) = head.eagle3() else { return Ok(None) };
        let of_head = Eagle3::load(weights, head, *options)?;
        let states = Rows::new(device, ROWS, head.states())?;
        let norm = device.buffer(4 * of_head.state_norm.len())?;
        device.write(&norm, of_head.state_norm.iter().map(|number| number.to_bits()));
        let concat = [&state.hidden, &norm, &rows.plain, &rows.quants, &rows.scales];
        let fuse = Matrix::upload(device, &of_head.fuse)?;
        Ok(Some(Self {
            hidden: config.hidden,
            epsilon: config.norm_epsilon as f32,
            normed_residual: of_head.normed_residual,
            fused_norms: of_head.fused_norms,
            embedding_norm: cpu::vector(weights, "blk.0.attn_norm.weight")?,
            quantise: Quantise::new(device, &states)?,
            fuse: Product::new(device, &[fuse], &states, Out::Store(&state.hidden))?,
            halves: (rows.width, rows.plain.clone()),
            concat: Step::new(device, Kernel::Concat, &concat)?,
            states,
        }))
    }

    /// Uploads the embeddings of `tokens` and rows `rows` of the head inputs.
    pub fn write(
        &self,
        device: &GpuDevice,
        network: &Network,
        state: &State,
        tokens: impl Iterator<Item = TokenId>,
        head_input: HeadInput<'_>,
        rows: Range<usize>,
    ) {
        let (width, halves) = &self.halves;
        let Some(embedding) = &network.embedding else { unreachable!("a head's embedding is not here") };
        let mut embeddings = vec![0.0; rows.len() * width];
        for (token, row) in tokens.zip(embeddings.chunks_exact_mut(*width)) {
            embedding.unpack_row(token as usize, &mut row[..self.hidden]);
            self.normalise(&mut row[..self.hidden], &self.embedding_norm);
        }
        device.write(halves, embeddings.into_iter().map(f32::to_bits));
        let features = head_input.features();
        let (to, width) = match head_input {
            HeadInput::Own(_) => (&state.hidden, self.hidden.next_multiple_of(LANES)),
            HeadInput::Target(_) => (&self.states.plain, self.states.width),
        };
        let mut states = vec![0.0; rows.len() * width];
        for (row, out) in rows.zip(states.chunks_exact_mut(width)) {
            let out = &mut out[..features.width()];
            out.copy_from_slice(features.row(row));
            if let (HeadInput::Target(_), Some(part)) =
                (head_input, out.len().checked_div(self.fused_norms.len()))
            {
                let parts = out.chunks_exact_mut(part).zip(&self.fused_norms);
                parts.for_each(|(part, norm)| self.normalise(part, norm));
            }
        }
        device.write(to, states.into_iter().map(f32::to_bits));
    }

    fn normalise(&self, numbers: &mut [f32], weight: &[f32]) {
        numbers.copy_from_slice(&rms_norm(numbers, &weight[..numbers.len()], self.epsilon));
    }

    /// Computes attention's input for the first `rows` uploaded rows. If `fuse`, states of the
    /// target are fused first.
    pub fn run(&self, pass: &mut Dispatches, rows: usize, fuse: bool) {
        if fuse {
            self.quantise.run(pass, rows);
            self.fuse.run(pass, rows);
        }
        let stride = self.hidden.next_multiple_of(LANES);
        let params = [self.hidden as u32, stride as u32, self.halves.0 as u32, 0];
        let params = [&params[..], &[self.epsilon.to_bits(), u32::from(self.normed_residual)]].concat();
        self.concat.run(pass, &params, [rows, 1]);
    }
}
