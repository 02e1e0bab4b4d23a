//! Feed-forward network of a layer on the device.

use foretoken_model::ModelConfig;
use foretoken_model::error::Result;
use wgpu::Buffer;

use super::dense_and_experts::DenseAndExpertsSteps;
use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::experts::ExpertSteps;
use super::gate::{Activate, GateSteps};
use super::network::{Dense, FeedForward, Gate};
use super::product::{Out, Product};
use super::shared_expert::SharedExpertSteps;
use super::state::{Gated, State};

/// Kernels of a feed-forward network.
pub enum FeedForwardSteps {
    Dense(DenseSteps),
    Experts(Box<ExpertSteps>),
    DenseAndExperts(Box<DenseAndExpertsSteps>),
    WithSharedExpert(Box<SharedExpertSteps>),
}

/// Kernels of a dense network.
pub struct DenseSteps {
    gate: GateSteps<Product>,
    down: Product,
}

impl FeedForwardSteps {
    /// Binds the kernels. The output is added to the residual stream, or goes to the branch if
    /// `aside`.
    ///
    /// # Errors
    /// As `Step::new`.
    pub fn new(
        device: &GpuDevice,
        feed_forward: &FeedForward,
        vectors: &Buffer,
        state: &State,
        config: &ModelConfig,
        aside: bool,
    ) -> Result<Self> {
        let to = if aside { Out::Store(&state.branch) } else { Out::Add(&state.hidden) };
        Ok(match feed_forward {
            FeedForward::Dense(dense) => {
                let gated = state.gated.of(dense.down.inputs);
                Self::Dense(DenseSteps::new(device, dense, state, &gated, config, to)?)
            }
            FeedForward::Experts(experts) => {
                let normed = &state.normed;
                let steps = ExpertSteps::new(device, experts, vectors, state, config, normed, to)?;
                Self::Experts(Box::new(steps))
            }
            FeedForward::DenseAndExperts(both) => {
                let steps = DenseAndExpertsSteps::new(device, both, vectors, state, config)?;
                Self::DenseAndExperts(Box::new(steps))
            }
            FeedForward::WithSharedExpert(shared) => {
                let steps = SharedExpertSteps::new(device, shared, vectors, state, config)?;
                Self::WithSharedExpert(Box::new(steps))
            }
        })
    }

    /// Computes the first `rows` normed states.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        match self {
            Self::Dense(dense) => dense.run(pass, rows),
            Self::Experts(experts) => experts.run(pass, rows),
            Self::DenseAndExperts(both) => both.run(pass, rows),
            Self::WithSharedExpert(shared) => shared.run(pass, rows),
        }
    }
}

impl DenseSteps {
    /// Binds the kernels to the normed states, with `gated` between the two products.
    ///
    /// # Errors
    /// As `Step::new`.
    pub fn new(
        device: &GpuDevice,
        dense: &Dense,
        state: &State,
        gated: &Gated,
        config: &ModelConfig,
        to: Out<'_>,
    ) -> Result<Self> {
        let product = |matrix, rows, out| Product::new(device, std::slice::from_ref(matrix), rows, out);
        let (normed, activation) = (&state.normed, config.activation);
        let gate = match (&dense.gate, &gated.separate) {
            (Gate::Interleaved(matrix), _) => {
                GateSteps::Interleaved(Product::gated(device, matrix, normed, &gated.rows, activation)?)
            }
            (Gate::Separate([gate, up]), Some(separate)) => {
                let [of_gate, of_up] = separate.each_ref().map(Out::Store);
                let products = [product(gate, normed, of_gate)?, product(up, normed, of_up)?];
                GateSteps::Separate(products, Activate::new(device, gated, activation)?)
            }
            (Gate::Separate(_), None) => unreachable!("a state of another network"),
        };
        Ok(Self { gate, down: product(&dense.down, &gated.rows, to)? })
    }

    /// Computes the first `rows` normed states.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        self.gate.run(pass, rows, |product, pass| product.run(pass, rows));
        self.down.run(pass, rows);
    }
}
