//! The engine for CPUs: weights packed for kernels that read them once for all rows of a pass, one
//! team of threads, and the same bits for a token whatever else is in the pass.
//!
//! From the file to the logits: [`panels`] packs matrices, [`activations`] rounds what they are
//! multiplied with, [`product`] multiplies, block by block as [`blocks`], [`codebooks`] and [`numbers`] say, [`attention`] and [`math`] do the rest of a layer, all of
//! them written once in the vectors of [`simd`] and compiled for each instruction set by [`kernels`];
//! [`isa`] chooses one. [`network`] holds a model's weights, [`workspace`] the memory that a [`pass`] over them needs,
//! and [`model`] both and the cache. Recurrent layers have a [`memory`] in its place, whose matrices [`step`] takes from row to row on the
//! way that [`walk`] finds. [`alone`] is for other engines to be compared with. [`team`] shares out the work, panels as [`reading`] says, and [`cores`] and
//! [`worth`] say among how many.

#![allow(
    clippy::needless_range_loop,
    reason = "a row's number picks from several arrays of registers at once"
)]

pub(super) mod activations;
pub(super) mod alone;
mod assistant;
mod attention;
pub(super) mod block_head;
mod blocks;
mod buffer;
mod cache;
mod codebooks;
mod cores;
pub(super) mod feed_forward;
mod isa;
mod kernels;
mod latent;
mod math;
mod memory;
mod model;
pub(super) mod network;
mod numbers;
mod packing;
pub(super) mod panels;
mod pass;
mod product;
mod reading;
mod recurrent;
mod scratch;
pub(super) mod simd;
mod step;
mod team;
#[cfg(test)]
mod tests;
pub(super) mod transition;
mod walk;
mod workspace;
mod worth;

use super::slices::{STRETCH, largest_of, sum_of_parts};

pub use isa::Isa;
pub use model::CpuModel;

/// The sum of e^(scale (x - largest)), slice by slice, which has the same bits with all instructions and on other
/// devices. What is no number counts as nothing.
pub(super) fn sum_exp(numbers: &[f32], largest: f32, scale: f32) -> f32 {
    sum_exp_with(numbers, &[], largest, scale)
}

/// The same where some have other values, by ascending place.
pub(super) fn sum_exp_with(numbers: &[f32], others: &[(usize, f32)], largest: f32, scale: f32) -> f32 {
    let kernels = Isa::best().kernels();
    let mut whole = [f32::NEG_INFINITY; STRETCH];
    let mut others = others.iter().peekable();
    let mut start = 0;
    let sum = |slice: &[f32]| {
        let length = slice.len().next_multiple_of(simd::LANES);
        whole[..slice.len()].copy_from_slice(slice);
        while let Some(&&(place, value)) = others.peek().filter(|other| other.0 < start + slice.len()) {
            whole[place - start] = value;
            others.next();
        }
        start += slice.len();
        let own = largest_of(&whole[..slice.len()]);
        whole[slice.len()..length].fill(f32::NEG_INFINITY);
        // SAFETY: these are instructions the processor has, and whole vectors of numbers.
        (own, unsafe { (kernels.sum_exp)(whole.as_ptr(), length, own, scale) })
    };
    sum_of_parts(numbers.chunks(STRETCH).map(sum), largest, scale)
}

/// e^x as in every kernel, up to 88; below -87 a number next to zero.
pub(super) fn exp(x: f32) -> f32 {
    use simd::Vector;
    // SAFETY: plain Rust on plain arrays.
    unsafe { math::exp::<simd::scalar::Scalar>(simd::scalar::Scalar::splat(x))[0] }
}
