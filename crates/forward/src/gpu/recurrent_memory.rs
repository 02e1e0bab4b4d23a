//! States and records of all recurrent layers on the device, in the slots that
//! [`StateHistory`](crate::state_history::StateHistory) assigns and in the CPU engine's layout.

use foretoken_model::ModelConfig;
use foretoken_model::error::Result;
use wgpu::Buffer;

use super::device::GpuDevice;
use super::network::Network;
use super::recurrent::{Bound, RecurrentSteps};
use super::state::State;
use super::walk::Walk;
use crate::cpu::memory::Layout;
use crate::state_history::SlotCounts;

/// Memory for states that are kept for going back, in bytes.
const CHECKPOINT_BYTES: usize = 256 << 20;

/// Upper limit of their number; more are of no use.
const MAX_CHECKPOINTS: usize = 64;

/// Initial room for the words of a walk.
const WORDS: usize = 4096;

/// States and records of a layer.
#[derive(Debug)]
pub struct Slots {
    pub states: Buffer,  // [slots, state]
    pub records: Buffer, // [slots, record]
}

/// States and records of a model, and the kernels bound to them.
pub struct RecurrentMemory {
    layout: Layout,
    /// `None` for attention layers.
    layers: Vec<Option<Slots>>,
    /// Slots that there is room for.
    room: SlotCounts,
    words: Buffer,
    /// Kernels per layer; `None` if they are not bound to the current buffers.
    steps: Option<Vec<Option<RecurrentSteps>>>,
}

impl RecurrentMemory {
    /// Memory of a model; `None` for one without recurrent layers.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn new(device: &GpuDevice, config: &ModelConfig) -> Result<Option<Self>> {
        let Some(recurrence) = config.recurrence() else { return Ok(None) };
        let slots = |recurrent: bool| -> Result<_> {
            let slots = || Ok(Slots { states: device.buffer(0)?, records: device.buffer(0)? });
            recurrent.then(slots).transpose()
        };
        let layers = config.layers.iter().map(|layer| slots(layer.mixer.recurrence().is_some()));
        Ok(Some(Self {
            layout: Layout::of(recurrence),
            layers: layers.collect::<Result<_>>()?,
            room: SlotCounts::default(),
            words: device.buffer(4 * WORDS)?,
            steps: None,
        }))
    }

    /// Number of states that are kept for going back.
    pub fn checkpoints(&self) -> usize {
        let state = self.layout.state_bytes() * self.layers.iter().flatten().count();
        (CHECKPOINT_BYTES / state.max(1)).clamp(1, MAX_CHECKPOINTS)
    }

    /// Makes room for these states and records. Grows by half if the device has the memory, else
    /// only as far as needed.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room; the contents stay.
    pub fn reserve(&mut self, device: &GpuDevice, slots: SlotCounts) -> Result<()> {
        let SlotCounts { states, logs } = self.room;
        if slots.states <= states && slots.logs <= logs {
            return Ok(());
        }
        let least = SlotCounts { states: slots.states.max(states), logs: slots.logs.max(logs) };
        let grown = |least: usize, before: usize| {
            if least > before { least.max(before + before / 2) } else { before }
        };
        let grown = SlotCounts { states: grown(least.states, states), logs: grown(least.logs, logs) };
        self.grow(device, grown).or_else(|_| self.grow(device, least))
    }

    fn grow(&mut self, device: &GpuDevice, to: SlotCounts) -> Result<()> {
        let (state, record) = (self.layout.state_bytes(), 4 * self.layout.record);
        self.steps = None;
        for slots in self.layers.iter_mut().flatten() {
            let grown = Slots {
                states: device.buffer(to.states * state)?,
                records: device.buffer(to.logs * record)?,
            };
            let mut encoder = device.raw().create_command_encoder(&Default::default());
            for (from, to, bytes) in [
                (&slots.states, &grown.states, self.room.states * state),
                (&slots.records, &grown.records, self.room.logs * record),
            ] {
                encoder.copy_buffer_to_buffer(from, 0, to, 0, bytes as u64);
            }
            device.submit(encoder, 0);
            *slots = grown;
        }
        self.room = to;
        Ok(())
    }

    /// Uploads the words of a chunk, and binds the kernels.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn upload(
        &mut self,
        device: &GpuDevice,
        network: &Network,
        state: &State,
        config: &ModelConfig,
        walk: &Walk,
    ) -> Result<()> {
        let bytes = 4 * walk.words.len();
        if self.words.size() < bytes as u64 {
            self.steps = None;
            self.words = device.buffer(bytes.next_power_of_two())?;
        }
        device.write(&self.words, walk.words.iter().copied());
        if self.steps.is_none() {
            let bound = config.layers.iter().zip(&self.layers).map(|(layer, slots)| {
                let parts = layer.mixer.recurrence().zip(slots.as_ref()).zip(state.recurrent.as_ref());
                let bind = |((recurrence, slots), rows)| {
                    let bound = Bound { rows, slots, words: &self.words, vectors: &network.vectors };
                    RecurrentSteps::new(device, recurrence, &bound, config)
                };
                parts.map(bind).transpose()
            });
            self.steps = Some(bound.collect::<Result<_>>()?);
        }
        Ok(())
    }

    /// Kernels per layer; empty before [`Self::upload`].
    pub fn steps(&self) -> &[Option<RecurrentSteps>] {
        self.steps.as_deref().unwrap_or_default()
    }
}
