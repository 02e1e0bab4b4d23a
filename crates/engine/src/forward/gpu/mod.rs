//! The engine for GPUs of every make, by wgpu: Vulkan, Metal and DX12 from one source of kernels, with the CPU engine's
//! packed weights, its order of sums and, where the device rounds as it should, its very bits.
//!
//! [`opening`] finds a GPU, of which [`probe`] measures the [`promises`]; [`device`] hands it work, as much at once as its
//! [`pace`] allows, and hears of every [`failure`]. [`kernels`] are its programs, whose text is in [`source`] and which
//! become [`pipelines`]; a [`step`] is one of them with what it works on, a [`product`] those of a [`matrix`], and
//! [`recording`] the [`dispatches`] of a pass.
//!
//! [`network`] holds a model's weights, [`state`] what a pass works in, [`memory`] the [`cache`] of each layer. A pass over them for the
//! rows of a [`chunk`] is handed its [`inputs`] or makes them by [`embed`]; [`pass`] is its order, [`attention`] and
//! [`feed_forward`] the parts of a layer, [`experts`] what is different in one where a row goes through some networks of
//! many, [`gate`] what both kinds begin with. [`joined`] is what a draft head's pass begins with, [`block`] what one does
//! that guesses blocks. [`scores`] is what comes back of logits, [`returning`] what else, and [`model`] all of it.

mod attention;
mod block;
mod cache;
mod chunk;
mod device;
mod dispatches;
mod embed;
mod experts;
mod failure;
#[cfg(test)]
mod faults;
mod feed_forward;
mod gate;
mod inputs;
mod joined;
mod kernels;
mod matrix;
mod memory;
mod model;
mod network;
mod opening;
mod pace;
mod pass;
mod pipelines;
mod probe;
mod product;
mod promises;
mod recording;
mod returning;
mod scores;
mod source;
mod state;
mod step;
#[cfg(test)]
mod tests;

pub use device::GpuDevice;
pub use model::GpuModel;
pub use network::missing as unsupported;
pub use opening::{Found, find, unfound};
pub use promises::Promises;
pub use source::programs;
