//! The GPU engine, by wgpu: Vulkan, Metal and DX12 from one set of WGSL kernels. It uses the CPU
//! engine's packed weights and order of sums. Where the device rounds correctly, its results have
//! the CPU engine's bits.
//!
//! - Device: [`opening`] finds and opens a GPU, [`probe`] measures its [`guarantees`]; [`device`]
//!   allocates, submits and waits. [`pace`] limits the work of a submission; [`failure`] collects
//!   errors.
//! - Kernels: [`kernels`] lists them, [`source`] assembles their WGSL, [`pipelines`] compiles them.
//!   A [`step`] is a kernel with its buffers, a [`product`] the kernels of a [`matrix`]; a
//!   [`recording`] encodes the [`dispatches`] of a pass.
//! - Model: [`network`] holds the weights, [`state`] the activations, [`memory`] the KV [`cache`]
//!   of every layer with attention, [`recurrent_memory`] the states of the others.
//! - Pass: [`inputs`] uploads what the rows of a [`chunk`] need, [`embed`] looks up embeddings,
//!   [`pictures`] replaces those of pictures. [`pass`] encodes the layers: [`norm`], [`attention`]
//!   over [`runs`], over a [`latent`], or a [`recurrent`] layer along a [`walk`]; [`feed_forward`],
//!   [`dense`] or with [`experts`] by a [`ranking`], a [`shared_expert`] or [`dense_and_experts`];
//!   and inputs of their own ([`per_layer`]). [`head_input`] begins the pass of a draft head,
//!   [`block`] is the rest of a head that drafts blocks, [`assistant`] that of Gemma 4's
//!   assistants, with [`clusters`] of tokens.
//! - Outputs: [`scores`] returns logits, [`outputs`] everything else, with the keys and values of
//!   [`kv_rows`]. [`model`] combines the parts.

mod assistant;
mod attention;
mod block;
mod cache;
mod chunk;
mod clusters;
mod dense;
mod dense_and_experts;
mod device;
mod dispatches;
mod embed;
mod experts;
mod failure;
#[cfg(test)]
mod failure_tests;
mod feed_forward;
mod gate;
mod guarantees;
mod head_input;
mod inputs;
mod kernels;
mod kv_rows;
mod latent;
mod latent_state;
mod latent_weights;
mod matrix;
mod memory;
mod model;
mod network;
mod norm;
mod opening;
#[cfg(test)]
mod order_tests;
mod outputs;
mod pace;
mod pass;
mod per_layer;
mod pictures;
mod pipelines;
mod probe;
mod product;
mod profile;
mod ranking;
mod recording;
mod recurrent;
mod recurrent_memory;
mod recurrent_weights;
mod runs;
mod scores;
mod shared_expert;
mod source;
mod state;
mod step;
#[cfg(test)]
mod tests;
mod timestamps;
mod walk;

pub use device::{Bounds, DeviceCounts, GpuDevice};
pub use guarantees::Guarantees;
pub use model::GpuModel;
pub use network::missing as unsupported;
pub use opening::{Found, find, unfound};
pub use probe::{Comparison, comparisons};
pub use profile::{KernelTime, profiled};
pub use source::shaders;
