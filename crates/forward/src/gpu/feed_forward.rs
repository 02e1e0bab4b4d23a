//! Feed-forward network of a layer on the device.

use foretoken_model::ModelConfig;
use foretoken_model::error::Result;
use wgpu::Buffer;

use super::dense::DenseSteps;
use super::dense_and_experts::DenseAndExpertsSteps;
use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::experts::ExpertSteps;
use super::network::FeedForward;
use super::product::Out;
use super::shared_expert::SharedExpertSteps;
use super::state::State;

/// Kernels of a feed-forward network.
pub enum FeedForwardSteps {
    Dense(Box<DenseSteps>),
    Experts(Box<ExpertSteps>),
    DenseAndExperts(Box<DenseAndExpertsSteps>),
    WithSharedExpert(Box<SharedExpertSteps>),
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
                Self::Dense(Box::new(DenseSteps::new(device, dense, state, &gated, config, to)?))
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
