//! First half of a feed-forward network on the device, activation(gate) * up: one kernel if the
//! panels of gate and up are interleaved, else two products and an activation.

use foretoken_model::Activation;
use foretoken_model::error::Result;
use wgpu::Buffer;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::Kernel;
use super::product::activation_mode;
use super::state::{Gated, Rows};
use super::step::Step;
use crate::cpu::simd::LANES;

/// Kernels of gate and up, with products of type `P`.
pub enum GateSteps<P> {
    Interleaved(P),
    Separate([P; 2], Activate),
}

impl<P> GateSteps<P> {
    /// Runs the kernels; `multiply` runs a product of the same `rows`.
    pub fn run(&self, pass: &mut Dispatches, rows: usize, multiply: impl Fn(&P, &mut Dispatches)) {
        match self {
            Self::Interleaved(gated) => multiply(gated, pass),
            Self::Separate(products, activate) => {
                products.iter().for_each(|product| multiply(product, pass));
                activate.run(pass, rows);
            }
        }
    }
}

/// `activation(gate) * up` of two buffers.
pub struct Activate {
    step: Step,
    length: usize,
    width: usize,
    activation: Activation,
    /// Stride of `up`, and its first column.
    ups: [usize; 2],
}

impl Activate {
    /// Binds the kernel to separate outputs of gate and up.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn new(device: &GpuDevice, gated: &Gated, activation: Activation) -> Result<Self> {
        let Some([gate, up]) = &gated.separate else { unreachable!("a state of another network") };
        let ups = [gated.length.next_multiple_of(LANES), 0];
        Self::of(device, [gate, up], ups, gated, activation)
    }

    /// Binds the kernel to a gate and the columns of `up` from a first one on, in rows of a stride:
    /// `ups`.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn of(
        device: &GpuDevice,
        [gate, up]: [&Buffer; 2],
        ups: [usize; 2],
        to: &Gated,
        activation: Activation,
    ) -> Result<Self> {
        let Rows { plain, quants, scales, width, .. } = &to.rows;
        let step = Step::new(device, Kernel::Activate, &[gate, up, plain, quants, scales])?;
        Ok(Self { step, length: to.length, width: *width, activation, ups })
    }

    /// Computes the first `rows`.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        let blocks = self.length.div_ceil(32);
        let stride = self.length.next_multiple_of(LANES);
        let sizes = [blocks, rows, self.length, stride, self.width].map(|n| n as u32);
        let mode = activation_mode(self.activation);
        let params = [&sizes[..], &[mode], &self.ups.map(|n| n as u32)].concat();
        self.step.run(pass, &params, [(rows * blocks).div_ceil(64), 1]);
    }
}
