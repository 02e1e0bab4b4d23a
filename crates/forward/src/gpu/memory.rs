//! KV caches of all layers of a model on a GPU, and the attention kernels bound to them.

use foretoken_model::error::Result;
use foretoken_model::{KeyHeads, ModelConfig};

use super::attention::{AttentionBuffers, AttentionSteps};
use super::cache::{Cache, PAGE};
use super::device::GpuDevice;
use super::latent::LatentSteps;
use super::network::{Layer, Network};
use super::recording::Recording;
use super::state::{ROWS, State};
use super::step::Step;
use crate::cpu::simd::LANES;

/// Kernels of a layer that are bound to its cache.
pub enum CachedSteps {
    Attention(Box<AttentionSteps>),
    Latent(Box<LatentSteps>),
}

impl CachedSteps {
    /// Copies positions over others.
    fn gather(&self) -> &Step {
        match self {
            Self::Attention(steps) => &steps.gather,
            Self::Latent(steps) => &steps.gather,
        }
    }
}

/// KV caches and attention kernels of a model.
pub struct Memory {
    /// `None` for layers that read another layer's and for recurrent ones.
    pub caches: Vec<Option<Cache>>,
    pub buffers: AttentionBuffers,
    /// Kernels per layer; `None` if they are not bound to the current buffers.
    attention: Option<Vec<Option<CachedSteps>>>,
}

/// Initial room for masks in words: rows of a chain, or small trees.
const WORDS: usize = 3 * ROWS + 1024;

impl Memory {
    /// Allocates a page for each layer that caches keys and values.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn new(device: &GpuDevice, config: &ModelConfig) -> Result<Self> {
        let cache = |index| {
            let keys = config.cached_keys(index);
            let cache = |keys: KeyHeads| match keys.hold_values {
                None => Cache::new(device, keys.count, keys.size),
                Some(_) => Cache::of_rows(device, keys.size),
            };
            keys.map(cache).transpose()
        };
        Ok(Self {
            caches: (0..config.depth()).map(cache).collect::<Result<_>>()?,
            buffers: AttentionBuffers::new(device, config, PAGE, WORDS)?,
            attention: None,
        })
    }

    /// Makes room for `positions` in the caches and for `words` words of masks.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room; cached entries stay.
    pub fn make_room(
        &mut self,
        device: &GpuDevice,
        network: &Network,
        state: &State,
        config: &ModelConfig,
        positions: usize,
        words: usize,
    ) -> Result<()> {
        for cache in self.caches.iter_mut().flatten() {
            if cache.reserve(device, positions)? {
                self.attention = None;
            }
        }
        let positions = self.caches.iter().flatten().map(Cache::positions).min().unwrap_or(PAGE);
        let room = self.buffers.nodes.size() as usize / 4;
        if self.buffers.positions < positions || room < words {
            self.attention = None;
            let words = words.max(room).next_power_of_two();
            self.buffers = AttentionBuffers::new(device, config, positions, words)?;
        }
        if self.attention.is_none() {
            let (vectors, buffers) = (&network.vectors, &self.buffers);
            let bind = |(index, layer): (usize, &Layer)| -> Result<_> {
                let Some(cache) = &self.caches[config.cache_of(index)] else { return Ok(None) };
                Ok(Some(match &layer.latent {
                    Some(latent) => CachedSteps::Latent(Box::new(LatentSteps::new(
                        device, latent, cache, vectors, state, buffers,
                    )?)),
                    None => CachedSteps::Attention(Box::new(AttentionSteps::new(
                        device, layer, cache, vectors, state, buffers, config,
                    )?)),
                }))
            };
            let bound = network.layers.iter().enumerate().map(bind).collect::<Result<_>>()?;
            self.attention = Some(bound);
        }
        Ok(())
    }

    /// Attention kernels per layer, `None` for recurrent ones; empty before [`Self::make_room`].
    pub fn attention(&self) -> &[Option<CachedSteps>] {
        self.attention.as_deref().unwrap_or_default()
    }

    /// Copies positions over others in every layer with attention. `pairs` alternates sources and
    /// destinations.
    ///
    /// # Errors
    /// `Error::Compute` when the device failed.
    pub fn gather(&self, device: &GpuDevice, config: &ModelConfig, pairs: &[u32]) -> Result<()> {
        device.write(&self.buffers.nodes, pairs.iter().copied());
        let mut recording = Recording::new(device);
        for (index, layer) in self.attention().iter().enumerate() {
            let (Some(layer), Some(keys)) = (layer, config.cached_keys(index)) else { continue };
            let is_joint = keys.hold_values.is_some();
            let size = if is_joint { keys.size.next_multiple_of(LANES) } else { keys.size };
            let (kv_heads, of_head) = (keys.count, size / 2);
            let params = [kv_heads as u32, of_head as u32, pairs.len() as u32 / 2, u32::from(!is_joint)];
            layer.gather().run(recording.pass(), &params, [(kv_heads * of_head).div_ceil(64), 1]);
        }
        recording.end();
        device.check()
    }
}
