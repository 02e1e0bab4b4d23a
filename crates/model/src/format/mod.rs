//! Storage formats of weights: GGUF's types with their block sizes, in a file and packed for the
//! kernels, and the meaning of a block's bits.
//!
//! Independent of files and kernels.

mod block;
mod codebook;
mod random;
#[cfg(test)]
mod tests;
mod types;

pub use block::Block;
pub use random::{random_blocks, set_halves};
pub use types::Format;
