//! Passes of an assistant on the device: it attends to the target's cached keys and values, takes
//! the target's embedding and a hidden state as input, and returns the hidden state for the next
//! step.

use foretoken_model::ModelConfig;
use foretoken_model::error::Result;
use wgpu::Buffer;

use super::clusters::ClusterSteps;
use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::head_input::HeadRows;
use super::kv_rows::KvColumns;
use super::matrix::Matrix;
use super::memory::Memory;
use super::network::Network;
use super::product::{Out, Product};
use super::state::{ROWS, Rows, State};
use super::step::Quantise;
use crate::cpu::assistant::Assistant;
use crate::cpu::simd::LANES;
use crate::{Features, HeadInput};

/// Kernels of an assistant before and after its layers.
pub struct AssistantSteps {
    /// First layer of each kind of attention, which has the cache.
    layers: Vec<usize>,
    /// Width of the target's embeddings and states, and factor of the embeddings.
    carried: usize,
    scale: f32,
    /// Embedding and state side by side.
    input: Rows, // 2 * carried
    quantise: Quantise,
    enter: Product,
    leave: Product,
    /// States for the next step.
    pub states: Buffer, // [rows, carried in whole vectors]
    /// The target's keys and values.
    kv: Buffer, // [rows, those of all kinds]
    pub clusters: Option<ClusterSteps>,
}

impl AssistantSteps {
    /// Binds the kernels; `None` for other models.
    ///
    /// # Errors
    /// As `Network::load`.
    pub fn load(
        device: &GpuDevice,
        network: &Network,
        state: &State,
        config: &ModelConfig,
    ) -> Result<Option<Self>> {
        let Some(assistant) = &network.assistant else { return Ok(None) };
        let carried = config.carried();
        let upload = |panels| Result::Ok([Matrix::upload(device, panels)?]);
        let input = Rows::new(device, ROWS, 2 * carried)?;
        let states = device.buffer(4 * ROWS * carried.next_multiple_of(LANES))?;
        let [enter, leave] = [upload(&assistant.pre_projection)?, upload(&assistant.post_projection)?];
        let kind_of = |layer: &usize| config.layers[*layer].mixer.attention_kind();
        let kinds = 0..config.attention_kinds.len();
        let layers = kinds.filter_map(|kind| (0..config.depth()).find(|layer| kind_of(layer) == Some(kind)));
        let seen: usize = config.attention_kinds.iter().map(|kind| kind.keys.cached()).sum();
        let clusters = assistant.clusters.as_ref();
        let clusters = clusters.map(|clusters| ClusterSteps::new(device, clusters, network, state, config));
        Ok(Some(Self {
            layers: layers.collect(),
            carried,
            scale: config.embedding_scale,
            quantise: Quantise::new(device, &input)?,
            enter: Product::new(device, &enter, &input, Out::Store(&state.hidden))?,
            leave: Product::new(device, &leave, &state.normed, Out::Store(&states))?,
            input,
            states,
            kv: device.buffer(4 * ROWS * seen)?,
            clusters: clusters.transpose()?,
        }))
    }

    /// Uploads the rows of the head input: embeddings and states, or the target's keys and values.
    ///
    /// # Errors
    /// As `StoredRows::row`.
    pub fn write(&self, device: &GpuDevice, assistant: &Assistant, of: &HeadRows<'_>) -> Result<()> {
        match of.head_input {
            HeadInput::Own(states) => self.write_states(device, assistant, of, states),
            HeadInput::Target(features) => {
                let kv = of.rows.clone().flat_map(|row| &features.row(row)[self.carried..]);
                device.write(&self.kv, kv.copied().map(f32::to_bits));
                Ok(())
            }
        }
    }

    fn write_states(
        &self,
        device: &GpuDevice,
        assistant: &Assistant,
        of: &HeadRows<'_>,
        states: Features<'_>,
    ) -> Result<()> {
        let (carried, width) = (self.carried, self.input.width);
        let mut inputs = vec![0.0; of.rows.len() * width];
        let rows = of.nodes.clone().zip(of.rows.clone());
        for ((node, row), out) in rows.zip(inputs.chunks_exact_mut(width)) {
            let embedding = assistant.embedding.row(of.tree.token(node) as usize)?;
            out.iter_mut().zip(&embedding[..carried]).for_each(|(to, number)| *to = number * self.scale);
            out[carried..2 * carried].copy_from_slice(states.row(row));
        }
        device.write(&self.input.plain, inputs.into_iter().map(f32::to_bits));
        Ok(())
    }

    /// Computes the states that enter the first layer.
    pub fn enter(&self, pass: &mut Dispatches, rows: usize) {
        self.quantise.run(pass, rows);
        self.enter.run(pass, rows);
    }

    /// Computes the states for the next step, of states after the final norm.
    pub fn leave(&self, pass: &mut Dispatches, rows: usize) {
        self.leave.run(pass, rows);
    }

    /// Binds the kernels that cache the uploaded keys and values.
    ///
    /// # Errors
    /// As `Step::new`.
    pub fn caching(
        &self,
        device: &GpuDevice,
        config: &ModelConfig,
        memory: &Memory,
    ) -> Result<Vec<KvColumns>> {
        KvColumns::bind(device, config, memory, &self.layers, &self.kv, true)
    }
}
