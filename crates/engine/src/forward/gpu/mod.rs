//! The engine for GPUs of every make, by wgpu: Vulkan, Metal and DX12 from one source of kernels, with the CPU engine's
//! packed weights, its order of sums and, where the device rounds as it should, its very bits.
//!
//! [`opening`] finds a GPU, of which [`probe`] measures the [`promises`]; [`device`] hands it work, as much at once as its
//! [`pace`] allows, and hears of every [`failure`]. [`kernels`] are its programs, whose text is in [`source`] and which
//! become [`pipelines`]; a [`step`] is one of them with what it works on, and [`recording`] those of a pass.
//!
//! [`network`] holds a model's weights, [`state`] the memory of a pass, [`cache`] keys and values; [`pass`] is a pass over
//! them for the rows of a [`chunk`], [`experts`] what is different in one where a row goes through some networks of many,
//! [`joined`] what a draft head's begins with, [`block`] what one does that guesses blocks, [`scores`] what comes back of
//! logits, and [`model`] all of it.

mod block;
mod cache;
mod chunk;
mod device;
mod experts;
mod failure;
#[cfg(test)]
mod faults;
mod joined;
mod kernels;
mod model;
mod network;
mod opening;
mod pace;
mod pass;
mod pipelines;
mod probe;
mod promises;
mod recording;
mod scores;
mod source;
mod state;
mod step;
#[cfg(test)]
mod tests;

pub use device::GpuDevice;
pub use model::GpuModel;
pub use opening::{Found, find, unfound};
pub use promises::Promises;
pub use source::programs;
