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
use super::product::{Out, Product, SlotProduct};
use super::state::{Rows, State};
use super::step::Step;
use crate::cpu::simd::LANES;

/// Kernels of a layer's experts.
pub struct ExpertSteps {
    sizes: Sizes,
    hidden: usize,
    /// Offsets of the router's vectors and of the outputs' biases.
    vectors: RoutingVectors,
    /// Outputs are added to what is there.
    adds: bool,
    router: Product,
    top_k: Step,
    arrange: Step,
    gate: GateSteps<SlotProduct>,
    down: SlotProduct,
    combine: Step,
}

/// Offsets of vectors that have a number or a row for each expert, or `NONE`.
struct RoutingVectors {
    router_bias: u32,
    selection_bias: u32,
    scales: u32,
    down_biases: u32,
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
        let (slots, choices, slot_of) = (&routed.slots, &routed.choices, &routed.slot_of);
        let (count, activation) = (routed.sizes.count, config.activation);
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
        let router = std::slice::from_ref(&of.router);
        let (Out::Store(out) | Out::Add(out)) = to;
        Ok(Self {
            sizes: routed.sizes.clone(),
            hidden: config.hidden,
            vectors: RoutingVectors {
                router_bias: of.router_bias,
                selection_bias: of.selection_bias,
                scales: of.scales,
                down_biases: of.down_biases,
            },
            adds: matches!(to, Out::Add(_)),
            router: Product::new(device, router, router_input, Out::Store(&routed.scores))?,
            top_k: Step::new(device, Kernel::TopK, &[&routed.scores, vectors, choices])?,
            arrange: Step::new(device, Kernel::Arrange, &[choices, slots, slot_of])?,
            gate,
            down: product(&of.experts.down, &gated.rows, false, &routed.given)?,
            combine: Step::new(device, Kernel::Combine, &[choices, slot_of, &routed.given, vectors, out])?,
        })
    }

    /// Computes the experts of the first `rows` normed states and adds the output to the residual
    /// stream or writes it to the branch.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        let top_k = self.sizes.top_k;
        let slots = rows * top_k;
        self.router.run(pass, rows);
        self.top_k.run(pass, &self.top_k_params(), [rows, 1]);
        // An expert has at most one slot per row.
        let tile = self.down.tile(rows);
        self.arrange.run(pass, &[slots, top_k, tile].map(|n| n as u32), [1, 1]);
        self.gate.run(pass, slots, |product, pass| product.run(pass, slots, tile));
        self.down.run(pass, slots, tile);
        let stride = self.hidden.next_multiple_of(LANES);
        let [top_k, hidden, stride, add] =
            [top_k, self.hidden, stride, usize::from(self.adds)].map(|n| n as u32);
        let params = [top_k, hidden, stride, add, 0, self.vectors.down_biases];
        self.combine.run(pass, &params, [self.hidden.div_ceil(64), rows]);
    }

    /// Immediates of `top_k.wgsl`.
    fn top_k_params(&self) -> [u32; 10] {
        let Sizes { count, top_k, normalised, scale, sigmoid, .. } = self.sizes;
        let stride = count.next_multiple_of(LANES);
        let epsilon = sigmoid.map_or(0.0, |gating| gating.sum_epsilon);
        let RoutingVectors { router_bias, selection_bias, scales, .. } = self.vectors;
        [
            count as u32,
            stride as u32,
            top_k as u32,
            u32::from(normalised),
            u32::from(sigmoid.is_some()),
            router_bias,
            selection_bias,
            scales,
            scale.to_bits(),
            epsilon.to_bits(),
        ]
    }
}
