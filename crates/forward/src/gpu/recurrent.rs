//! Recurrent layers on the device: gated short convolutions (LFM2), Gated DeltaNet (Qwen3.5) and
//! Mamba-2 (Granite 4). A convolution, then the steps of the state matrices, their norm and gate;
//! last, what later passes need is stored. A [`walk`](super::walk) names the states and records.

use foretoken_model::error::Result;
use foretoken_model::{ModelConfig, Recurrence, RecurrentKind};
use wgpu::Buffer;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::{Kernel, NONE};
use super::recurrent_memory::Slots;
use super::state::{ROWS, Rows};
use super::step::Step;
use super::walk::Walk;
use crate::cpu::network::Mixer;
use crate::cpu::panels::Panels;
use crate::cpu::recurrent::{ConvWeights, QK_EPSILON};
use crate::cpu::simd::LANES;
use crate::cpu::step::COLUMNS;

/// Most numbers of a key that `recur.wgsl` supports.
pub const LONGEST_KEY: usize = 128;

/// Channels of a workgroup of `convolve_gates.wgsl`.
const CHANNELS: usize = 256;

/// Vectors of a recurrent layer, as offsets into the network's, or [`NONE`].
#[derive(Debug)]
pub struct Recurrent {
    /// Weights and bias of the convolution.
    weights: u32,
    bias: u32,
    /// Biases and factors of the inputs of each head's decay.
    rate_bias: u32,
    decay: u32,
    /// Factors of values that go past the matrix (D).
    skip: u32,
    norm: u32,
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

/// Buffers of the rows of a pass, which all recurrent layers share.
#[derive(Debug)]
pub struct RecurrentRows {
    /// Numbers per row of `projected`.
    stride: usize,
    /// Outputs of a layer's first matrices: channels, gates and rates, each in whole vectors.
    pub projected: Buffer, // [rows, stride]
    convolved: Buffer,   // [rows, channels]
    rates: Buffer,       // [rows, 2 * values + keys]
    corrections: Buffer, // [rows, values * value_size]
    /// Output of the state matrices.
    given: Buffer, // [rows, values * value_size]
    /// Input of the layer's last matrix.
    pub mixed: Rows, // values * value_size, or channels
}

impl RecurrentRows {
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn new(device: &GpuDevice, recurrence: &Recurrence) -> Result<Self> {
        let Recurrence { kind, channels, heads, .. } = recurrence;
        let [channels, width] = [*channels, heads.value_width()];
        let [rates, whole] = [heads.values, channels].map(|count| count.next_multiple_of(LANES));
        let (stride, mixed) = match kind {
            RecurrentKind::ShortConv => ((3 * channels).next_multiple_of(LANES), channels),
            RecurrentKind::Delta => (whole + width + 2 * rates, width),
            RecurrentKind::Mamba => (whole + width + rates, width),
        };
        let numbers = |width: usize| device.buffer(4 * ROWS * width);
        // Without state matrices, kernels convolve on the way to the last matrix.
        let convolved = if width == 0 { 0 } else { channels };
        Ok(Self {
            stride,
            projected: numbers(stride)?,
            convolved: numbers(convolved)?,
            rates: numbers(2 * heads.values + heads.keys)?,
            corrections: numbers(width)?,
            given: numbers(width)?,
            mixed: Rows::new(device, ROWS, mixed)?,
        })
    }
}

/// Buffers that the kernels of a recurrent layer are bound to.
pub struct Bound<'a> {
    pub rows: &'a RecurrentRows,
    /// States and records of the layer.
    pub slots: &'a Slots,
    /// Words of a [`Walk`].
    pub words: &'a Buffer,
    pub vectors: &'a Buffer,
}

/// Kernels of a recurrent layer, bound to its states and records.
pub struct RecurrentSteps {
    recurrence: Recurrence,
    /// Numbers per row of the projected rows.
    stride: usize,
    /// Width of a row of the output.
    width: usize,
    convolve: Step,
    /// Steps of the state matrices, and their norm and gate.
    matrices: Option<[Step; 2]>,
    remember: Step,
    /// Epsilon of the norm.
    epsilon: f32,
}

