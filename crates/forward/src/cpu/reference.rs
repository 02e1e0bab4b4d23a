//! Single kernels over one row, as a reference for the engines of other devices.

use foretoken_model::Activation;

use super::activations::{Activations, BLOCK};
use super::isa::Isa;
use super::panels::Panels;
use super::product::{Product, Rows};
use super::simd::LANES;
use crate::Peak;
use crate::slices::STRETCH;

/// Returns `x / sqrt(mean(x^2) + epsilon) * weight`. Both slices have the same length.
pub fn rms_norm(x: &[f32], weight: &[f32], epsilon: f32) -> Vec<f32> {
    assert_eq!(x.len(), weight.len());
    let mut out = vec![0.0; x.len()];
    let kernels = Isa::best().kernels();
    // SAFETY: the processor has the instructions, and all three have the same length.
    unsafe { (kernels.rms_norm)(x.as_ptr(), weight.as_ptr(), out.as_mut_ptr(), x.len(), epsilon) };
    out
}

/// Returns `activation(gate) * up`. Both slices have the same length.
pub fn activate(activation: Activation, gate: &[f32], up: &[f32]) -> Vec<f32> {
    assert_eq!(gate.len(), up.len());
    let whole = gate.len().next_multiple_of(LANES);
    let (mut out, mut up) = (gate.to_vec(), up.to_vec());
    out.resize(whole, 0.0);
    up.resize(whole, 0.0);
    let kernels = Isa::best().kernels();
    let kernel = kernels.times(activation);
    // SAFETY: the processor has the instructions, and both are padded to whole vectors.
    unsafe { kernel(out.as_mut_ptr(), up.as_ptr(), whole) };
    out.truncate(gate.len());
    out
}

/// Scale of a block of 32 numbers quantised to 8 bits, and the scale times the sum of the quants.
pub fn scales(block: &[f32]) -> [f32; 2] {
    assert_eq!(block.len(), BLOCK);
    let mut quantised = Activations::default();
    quantised.resize(1, BLOCK, 1);
    // SAFETY: the processor has the instructions, and the row is one block.
    unsafe { (Isa::best().kernels().quantise)(&quantised, quantised.tile_row(0), 0, 1, block.as_ptr()) };
    let tile = quantised.tile(0, 1);
    // SAFETY: both were written above.
    unsafe { [tile.scales.read(), tile.sums.read()] }
}

/// Returns `matrix * x`, with `x` quantised to 8 bits if the weights are quantised.
pub fn product(matrix: &Panels, x: &[f32]) -> Vec<f32> {
    assert_eq!(x.len(), matrix.inputs());
    let (kernels, format) = (Isa::best().kernels(), matrix.format());
    let mut quantised = Activations::default();
    let rows = match format.quantised() {
        true => {
            quantised.resize(1, x.len(), 1);
            // SAFETY: the processor has the instructions, and the row is whole blocks, as its
            // matrix is.
            unsafe { (kernels.quantise)(&quantised, quantised.tile_row(0), 0, x.len() / 32, x.as_ptr()) };
            Rows::Quantised(quantised.tile(0, 1))
        }
        false => Rows::Plain { rows: 1, x: x.as_ptr(), stride: x.len() },
    };
    let mut out = vec![0.0; matrix.panels() * LANES];
    for (panel, out) in out.chunks_exact_mut(LANES).enumerate() {
        let product = Product {
            panel: matrix.panel(panel).as_ptr(),
            blocks: x.len() / format.inputs(),
            next: matrix.panel(0).as_ptr(),
            x: rows,
            out: out.as_mut_ptr(),
            stride: LANES,
            factor: matrix.factor(),
            add: false,
        };
        // SAFETY: the panel has as many blocks as the row, and `out` has room for a panel's rows.
        unsafe { (kernels.product)(format, 1)(&product) };
    }
    out.truncate(matrix.rows());
    out
}

/// Finds the peak of a row of logits, with the bits that a pass gives it. Overwrites the padding of
/// the row with negative infinity.
pub fn peak(row: &mut [f32], vocabulary: usize) -> Peak {
    let kernels = Isa::best().kernels();
    row[vocabulary..].fill(f32::NEG_INFINITY);
    // SAFETY: the processor has the instructions, and slices are whole vectors.
    let slice = |slice: &[f32]| unsafe { (kernels.largest_and_sum)(slice.as_ptr(), slice.len()) };
    let slices: Vec<(f32, f32)> = row.chunks(STRETCH).map(slice).collect();
    Peak::of_slices(&row[..vocabulary], &slices, STRETCH)
}
