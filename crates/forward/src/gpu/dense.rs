//! A dense gated feed-forward network on the device.

use foretoken_model::ModelConfig;
use foretoken_model::error::Result;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::gate::{Activate, GateSteps};
use super::network::{Dense, Gate};
use super::product::{Out, Product};
use super::state::{Gated, State};

/// Kernels of a dense network.
pub struct DenseSteps {
    gate: GateSteps<Product>,
    down: Product,
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
