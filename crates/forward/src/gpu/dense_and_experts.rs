//! A dense network and experts side by side on the device (Gemma 4): both outputs are normed and
//! added. Router and experts have input norms of their own.

use foretoken_model::ModelConfig;
use foretoken_model::error::Result;
use wgpu::Buffer;

use super::dense::DenseSteps;
use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::experts::ExpertSteps;
use super::kernels::{Kernel, NONE};
use super::network::DenseAndExperts;
use super::norm::{Norm, Pending};
use super::product::Out;
use super::state::{Rows, State};
use super::step::Step;

/// Kernels of a layer with a dense network beside its experts. The output goes to the branch.
pub struct DenseAndExpertsSteps {
    dense: DenseSteps,
    dense_norm: (Step, Norm),
    router_norm: (Step, Norm),
    experts_norm: (Step, Norm),
    experts: ExpertSteps,
    /// Norm of the experts' output and its addition to the dense network's.
    join: (Step, Norm),
}

impl DenseAndExpertsSteps {
    /// Binds the kernels to the buffers of `state`.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn new(
        device: &GpuDevice,
        both: &DenseAndExperts,
        vectors: &Buffer,
        state: &State,
        config: &ModelConfig,
    ) -> Result<Self> {
        let Some(buffers) = &state.beside else { unreachable!("a state of another network") };
        let (dense_output, experts_output) = (&buffers.dense_output, &buffers.experts_output);
        let (branch, router) = (Out::Store(&state.branch), &buffers.router_input);
        let norm = |from: &Buffer, pending: &Buffer, plain: &Buffer, to: &Rows| {
            Step::new(device, Kernel::Norm, &[from, pending, vectors, plain, &to.quants, &to.scales])
        };
        let before = Norm::plain(config.hidden, config.norm_epsilon);
        let after = Norm::plain(config.hidden, config.post_norm_epsilon);
        let pending = Pending { norm: both.experts_post_norm, ..Pending::NOTHING };
        let joined = Norm { weight: NONE, pending, pending_epsilon: config.post_norm_epsilon, ..after };
        Ok(Self {
            dense: DenseSteps::new(device, &both.dense, state, &buffers.gated, config, branch)?,
            dense_norm: (
                norm(&state.branch, experts_output, &dense_output.plain, dense_output)?,
                Norm { weight: both.dense_post_norm, ..after },
            ),
            router_norm: (
                norm(&state.hidden, experts_output, &router.plain, router)?,
                Norm { weight: both.router_norm, ..before },
            ),
            experts_norm: (
                norm(&state.hidden, experts_output, &state.normed.plain, &state.normed)?,
                Norm { weight: both.experts_norm, ..before },
            ),
            experts: ExpertSteps::new(
                device,
                &both.experts,
                vectors,
                state,
                config,
                router,
                Out::Store(experts_output),
            )?,
            // The sum in 8 bits is not used.
            join: (norm(&dense_output.plain, experts_output, &state.branch, router)?, joined),
        })
    }

    /// Computes the first `rows` normed states.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        let run = |pass: &mut Dispatches, (step, norm): &(Step, Norm)| {
            step.run(pass, &norm.params(), [rows, 1]);
        };
        self.dense.run(pass, rows);
        run(pass, &self.dense_norm);
        run(pass, &self.router_norm);
        run(pass, &self.experts_norm);
        self.experts.run(pass, rows);
        run(pass, &self.join);
    }
}
