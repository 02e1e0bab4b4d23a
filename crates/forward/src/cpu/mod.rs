//! Inference on the CPU. Weights are packed for kernels that read them once for all rows of a pass.
//! A team of threads runs a pass together. A token's logits have the same bits whatever else is in
//! the pass.
//!
//! From the file to the logits:
//!
//! - [`panels`] and [`packing`]: matrices packed from a file
//! - [`activations`]: rows quantised to 8 bits
//! - [`product`]: matrix products, by blocks of [`blocks`], [`codebooks`] or [`numbers`]
//! - [`attention`], [`latent`], [`math`]: everything else in a layer; [`int8_attention`],
//!   [`hadamard`]: attention over keys and values in 8 bits
//! - [`weights`]: weights of sampling
//! - [`simd`], [`kernels`], [`isa`]: kernels are written once over SIMD traits, compiled for each
//!   instruction set, and chosen at start
//! - [`network`], [`head`], [`workspace`], [`cache`]: weights, buffers and keys and values
//! - [`memory`], [`step`], [`tree_walk`]: state of recurrent layers in a text and in a tree
//! - [`stored`]: all that a text has cached, to be put aside
//! - [`pass`], [`model`]: a forward pass, and the model with its cache
//! - [`team`], [`prefetch`]: threads, and how panels are shared out among them
//! - [`cores`], [`team_size`]: how many threads a pass uses
//! - [`reference`]: single kernels, for comparison with other devices

#![allow(
    clippy::needless_range_loop,
    reason = "a row's number picks from several arrays of registers at once"
)]

pub(super) mod activations;
pub(super) mod assistant;
mod attention;
mod attention_units;
pub(super) mod block_head;
mod blocks;
mod buffer;
mod cache;
mod codebooks;
mod cores;
mod domino;
mod exponentials;
pub(super) mod feed_forward;
mod hadamard;
pub(super) mod head;
mod int8_attention;
mod isa;
mod kernels;
pub(super) mod latent;
mod math;
pub(super) mod memory;
mod model;
pub(super) mod network;
mod numbers;
mod packing;
pub(super) mod panels;
mod pass;
mod prefetch;
mod product;
pub(super) mod recurrent;
mod recurrent_buffers;
pub(super) mod reference;
pub(super) mod rescoring;
pub(super) mod simd;
pub(super) mod step;
mod stored;
mod team;
mod team_size;
#[cfg(test)]
mod tests;
mod tree_walk;
pub(super) mod visible;
mod workspace;

use super::slices::{STRETCH, largest_of, sum_of_parts};

pub use cache::PAGE;
pub use isa::Isa;
pub use model::CpuModel;
pub use stored::Stored;

/// Returns the sum of `e^(scale (x - largest))`, slice by slice, with the same bits for all
/// instruction sets and other devices. NaN counts as nothing.
pub(super) fn sum_exp(numbers: &[f32], largest: f32, scale: f32) -> f32 {
    sum_exp_with(numbers, &[], largest, scale)
}

/// Returns [`sum_exp`] with some numbers replaced by `others`, which are ascending indices and
/// values.
pub(super) fn sum_exp_with(numbers: &[f32], others: &[(usize, f32)], largest: f32, scale: f32) -> f32 {
    let kernels = Isa::best().kernels();
    let mut whole = [f32::NEG_INFINITY; STRETCH];
    let mut others = others.iter().peekable();
    let mut start = 0;
    let sum = |slice: &[f32]| {
        let length = slice.len().next_multiple_of(simd::LANES);
        whole[..slice.len()].copy_from_slice(slice);
        while let Some(&&(index, value)) = others.peek().filter(|other| other.0 < start + slice.len()) {
            whole[index - start] = value;
            others.next();
        }
        start += slice.len();
        let own = largest_of(&whole[..slice.len()]);
        whole[slice.len()..length].fill(f32::NEG_INFINITY);
        // SAFETY: the processor has the instructions, and the numbers are whole vectors.
        (own, unsafe { (kernels.sum_exp)(whole.as_ptr(), length, own, scale) })
    };
    sum_of_parts(numbers.chunks(STRETCH).map(sum), largest, scale)
}

/// Returns the largest number of each stretch and its sum of `e^(x - largest)`, as a pass does.
pub(super) fn stretches(numbers: &[f32]) -> Vec<(f32, f32)> {
    let kernels = Isa::best().kernels();
    let mut whole = [f32::NEG_INFINITY; STRETCH];
    let stretch = |stretch: &[f32]| {
        let length = stretch.len().next_multiple_of(simd::LANES);
        let x = if length == stretch.len() {
            stretch
        } else {
            whole[..stretch.len()].copy_from_slice(stretch);
            &whole[..length]
        };
        // SAFETY: the processor has the instructions, and the numbers are whole vectors.
        unsafe { (kernels.largest_and_sum)(x.as_ptr(), x.len()) }
    };
    numbers.chunks(STRETCH).map(stretch).collect()
}

/// Computes `out = e^(scale (x - largest))` in 64 bits, accurate to two units in the last place,
/// with the same bits for all instruction sets; 0 for NaN and for weights below e^-708.
pub(super) fn exponentials(x: &[f32], largest: f32, scale: f64, out: &mut [f64]) {
    // SAFETY: the processor has the instructions.
    unsafe { (Isa::best().kernels().exponentials)(x, largest, scale, out) }
}

/// Returns e^x with the bits of every kernel and system, see [`math::exp`].
pub(super) fn exp(x: f32) -> f32 {
    // SAFETY: the processor has the instructions.
    unsafe { (Isa::best().kernels().exp)(x) }
}
