//! The engine for GPUs of every make, by wgpu: Vulkan, Metal and DX12 from one source of kernels, with the CPU engine's
//! packed weights, its order of sums and, where the device rounds as it should, its very bits.
//!
//! [`opening`] finds a GPU, of which [`probe`] measures the [`promises`]; [`device`] hands it work and hears of its failures;
//! [`kernels`] are its programs, and [`step`] one of them with what it works on. [`network`] holds a model's weights,
//! [`state`] the memory of a pass, [`cache`] keys and values; [`pass`] is a pass over them, and [`model`] all of it.

mod cache;
mod device;
mod kernels;
mod model;
mod network;
mod opening;
mod pass;
mod probe;
mod promises;
mod state;
mod step;
#[cfg(test)]
mod tests;

pub use device::GpuDevice;
pub use kernels::programs;
pub use model::GpuModel;
pub use opening::Unopened;
pub use promises::Promises;
