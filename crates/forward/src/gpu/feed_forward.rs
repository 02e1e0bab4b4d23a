//! Feed-forward network of a layer on the device.

use foretoken_model::ModelConfig;
use foretoken_model::error::Result;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::experts::ExpertSteps;
use super::gate::{Activate, GateSteps};
use super::network::{Dense, FeedForward, Gate};
use super::product::{Out, Product};
use super::state::State;

/// Kernels of a feed-forward network.
pub enum FeedForwardSteps {
    Dense { gate: GateSteps<Product>, down: Product },
    Experts(Box<ExpertSteps>),
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
        state: &State,
        config: &ModelConfig,
        aside: bool,
    ) -> Result<Self> {
        match feed_forward {
            FeedForward::Dense(Dense { gate, down }) => {
                let to = if aside { Out::Store(&state.branch) } else { Out::Add(&state.hidden) };
                Ok(Self::Dense {
                    gate: gate_steps(device, gate, state, config)?,
                    down: Product::new(device, std::slice::from_ref(down), &state.gated, to)?,
                })
            }
            FeedForward::Experts { router, experts, .. } => {
                let experts = ExpertSteps::new(device, router, experts, state, config)?;
                Ok(Self::Experts(Box::new(experts)))
            }
        }
    }

    /// Computes the first `rows` normed states.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        match self {
            Self::Dense { gate, down } => {
                gate.run(pass, rows, |product, pass| product.run(pass, rows));
                down.run(pass, rows);
            }
            Self::Experts(experts) => experts.run(pass, rows),
        }
    }
}

fn gate_steps(
    device: &GpuDevice,
    gate: &Gate,
    state: &State,
    config: &ModelConfig,
) -> Result<GateSteps<Product>> {
    let activation = config.activation;
    Ok(match (gate, &state.separate) {
        (Gate::Interleaved(matrix), _) => {
            GateSteps::Interleaved(Product::gated(device, matrix, &state.normed, &state.gated, activation)?)
        }
        (Gate::Separate([gate, up]), Some(separate)) => {
            let product = |matrix, out| {
                Product::new(device, std::slice::from_ref(matrix), &state.normed, Out::Store(out))
            };
            let products = [product(gate, &separate[0])?, product(up, &separate[1])?];
            let steps = Activate::new(device, separate, &state.gated, config.intermediate(), activation)?;
            GateSteps::Separate(products, steps)
        }
        (Gate::Separate(_), None) => unreachable!("a state of another network"),
    })
}
