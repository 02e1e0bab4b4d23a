//! Layers that every vision model is made of.

use candle_core::Tensor;
use candle_nn::ops::layer_norm;
use foretoken_model::VisionSource;
use foretoken_model::error::Result;

/// `x W^T + b`
pub(super) struct Linear {
    weight: Tensor,       // [inputs, outputs]
    bias: Option<Tensor>, // [outputs]
}

impl Linear {
    /// Loads a layer by its name.
    ///
    /// # Errors
    /// As [`VisionSource::tensor`].
    pub fn load(source: &VisionSource, name: &str) -> Result<Self> {
        let weight = source.tensor(&format!("{name}.weight"))?;
        let bias = format!("{name}.bias");
        let bias = source.contains(&bias).then(|| source.tensor(&bias)).transpose()?;
        Self::new(&weight, bias)
    }

    /// Layer with a weight `[outputs, inputs]`.
    ///
    /// # Errors
    /// `Error::Compute` without memory.
    pub fn new(weight: &Tensor, bias: Option<Tensor>) -> Result<Self> {
        Ok(Self { weight: weight.t()?.contiguous()?, bias })
    }

    /// `[rows, inputs]` to `[rows, outputs]`
    ///
    /// # Errors
    /// `Error::Compute` without memory.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let product = x.matmul(&self.weight)?;
        Ok(match &self.bias {
            Some(bias) => product.broadcast_add(bias)?,
            None => product,
        })
    }
}

/// Layer normalisation.
pub(super) struct Norm {
    weight: Tensor, // [width]
    bias: Tensor,   // [width]
    epsilon: f32,
}

impl Norm {
    /// Loads a norm by its name.
    ///
    /// # Errors
    /// As [`VisionSource::tensor`].
    pub fn load(source: &VisionSource, name: &str) -> Result<Self> {
        Ok(Self {
            weight: source.tensor(&format!("{name}.weight"))?,
            bias: source.tensor(&format!("{name}.bias"))?,
            epsilon: source.config().epsilon as f32,
        })
    }

    /// # Errors
    /// `Error::Compute` without memory.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(layer_norm(&x.contiguous()?, &self.weight, &self.bias, self.epsilon)?)
    }
}
