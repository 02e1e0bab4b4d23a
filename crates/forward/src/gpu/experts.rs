//! Mixture of experts on the device. The router ranks the experts for every row, each selected
//! expert reads its weights once for all its rows, and the outputs are combined per row. A row adds
//! its outputs in its own ranking order, so the sum does not depend on other rows.

use foretoken_model::error::Result;
use foretoken_model::{Experts, ModelConfig};

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::gate::{Activate, GateSteps};
use super::kernels::Kernel;
use super::matrix::Matrix;
use super::network::{Dense, Gate};
use super::product::{Out, Product, SlotProduct};
use super::state::State;
use super::step::Step;
use crate::cpu::simd::LANES;

/// Kernels of a layer's experts.
pub struct ExpertSteps {
    sizes: Experts,
    hidden: usize,
    /// The output goes to the branch, for a norm, instead of the residual stream.
    aside: bool,
    router: Product,
    top_k: Step,
    arrange: Step,
    gate: GateSteps<SlotProduct>,
    down: SlotProduct,
    combine: Step,
}

impl ExpertSteps {
    /// Binds the kernels to the expert buffers of `state`.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn new(
        device: &GpuDevice,
        router: &Matrix,
        experts: &Dense,
        state: &State,
        config: &ModelConfig,
    ) -> Result<Self> {
        let Some(routed) = &state.routed else { unreachable!("experts in a model that has none") };
        let (slots, choices, slot_of) = (&routed.slots, &routed.choices, &routed.slot_of);
        let (count, activation) = (routed.sizes.count, config.activation);
        let product =
            |stack, rows, by_row, out| SlotProduct::new(device, stack, count, rows, by_row, out, slots);
        let (normed, gated) = (&state.normed, &state.gated);
        let gate = match (&experts.gate, &state.separate) {
            (Gate::Interleaved(stack), _) => {
                let steps = SlotProduct::gated(device, stack, count, normed, gated, slots, activation)?;
                GateSteps::Interleaved(steps)
            }
            (Gate::Separate([gate, up]), Some(separate)) => {
                let products =
                    [product(gate, normed, true, &separate[0])?, product(up, normed, true, &separate[1])?];
                let steps = Activate::new(device, separate, gated, routed.sizes.width, activation)?;
                GateSteps::Separate(products, steps)
            }
            (Gate::Separate(_), None) => unreachable!("a state of another network"),
        };
        let aside = config.has_post_norms();
        let to = if aside { &state.branch } else { &state.hidden };
        Ok(Self {
            sizes: routed.sizes.clone(),
            hidden: config.hidden,
            aside,
            router: Product::new(device, std::slice::from_ref(router), normed, Out::Store(&routed.scores))?,
            top_k: Step::new(device, Kernel::TopK, &[&routed.scores, choices])?,
            arrange: Step::new(device, Kernel::Arrange, &[choices, slots, slot_of])?,
            gate,
            down: product(&experts.down, gated, false, &routed.given)?,
            combine: Step::new(device, Kernel::Combine, &[choices, slot_of, &routed.given, to])?,
        })
    }

    /// Computes the experts of the first `rows` normed states and adds the output to the residual
    /// stream or writes it to the branch.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        let Experts { count, top_k, normalised, .. } = self.sizes;
        let slots = rows * top_k;
        self.router.run(pass, rows);
        let stride = count.next_multiple_of(LANES);
        self.top_k.run(pass, &[count, stride, top_k, usize::from(normalised)].map(|n| n as u32), [rows, 1]);
        // An expert has at most one slot per row.
        let tile = self.down.tile(rows);
        self.arrange.run(pass, &[slots, top_k, tile].map(|n| n as u32), [1, 1]);
        self.gate.run(pass, slots, |product, pass| product.run(pass, slots, tile));
        self.down.run(pass, slots, tile);
        let stride = self.hidden.next_multiple_of(LANES);
        let params = [top_k, self.hidden, stride, usize::from(!self.aside), 0].map(|n| n as u32);
        self.combine.run(pass, &params, [self.hidden.div_ceil(64), rows]);
    }
}
