//! Per-layer inputs on the device (Gemma 4's per-layer embeddings): the sum of a table row, which
//! is read from the file, and a projection of the token's embedding.

use foretoken_model::ModelConfig;
use foretoken_model::error::Result;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::gate::Activate;
use super::kernels::Kernel;
use super::network::{Network, PerLayerInput};
use super::product::{Out, Product};
use super::state::State;
use super::step::Step;
use crate::cpu::simd::LANES;

/// Kernels that compute the inputs of all layers from the plain states.
pub struct PerLayerSteps {
    project: Product,
    add: Step,
    layers: usize,
    /// Immediates of `per_layer.wgsl`.
    params: [u32; 6],
}

impl PerLayerSteps {
    /// Binds the kernels; `None` in families without per-layer inputs.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn new(
        device: &GpuDevice,
        network: &Network,
        state: &State,
        config: &ModelConfig,
    ) -> Result<Option<Self>> {
        let (Some(of), Some(buffers), Some(width)) =
            (&network.per_layer, &state.per_layer, config.per_layer_input())
        else {
            return Ok(None);
        };
        let projection = std::slice::from_ref(&of.projection);
        let project = Product::new(device, projection, &state.normed, Out::Store(&buffers.inputs))?;
        let add = [&buffers.inputs, &buffers.table, &network.vectors];
        // Folds the factor 1 / sqrt(hidden) before the norm into its epsilon.
        let epsilon = (config.norm_epsilon * config.hidden as f64) as f32;
        let columns = buffers.columns;
        let [stride, scale] = [columns.next_multiple_of(LANES) as u32, (width as f32).sqrt().to_bits()];
        Ok(Some(Self {
            project,
            add: Step::new(device, Kernel::PerLayer, &add)?,
            layers: config.depth(),
            params: [width as u32, stride, columns as u32, of.norm, epsilon.to_bits(), scale],
        }))
    }

    /// Computes the inputs of the first `rows`, whose plain states are in the rows of norms.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        self.project.run(pass, rows);
        self.add.run(pass, &self.params, [self.layers, rows]);
    }
}

/// Kernels of a layer's part.
pub struct InputSteps {
    /// Offset of the output's norm.
    pub norm: u32,
    gate: Product,
    activate: Activate,
    project: Product,
}

impl InputSteps {
    /// Binds the kernels of layer `index`, which leave their output in the branch; `None` without
    /// per-layer inputs.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn new(
        device: &GpuDevice,
        input: Option<&PerLayerInput>,
        index: usize,
        state: &State,
        config: &ModelConfig,
    ) -> Result<Option<Self>> {
        let (Some(input), Some(buffers)) = (input, &state.per_layer) else { return Ok(None) };
        let width = input.projection.inputs;
        let gated = state.gated.of(width);
        let product = |matrix, rows, out| Product::new(device, std::slice::from_ref(matrix), rows, out);
        let ups = [buffers.columns.next_multiple_of(LANES), index * width];
        let of_gate = [&buffers.gates, &buffers.inputs];
        Ok(Some(Self {
            norm: input.norm,
            gate: product(&input.gate, &state.normed, Out::Store(&buffers.gates))?,
            activate: Activate::of(device, of_gate, ups, &gated, config.activation)?,
            project: product(&input.projection, &gated.rows, Out::Store(&state.branch))?,
        }))
    }

    /// Computes the first `rows`, whose plain states are in the rows of norms.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        self.gate.run(pass, rows);
        self.activate.run(pass, rows);
        self.project.run(pass, rows);
    }
}
