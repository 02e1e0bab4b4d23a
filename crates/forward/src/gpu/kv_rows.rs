//! Keys and values of a pass's rows as numbers: a target returns those that it has cached, and an
//! assistant caches those that its target returned.

use foretoken_model::error::Result;
use foretoken_model::{KeyHeads, ModelConfig};
use wgpu::Buffer;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::Kernel;
use super::memory::Memory;
use super::step::Step;
use crate::Taps;

/// Columns of the rows that belong to a layer, with the kernel that moves them.
pub struct KvColumns {
    step: Step,
    keys: KeyHeads,
    /// Numbers of a row, of all layers.
    stride: usize,
    /// First of the layer's numbers.
    first: usize,
}

/// Numbers per row of the tapped layers.
pub fn width(config: &ModelConfig, taps: &Taps) -> usize {
    taps.width(config) - taps.states_width(config)
}

impl KvColumns {
    /// Binds the kernels that copy what `layers` have cached for the rows of a pass to `rows`, or,
    /// if they `store`, from there to the caches.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn bind(
        device: &GpuDevice,
        config: &ModelConfig,
        memory: &Memory,
        layers: &[usize],
        rows: &Buffer,
        store: bool,
    ) -> Result<Vec<Self>> {
        let of_layer = |&layer: &usize| config.cached_keys(layer).zip(memory.caches[layer].as_ref());
        let all: Vec<_> = layers.iter().filter_map(of_layer).collect();
        let stride = all.iter().map(|(keys, _)| keys.cached()).sum();
        let mut first = 0;
        let columns = all.into_iter().map(|(keys, cache)| {
            let nodes = &memory.buffers.nodes;
            let step = match store {
                true => Step::new(device, Kernel::StoreKv, &[nodes, rows, &cache.keys, &cache.values])?,
                false => Step::new(device, Kernel::LoadKv, &[nodes, &cache.keys, &cache.values, rows])?,
            };
            first += keys.cached();
            Ok(Self { step, keys, stride, first: first - keys.cached() })
        });
        columns.collect()
    }

    /// Copies the first `rows`.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        let (kv_heads, pairs) = (self.keys.count, self.keys.size / 2);
        let params = [kv_heads, pairs, self.stride, self.first].map(|number| number as u32);
        self.step.run(pass, &params, [(kv_heads * pairs).div_ceil(64), rows]);
    }
}
