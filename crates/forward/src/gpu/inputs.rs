//! Uploads of a pass before it runs: tokens or their embeddings, masks, and RoPE angles.

use std::ops::Range;

use foretoken_model::error::Result;
use foretoken_model::{ModelConfig, RopeTable};

use super::assistant::AssistantSteps;
use super::block::Block;
use super::chunk::Chunk;
use super::device::GpuDevice;
use super::head_input::{HeadInputSteps, HeadRows};
use super::network::Network;
use super::state::State;
use crate::cpu::panels::Panels;
use crate::cpu::reference::rms_norm;
use crate::cpu::simd::LANES;
use crate::grids::Position;
use crate::tree::TokenTree;
use crate::{HeadInput, MediaRows};

/// Destination of the uploads.
pub struct Inputs<'a> {
    pub device: &'a GpuDevice,
    pub config: &'a ModelConfig,
    pub network: &'a Network,
    pub state: &'a State,
    /// Parts of a draft head of either kind.
    pub head_steps: Option<&'a HeadInputSteps>,
    pub assistant: Option<&'a AssistantSteps>,
    pub block: Option<&'a Block>,
    /// Embeddings of pictures among the tree's nodes.
    pub media: &'a MediaRows,
    /// Positions of the rows by time, row and column; `None` for those of a text without pictures.
    pub places: Option<&'a [Position]>,
    /// The text is longer than [`ModelConfig::rope_switch_length`].
    pub long: bool,
}

impl Inputs<'_> {
    /// Uploads the inputs of a pass over `nodes`. `head_input` are a draft head's inputs and the
    /// range of their rows.
    ///
    /// # Errors
    /// Those of reading rows of tables.
    pub fn write(
        &self,
        tree: &TokenTree,
        positions: &[usize],
        nodes: Range<usize>,
        chunk: &Chunk,
        to: &wgpu::Buffer,
        head_input: Option<(HeadInput<'_>, Range<usize>)>,
    ) -> Result<()> {
        if let (Some(steps), Some(assistant), Some(head_input)) =
            (self.assistant, &self.network.assistant, &head_input)
        {
            let (head_input, rows) = head_input.clone();
            let of = HeadRows { tree, nodes: nodes.clone(), media: self.media, head_input, rows };
            steps.write(self.device, assistant, &of)?;
        }
        match (self.head_steps, self.block, head_input) {
            (Some(head_steps), _, Some((head_input, rows))) => {
                let of = HeadRows { tree, nodes: nodes.clone(), media: self.media, head_input, rows };
                head_steps.write(self.device, self.network, self.state, of);
            }
            (_, Some(block), Some((head_input, rows))) => {
                block.write(self.device, head_input.features(), rows)
            }
            _ => {
                if let Some(embedding) = &self.network.embedding {
                    self.embed(embedding, tree, nodes.clone());
                }
            }
        }
        if let (Some(inputs), Some(buffers)) = (&self.network.per_layer, &self.state.per_layer) {
            let mut rows = Vec::with_capacity(nodes.len() * buffers.columns);
            for node in nodes.clone() {
                // The table may have more layers than the model runs.
                let row = inputs.table.row(tree.token(node) as usize)?;
                rows.extend_from_slice(&row[..buffers.columns]);
            }
            self.device.write(&buffers.table, rows.into_iter().map(f32::to_bits));
        }
        if let Some(latent) = &self.state.latent {
            latent.write(self.device, self.config.heads, nodes.len());
        }
        self.device.write(to, chunk.words.iter().copied());
        self.device.write(&self.state.tokens, nodes.clone().map(|node| tree.token(node)));
        let [mut keys, mut queries] = [RopeTable::default(), RopeTable::default()];
        let positions = &positions[nodes];
        for (kind, to) in self.config.attention_kinds.iter().zip(&self.state.angles) {
            match self.places {
                None => kind.rotary.tabulate(positions, self.long, &mut keys),
                Some(places) => kind.rotary.tabulate_grid(places, self.long, &mut keys),
            }
            let queries = kind.rotary.attn_temperature.map(|temperature| {
                temperature.tabulate(positions, &keys, &mut queries);
                &queries
            });
            let angles = queries.into_iter().chain([&keys]);
            let numbers = angles.flat_map(|angles| angles.cosines.iter().zip(&angles.sines));
            self.device.write(to, numbers.flat_map(|(&cos, &sin)| [cos, sin]).map(f32::to_bits));
        }
        Ok(())
    }

    /// Looks up the embeddings of `nodes` and uploads them.
    fn embed(&self, embedding: &Panels, tree: &TokenTree, nodes: Range<usize>) {
        let (hidden, scale) = (self.config.hidden, self.config.embedding_scale);
        let width = hidden.next_multiple_of(LANES);
        let mut states = vec![0.0; nodes.len() * width];
        for (node, state) in nodes.zip(states.chunks_exact_mut(width)) {
            if let Some(picture) = self.media.row(node) {
                state.iter_mut().zip(picture).for_each(|(number, half)| *number = half.to_f32());
            } else {
                embedding.unpack_row(tree.token(node) as usize, &mut state[..hidden]);
                if scale != 1.0 {
                    state.iter_mut().for_each(|number| *number *= scale);
                }
            }
            if let Some(norm) = &self.network.embedding_norm {
                let epsilon = self.config.norm_epsilon as f32;
                let normed = rms_norm(&state[..hidden], &norm[..hidden], epsilon);
                state[..hidden].copy_from_slice(&normed);
            }
        }
        self.device.write(&self.state.hidden, states.into_iter().map(f32::to_bits));
    }
}