impl RecurrentSteps {
    /// # Errors
    /// As [`Step::new`].
    pub fn new(
        device: &GpuDevice,
        recurrence: &Recurrence,
        bound: &Bound<'_>,
        config: &ModelConfig,
    ) -> Result<Self> {
        let Bound { rows, slots, words, vectors } = *bound;
        let RecurrentRows { projected, convolved, rates, corrections, given, mixed, .. } = rows;
        let (states, records) = (&slots.states, &slots.records);
        let short = recurrence.kind == RecurrentKind::ShortConv;
        let (kernel, to) = match short {
            true => (Kernel::ConvolveGates, [&mixed.plain, &mixed.quants, &mixed.scales]),
            false => (Kernel::ConvolveHeads, [convolved, rates, corrections]),
        };
        let convolve = [&[projected, records, states, words, vectors][..], &to].concat();
        let recur = [convolved, rates, records, states, words, vectors, corrections, given];
        let gate = [projected, given, vectors, &mixed.plain, &mixed.quants, &mixed.scales];
        let matrices = || -> Result<_> {
            Ok([Step::new(device, Kernel::Recur, &recur)?, Step::new(device, Kernel::GateHeads, &gate)?])
        };
        let remember = [projected, convolved, rates, corrections, words, records, states];
        let epsilon = match recurrence.kind {
            RecurrentKind::Mamba => config.inner_epsilon(),
            _ => config.norm_epsilon,
        };
        Ok(Self {
            recurrence: recurrence.clone(),
            stride: rows.stride,
            width: mixed.width,
            convolve: Step::new(device, kernel, &convolve)?,
            matrices: (!short).then(matrices).transpose()?,
            remember: Step::new(device, Kernel::Remember, &remember)?,
            epsilon: epsilon as f32,
        })
    }

    /// Mixes the projected rows of a chunk into the input of the layer's last matrix.
    pub fn run(&self, pass: &mut Dispatches, layer: &Recurrent, walk: &Walk) {
        let Recurrence { channels, heads, .. } = &self.recurrence;
        match &self.matrices {
            None => {
                let params = [&self.sizes()[..], &[layer.weights, layer.bias, self.width as u32]].concat();
                self.convolve.run(pass, &params, [channels.div_ceil(CHANNELS), walk.rows]);
            }
            Some([recur, gate]) => {
                self.convolve.run(pass, &self.convolve_params(layer), [heads.keys + heads.values, walk.rows]);
                let own = [usize::from(heads.grouped), walk.visits, walk.first_visit].map(|n| n as u32);
                let params = [&self.sizes()[..], &own, &[layer.skip]].concat();
                recur.run(pass, &params, [heads.value_size / COLUMNS, heads.values]);
                let (groups, params) = self.gate_params(layer);
                gate.run(pass, &params, [groups, walk.rows]);
            }
        }
        let params = [&self.sizes()[..], &[walk.rows as u32, walk.tails as u32]].concat();
        let numbers = channels.next_multiple_of(LANES)
            + heads.values.next_multiple_of(LANES)
            + heads.key_width()
            + heads.value_width();
        self.remember.run(pass, &params, [numbers.div_ceil(64), walk.rows + 1]);
    }

    /// `Sizes` of `recurrence.wgsl`.
    fn sizes(&self) -> [u32; 8] {
        let Recurrence { kind, taps, channels, heads, .. } = &self.recurrence;
        let kind = match kind {
            RecurrentKind::ShortConv => 0,
            RecurrentKind::Delta => 1,
            RecurrentKind::Mamba => 2,
        };
        let of_heads = [heads.keys, heads.values, heads.key_size, heads.value_size];
        let [keys, values, key_size, value_size] = of_heads.map(|n| n as u32);
        let [stride, taps, channels] = [self.stride, *taps, *channels].map(|n| n as u32);
        [kind, stride, taps, channels, keys, values, key_size, value_size]
    }

    /// Immediates of `convolve_heads.wgsl`.
    fn convolve_params(&self, layer: &Recurrent) -> Vec<u32> {
        let epsilon = QK_EPSILON / self.recurrence.heads.key_size as f32;
        let [least, most] = self.recurrence.steps;
        let numbers = [epsilon, least, most].map(f32::to_bits);
        let vectors = [layer.weights, layer.bias, layer.rate_bias, layer.decay];
        [&self.sizes()[..], &vectors, &numbers].concat()
    }

    /// Groups of numbers that are normed together, and immediates of `gate_heads.wgsl`.
    fn gate_params(&self, layer: &Recurrent) -> (usize, [u32; 7]) {
        let Recurrence { kind, channels, heads, .. } = &self.recurrence;
        let gate_first = *kind == RecurrentKind::Mamba;
        let groups = if gate_first { heads.keys } else { heads.values };
        let sizes = [self.stride, channels.next_multiple_of(LANES), heads.value_width() / groups, self.width];
        let [stride, gates, size, width] = sizes.map(|n| n as u32);
        let params = [stride, gates, size, width, layer.norm, self.epsilon.to_bits(), u32::from(gate_first)];
        (groups, params)
    }
}
