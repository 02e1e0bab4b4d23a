//! A shared expert beside routed ones on the device. It processes every row; its output, multiplied
//! by the sigmoid of its gate if it has one, is added to the residual stream before theirs.

use foretoken_model::ModelConfig;
use foretoken_model::error::Result;
use wgpu::Buffer;

use super::dense::DenseSteps;
use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::experts::ExpertSteps;
use super::kernels::Kernel;
use super::network::WithSharedExpert;
use super::product::{Out, Product};
use super::state::State;
use super::step::Step;
use crate::cpu::simd::LANES;

/// Kernels of a layer with a shared expert.
pub struct SharedExpertSteps {
    hidden: usize,
    dense: DenseSteps,
    /// Product of the gate, and the addition of the gated output.
    gate: Option<(Product, Step)>,
    experts: ExpertSteps,
}

impl SharedExpertSteps {
    /// Binds the kernels to the buffers of `state`.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn new(
        device: &GpuDevice,
        shared: &WithSharedExpert,
        vectors: &Buffer,
        state: &State,
        config: &ModelConfig,
    ) -> Result<Self> {
        let Some(buffers) = &state.shared else { unreachable!("a state of another network") };
        let gate = shared.gate.as_ref().map(|gate| -> Result<_> {
            let (gate, to) = (std::slice::from_ref(gate), Out::Store(&buffers.gates));
            let product = Product::new(device, gate, &state.normed, to)?;
            let add = [&buffers.gates, &state.branch, &state.hidden];
            Ok((product, Step::new(device, Kernel::AddGated, &add)?))
        });
        let to = if gate.is_some() { Out::Store(&state.branch) } else { Out::Add(&state.hidden) };
        Ok(Self {
            hidden: config.hidden,
            dense: DenseSteps::new(device, &shared.dense, state, &buffers.gated, config, to)?,
            gate: gate.transpose()?,
            experts: ExpertSteps::new(
                device,
                &shared.experts,
                vectors,
                state,
                config,
                &state.normed,
                Out::Add(&state.hidden),
            )?,
        })
    }

    /// Adds the outputs for the first `rows` normed states to the residual stream.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        self.dense.run(pass, rows);
        if let Some((gate, add)) = &self.gate {
            gate.run(pass, rows);
            let params = [self.hidden, self.hidden.next_multiple_of(LANES), LANES, 0].map(|n| n as u32);
            add.run(pass, &params, [self.hidden.div_ceil(64), rows]);
        }
        self.experts.run(pass, rows);
    }
}
