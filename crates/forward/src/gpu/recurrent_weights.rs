//! Weights of recurrent layers in a network on the device.

use super::kernels::NONE;
use crate::cpu::network::Mixer;
use crate::cpu::panels::Panels;
use crate::cpu::recurrent::ConvWeights;

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
    /// Parts of `mixer`, whose vectors `push` uploads; `None` for attention.
    pub fn of(mixer: &'a Mixer, push: &mut impl FnMut(&[f32]) -> u32) -> Option<Self> {
        let kernel = match mixer {
            Mixer::ShortConv(conv) => &conv.kernel,
            Mixer::Delta(delta) => &delta.kernel,
            Mixer::Mamba(mamba) => &mamba.kernel,
            Mixer::Attention(_) | Mixer::Latent(_) => return None,
        };
        let convolution = Recurrent::of_convolution(kernel, push);
        Some(match mixer {
            Mixer::Delta(delta) => Self {
                vectors: Recurrent {
                    rate_bias: push(&delta.bias),
                    decay: push(&delta.decay),
                    norm: push(&delta.norm),
                    ..convolution
                },
                inputs: vec![&delta.inputs, &delta.gate, &delta.beta, &delta.alpha],
                output: &delta.output,
            },
            Mixer::Mamba(mamba) => Self {
                vectors: Recurrent {
                    rate_bias: push(&mamba.bias),
                    decay: push(&mamba.decay),
                    skip: push(&mamba.d),
                    norm: push(&mamba.norm),
                    ..convolution
                },
                inputs: vec![&mamba.inputs, &mamba.gate, &mamba.dt],
                output: &mamba.output,
            },
            Mixer::ShortConv(conv) => {
                Self { vectors: convolution, inputs: vec![&conv.projection], output: &conv.output }
            }
            Mixer::Attention(_) | Mixer::Latent(_) => return None,
        })
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
