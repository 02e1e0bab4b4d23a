//! Source of a layer's tensors.

use candle_core::{Device, Tensor};
use foretoken_model::error::Result;
use foretoken_model::{ModelConfig, Weights};

use super::stack::{Arithmetic, Stack};

/// Layer index, weights and settings from which a layer is loaded.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    pub index: usize,
    pub weights: &'a Weights,
    pub config: &'a ModelConfig,
    pub arithmetic: Arithmetic,
}

impl Origin<'_> {
    /// Loads matrices of the layer, stacked vertically.
    ///
    /// # Errors
    /// A missing tensor, or `Error::Compute` when the device has no room.
    pub fn stack(&self, names: &[&str]) -> Result<Stack> {
        let device = self.weights.device();
        // Several matrices are concatenated on the CPU first.
        let at = if names.len() > 1 { &Device::Cpu } else { device };
        let matrix = |name: &&str| self.weights.matrix_on(at, &format!("blk.{}.{name}.weight", self.index));
        Ok(Stack::new(names.iter().map(matrix).collect::<Result<_>>()?, self.arithmetic, device)?)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.weights.contains(&format!("blk.{}.{name}", self.index))
    }

    /// # Errors
    /// As [`Self::stack`].
    pub fn vector(&self, name: &str) -> Result<Tensor> {
        self.weights.vector(&format!("blk.{}.{name}", self.index))
    }
}
