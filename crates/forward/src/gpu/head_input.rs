//! Input of a draft head's pass on the device: the target's states are fused into one, or the
//! head's own state continues, and either is concatenated with the token's embedding (Li et al.
//! 2025). An MTP block projects both to one state (DeepSeek-AI 2024). Norms before that run on the
//! CPU, with the CPU engine's functions.

use std::ops::Range;

use foretoken_model::error::Result;
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
use crate::cpu::head::{Eagle3, Mtp};
use crate::cpu::network as cpu;
use crate::cpu::reference::rms_norm;
use crate::cpu::simd::LANES;
use crate::tree::TokenTree;
use crate::{Features, HeadInput, MediaRows};

/// Kernels of a head that drafts token by token.
pub struct HeadInputSteps {
    hidden: usize,
    epsilon: f32,
    normed_residual: bool,
    embedding_norm: Vec<f32>,
    way: Way,
    /// Concatenated embedding and state.
    halves: (usize, Buffer), // width of a row; [rows, width]
    concat: Step,
}

/// Work before or after both halves are concatenated.
enum Way {
    /// An EAGLE-3 head fuses the target's states before. Its attention reads both halves.
    Eagle3 {
        /// Norms before fusion: one over all states, one per state, or none.
        norms: Vec<Vec<f32>>,
        states: Rows,
        quantise: Quantise,
        fuse: Product,
    },
    /// An MTP block projects both halves to the state that enters its layer.
    Mtp(Product),
}

/// Rows of a head's pass whose inputs are uploaded.
pub struct HeadRows<'a> {
    pub tree: &'a TokenTree,
    pub nodes: Range<usize>,
    /// Embeddings of pictures among the nodes.
    pub media: &'a MediaRows,
    pub head_input: HeadInput<'a>,
    /// Rows of the head input.
    pub rows: Range<usize>,
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
        let project =
            |matrix: Matrix, from: &Rows| Product::new(device, &[matrix], from, Out::Store(&state.hidden));
        let (way, embedding_norm, state_norm, normed_residual) = match head.eagle3() {
            Some(options) => {
                let of_head = Eagle3::load(weights, head, *options)?;
                let states = Rows::new(device, ROWS, head.states())?;
                let quantise = Quantise::new(device, &states)?;
                let fuse = project(Matrix::upload(device, &of_head.fuse)?, &states)?;
                let way = Way::Eagle3 { norms: of_head.fused_norms, states, quantise, fuse };
                let embedding_norm = cpu::vector(weights, "blk.0.attn_norm.weight")?;
                (way, embedding_norm, of_head.state_norm, of_head.normed_residual)
            }
            None => {
                let Mtp { eh_proj, embedding_norm, state_norm } = Mtp::load(weights)?;
                let way = Way::Mtp(project(Matrix::upload(device, &eh_proj)?, rows)?);
                (way, embedding_norm, state_norm, false)
            }
        };
        let norm = device.buffer(4 * state_norm.len())?;
        device.write(&norm, state_norm.iter().map(|number| number.to_bits()));
        let concat = [&state.hidden, &norm, &rows.plain, &rows.quants, &rows.scales];
        Ok(Some(Self {
            hidden: config.hidden,
            epsilon: config.norm_epsilon as f32,
            normed_residual,
            embedding_norm,
            way,
            halves: (rows.width, rows.plain.clone()),
            concat: Step::new(device, Kernel::Concat, &concat)?,
        }))
    }

    /// Returns whether attention reads both halves, in place of a norm.
    pub fn feeds_attention(&self) -> bool {
        matches!(self.way, Way::Eagle3 { .. })
    }

    /// Uploads the embeddings of the nodes, pictures among them, and the rows of the head input.
    pub fn write(&self, device: &GpuDevice, network: &Network, state: &State, of: HeadRows<'_>) {
        let HeadRows { tree, nodes, media, head_input, rows } = of;
        let (width, halves) = &self.halves;
        let Some(embedding) = &network.embedding else { unreachable!("a head's embedding is not here") };
        let mut embeddings = vec![0.0; rows.len() * width];
        for (node, row) in nodes.zip(embeddings.chunks_exact_mut(*width)) {
            let row = &mut row[..self.hidden];
            match media.row(node) {
                Some(picture) => {
                    row.iter_mut().zip(picture).for_each(|(number, half)| *number = half.to_f32());
                }
                None => embedding.unpack_row(tree.token(node) as usize, row),
            }
            self.normalise(row, &self.embedding_norm);
        }
        device.write(halves, embeddings.into_iter().map(f32::to_bits));
        match (&self.way, head_input) {
            (Way::Eagle3 { norms, states, .. }, HeadInput::Target(features)) => {
                self.write_states(device, features, rows, norms, &states.plain, states.width);
            }
            (_, HeadInput::Own(features) | HeadInput::Target(features)) => {
                let width = self.hidden.next_multiple_of(LANES);
                self.write_states(device, features, rows, &[], &state.hidden, width);
            }
        }
    }

    /// Uploads `rows` of the states to a buffer with rows of a width, after these norms of their
    /// parts.
    fn write_states(
        &self,
        device: &GpuDevice,
        features: Features<'_>,
        rows: Range<usize>,
        norms: &[Vec<f32>],
        to: &Buffer,
        width: usize,
    ) {
        let mut states = vec![0.0; rows.len() * width];
        for (row, out) in rows.zip(states.chunks_exact_mut(width)) {
            let out = &mut out[..features.width()];
            out.copy_from_slice(features.row(row));
            if let Some(part) = out.len().checked_div(norms.len()) {
                let parts = out.chunks_exact_mut(part).zip(norms);
                parts.for_each(|(part, norm)| self.normalise(part, norm));
            }
        }
        device.write(to, states.into_iter().map(f32::to_bits));
    }

    fn normalise(&self, numbers: &mut [f32], weight: &[f32]) {
        numbers.copy_from_slice(&rms_norm(numbers, &weight[..numbers.len()], self.epsilon));
    }

    /// Computes the input of attention or of the first layer for the first `rows` uploaded rows. If
    /// `fuse`, an EAGLE-3 head fuses states of the target first.
    pub fn run(&self, pass: &mut Dispatches, rows: usize, fuse: bool) {
        if let (true, Way::Eagle3 { quantise, fuse, .. }) = (fuse, &self.way) {
            quantise.run(pass, rows);
            fuse.run(pass, rows);
        }
        let stride = self.hidden.next_multiple_of(LANES);
        let params = [self.hidden as u32, stride as u32, self.halves.0 as u32, 0];
        let params = [&params[..], &[self.epsilon.to_bits(), u32::from(self.normed_residual)]].concat();
        self.concat.run(pass, &params, [rows, 1]);
        if let Way::Mtp(project) = &self.way {
            project.run(pass, rows);
        }
    }
}
