//! Weights of recurrent layers in a network on the device.

use super::kernels::NONE;
use crate::cpu::panels::Panels;
use crate::cpu::recurrent::{ConvWeights, Delta, Mamba, ShortConv};

/// Most numbers of a key that `recur.wgsl` supports.
pub const LONGEST_KEY: usize = 128;

/// Vectors of a recurrent layer, as offsets into the network's, or [`NONE`].
#[derive(Debug)]
pub struct Recurrent {
    /// Weights and bias of the convolution.
    pub weights: u32,
    pub bias: u32,
    /// Biases and factors of the inputs of each head's decay.
    pub rate_bias: u32,
    pub decay: u32,
    /// Factors of values that go past the matrix (D).
    pub skip: u32,
    pub norm: u32,
}

/// Parts of a recurrent layer's mixer.
pub struct Parts<'a> {
    pub vectors: Recurrent,
    /// Matrices of the layer's input: convolved channels, gates and rates.
    pub inputs: Vec<&'a Panels>,
    pub output: &'a Panels,
}

impl<'a> Parts<'a> {
    /// Parts of a gated short convolution. `push` appends a vector to the network's, as for the
    /// other kinds.
    pub fn of_short_conv(conv: &'a ShortConv, push: &mut impl FnMut(&[f32]) -> u32) -> Self {
        Self {
            vectors: Recurrent::of_convolution(&conv.kernel, push),
            inputs: vec![&conv.projection],
            output: &conv.output,
        }
    }

    /// Parts of a Gated DeltaNet.
    pub fn of_delta(delta: &'a Delta, push: &mut impl FnMut(&[f32]) -> u32) -> Self {
        Self {
            vectors: Recurrent {
                rate_bias: push(&delta.bias),
                decay: push(&delta.decay),
                norm: push(&delta.norm),
                ..Recurrent::of_convolution(&delta.kernel, push)
            },
            inputs: vec![&delta.inputs, &delta.gate, &delta.beta, &delta.alpha],
            output: &delta.output,
        }
    }

    /// Parts of a Mamba-2 mixer.
    pub fn of_mamba(mamba: &'a Mamba, push: &mut impl FnMut(&[f32]) -> u32) -> Self {
        Self {
            vectors: Recurrent {
                rate_bias: push(&mamba.bias),
                decay: push(&mamba.decay),
                skip: push(&mamba.d),
                norm: push(&mamba.norm),
                ..Recurrent::of_convolution(&mamba.kernel, push)
            },
            inputs: vec![&mamba.inputs, &mamba.gate, &mamba.dt],
            output: &mamba.output,
        }
    }
}

impl Recurrent {
    /// Vectors of a layer without state matrices.
    fn of_convolution(kernel: &ConvWeights, push: &mut impl FnMut(&[f32]) -> u32) -> Self {
        Self {
            weights: push(&kernel.weights),
            bias: kernel.bias.as_ref().map_or(NONE, |bias| push(bias)),
            rate_bias: NONE,
            decay: NONE,
            skip: NONE,
            norm: NONE,
        }
    }
}
