//! Mixture of experts on the device. The router ranks the experts for every row, each selected
//! expert reads its weights once for all its rows, and the outputs are combined per row. A row adds
//! its outputs in its own ranking order, so the sum does not depend on other rows.

use foretoken_model::error::Result;
use foretoken_model::{Experts as Sizes, ModelConfig};
use wgpu::Buffer;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::gate::{Activate, GateSteps};
use super::kernels::Kernel;
use super::network::{Experts, Gate};
use super::product::{Out, SlotProduct};
use super::ranking::{Ranking, Weighting};
use super::state::{Ranked, Rows, State};
use super::step::Step;
use crate::cpu::simd::LANES;

/// Kernels of a layer's experts.
pub struct ExpertSteps {
    top_k: usize,
    hidden: usize,
    /// Offset of the outputs' biases, or `NONE`.
    down_biases: u32,
    /// Outputs are added to what is there.
    adds: bool,
    ranking: Ranking,
    gate: GateSteps<SlotProduct>,
    down: SlotProduct,
    combine: Step,
}

impl ExpertSteps {
    /// Binds the kernels to the expert buffers of `state`. The router reads `router_input`, the
    /// experts the normed states.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn new(
        device: &GpuDevice,
        of: &Experts,
        vectors: &Buffer,
        state: &State,
        config: &ModelConfig,
        router_input: &Rows,
        to: Out<'_>,
    ) -> Result<Self> {
        let Some(routed) = &state.routed else { unreachable!("experts in a model that has none") };
        let Ranked { count, slots, choices, slot_of, .. } = &routed.ranked;
        let (count, activation) = (*count, config.activation);
        let product =
            |stack, rows, by_row, out| SlotProduct::new(device, stack, count, rows, by_row, out, slots);
        let (normed, gated) = (&state.normed, &state.gated.of(routed.sizes.width));
        let gate = match (&of.experts.gate, &gated.separate) {
            (Gate::Interleaved(stack), _) => {
                let (to, buffers) = (&gated.rows, [vectors, slots]);
                let steps = SlotProduct::gated(device, stack, count, normed, to, buffers, activation)?;
                GateSteps::Interleaved(steps.with_biases(of.biases))
            }
            (Gate::Separate([gate, up]), Some(separate)) => {
                let products =
                    [product(gate, normed, true, &separate[0])?, product(up, normed, true, &separate[1])?];
                GateSteps::Separate(products, Activate::new(device, gated, activation)?)
            }
            (Gate::Separate(_), None) => unreachable!("a state of another network"),
        };
        let Sizes { top_k, normalised, scale, sigmoid, .. } = routed.sizes;
        let weighting = Weighting {
            normalised,
            sigmoid: sigmoid.map(|gating| gating.sum_epsilon),
            bias: of.router_bias,
            selection_bias: of.selection_bias,
            scales: of.scales,
            scale,
        };
        let (Out::Store(out) | Out::Add(out)) = to;
        Ok(Self {
            top_k,
            hidden: config.hidden,
            down_biases: of.down_biases,
            adds: matches!(to, Out::Add(_)),
            ranking: Ranking::new(device, &of.router, router_input, vectors, &routed.ranked, weighting)?,
            gate,
            down: product(&of.experts.down, &gated.rows, false, &routed.given)?,
            combine: Step::new(device, Kernel::Combine, &[choices, slot_of, &routed.given, vectors, out])?,
        })
    }

    /// Computes the experts of the first `rows` normed states and adds the output to the residual
    /// stream or writes it to the branch.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        // An expert has at most one slot per row.
        let tile = self.down.tile(rows);
        let slots = self.ranking.run(pass, rows, tile);
        self.gate.run(pass, slots, |product, pass| product.run(pass, slots, tile));
        self.down.run(pass, slots, tile);
        let stride = self.hidden.next_multiple_of(LANES);
        let [top_k, hidden, stride, add] =
            [self.top_k, self.hidden, stride, usize::from(self.adds)].map(|n| n as u32);
        let params = [top_k, hidden, stride, add, 0, self.down_biases];
        self.combine.run(pass, &params, [self.hidden.div_ceil(64), rows]);
    }
}
