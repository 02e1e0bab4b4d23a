//! Rankings on the device: a matrix scores rows, and the highest entries of each row, experts or
//! clusters of tokens, become slots with weights.

use foretoken_model::error::Result;
use wgpu::Buffer;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::{Kernel, NONE};
use super::matrix::Matrix;
use super::product::{Out, Product};
use super::state::{Ranked, Rows};
use super::step::Step;
use crate::cpu::simd::LANES;

/// Rules by which the weights of the highest entries follow from scores. Vectors are offsets into
/// those of the network, or [`NONE`].
#[derive(Debug, Clone, Copy)]
pub struct Weighting {
    /// Weights of the highest entries add up to 1, else those of all entries do.
    pub normalised: bool,
    /// Number that is added to the sum of the sigmoids; `None` for a softmax.
    pub sigmoid: Option<f32>,
    /// Added to the scores.
    pub bias: u32,
    /// Added to the sigmoids for the selection.
    pub selection_bias: u32,
    /// Factors of the weights.
    pub scales: u32,
    /// Factor of all weights.
    pub scale: f32,
}

/// Kernels of a ranking.
pub struct Ranking {
    scores: Product,
    top_k: Step,
    arrange: Step,
    ranked: usize,
    /// Immediates of `top_k.wgsl`.
    params: [u32; 10],
}

impl Weighting {
    /// Softmax over the highest entries.
    pub const SOFTMAX: Self =
        Self { normalised: true, sigmoid: None, bias: NONE, selection_bias: NONE, scales: NONE, scale: 1.0 };
}

impl Ranking {
    /// Binds the kernels to the matrix that scores `rows`, and to the buffers of the ranking.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn new(
        device: &GpuDevice,
        matrix: &Matrix,
        rows: &Rows,
        vectors: &Buffer,
        ranked: &Ranked,
        weighting: Weighting,
    ) -> Result<Self> {
        let Ranked { count, top_k, scores, choices, slots, slot_of } = ranked;
        let Weighting { normalised, sigmoid, bias, selection_bias, scales, scale } = weighting;
        let stride = count.next_multiple_of(LANES);
        let sizes = [*count, stride, *top_k, usize::from(normalised), usize::from(sigmoid.is_some())];
        let [count, stride, highest, normalised, is_sigmoid] = sizes.map(|n| n as u32);
        let [scale, epsilon] = [scale, sigmoid.unwrap_or(0.0)].map(f32::to_bits);
        Ok(Self {
            scores: Product::new(device, std::slice::from_ref(matrix), rows, Out::Store(scores))?,
            top_k: Step::new(device, Kernel::TopK, &[scores, vectors, choices])?,
            arrange: Step::new(device, Kernel::Arrange, &[choices, slots, slot_of])?,
            ranked: *top_k,
            params: [
                count,
                stride,
                highest,
                normalised,
                is_sigmoid,
                bias,
                selection_bias,
                scales,
                scale,
                epsilon,
            ],
        })
    }

    /// Ranks the first `rows` and arranges their slots in tiles of size `tile`. Returns the number
    /// of slots.
    pub fn run(&self, pass: &mut Dispatches, rows: usize, tile: usize) -> usize {
        let slots = rows * self.ranked;
        self.scores.run(pass, rows);
        self.top_k.run(pass, &self.params, [rows, 1]);
        self.arrange.run(pass, &[slots, self.ranked, tile].map(|n| n as u32), [1, 1]);
        slots
    }
}
