//! The formats that weights come in, the types of GGUF of the same names: how large their blocks are, in a file and
//! packed for the kernels, and what becomes of a block's bits. Knows no file and no kernel.

mod block;
mod codebook;
mod random;
#[cfg(test)]
mod tests;
mod types;

pub use block::Block;
pub use random::random_blocks;
#[cfg(test)]
pub(crate) use random::set_halves;
pub use types::Format;
