//! Recurrent layers on the device: gated short convolutions (LFM2), Gated DeltaNet (Qwen3.5) and
//! Mamba-2 (Granite 4). A convolution, then the steps of the state matrices, their norm and gate;
//! last, what later passes need is stored. A [`walk`](super::walk) names the states and records.

use foretoken_model::error::Result;
use foretoken_model::{ModelConfig, Recurrence, RecurrentKind};
use wgpu::Buffer;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::Kernel;
use super::recurrent_memory::Slots;
use super::recurrent_weights::Recurrent;
use super::state::RecurrentRows;
use super::step::Step;
use super::walk::Walk;
use crate::cpu::recurrent::QK_EPSILON;
use crate::cpu::simd::LANES;
use crate::cpu::step::COLUMNS;

/// Channels of a workgroup of `convolve_gates.wgsl`.
const CHANNELS: usize = 256;

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
