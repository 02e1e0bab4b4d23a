//! Layers that every vision model is made of.

use candle_core::{DType, Device, Tensor};
use candle_nn::ops::{layer_norm, rms_norm};
use foretoken_model::VisionSource;
use foretoken_model::error::Result;

/// `x W^T + b`, in some models of clamped numbers.
pub(super) struct Linear {
    weight: Tensor,       // [inputs, outputs]
    bias: Option<Tensor>, // [outputs]
    bounds: Option<Bounds>,
}

/// Least and largest numbers that enter and leave a matrix.
struct Bounds {
    input: [f32; 2],
    output: [f32; 2],
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
        Ok(Self { bounds: Bounds::load(source, name)?, ..Self::new(&weight, bias)? })
    }

    /// Layer with a weight `[outputs, inputs]`.
    ///
    /// # Errors
    /// `Error::Compute` without memory.
    pub fn new(weight: &Tensor, bias: Option<Tensor>) -> Result<Self> {
        Ok(Self { weight: weight.t()?.contiguous()?, bias, bounds: None })
    }

    /// `[rows, inputs]` to `[rows, outputs]`
    ///
    /// # Errors
    /// `Error::Compute` without memory.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let Some(Bounds { input, output }) = &self.bounds else { return self.product(x) };
        let clamp = |x: &Tensor, [least, most]: [f32; 2]| x.clamp(least, most);
        Ok(clamp(&self.product(&clamp(x, *input)?)?, *output)?)
    }

    fn product(&self, x: &Tensor) -> Result<Tensor> {
        let product = x.matmul(&self.weight)?;
        Ok(match &self.bias {
            Some(bias) => product.broadcast_add(bias)?,
            None => product,
        })
    }
}

impl Bounds {
    /// Loads the bounds of a layer, in a model that has them.
    fn load(source: &VisionSource, name: &str) -> Result<Option<Self>> {
        if !source.config().clamps || !source.contains(&format!("{name}.input_min")) {
            return Ok(None);
        }
        let bound = |bound: &str| -> Result<f32> {
            Ok(source.tensor(&format!("{name}.{bound}"))?.flatten_all()?.get(0)?.to_scalar::<f32>()?)
        };
        Ok(Some(Self {
            input: [bound("input_min")?, bound("input_max")?],
            output: [bound("output_min")?, bound("output_max")?],
        }))
    }
}

/// Layer or RMS normalisation.
pub(super) struct Norm {
    weight: Tensor, // [width]
    /// `None` for an RMS norm.
    bias: Option<Tensor>, // [width]
    epsilon: f32,
}

impl Norm {
    /// Loads a norm of the model's kind by its name.
    ///
    /// # Errors
    /// As [`VisionSource::tensor`].
    pub fn load(source: &VisionSource, name: &str) -> Result<Self> {
        let has_bias = source.config().projector.options().layer_norms;
        Ok(Self {
            weight: source.tensor(&format!("{name}.weight"))?,
            bias: has_bias.then(|| source.tensor(&format!("{name}.bias"))).transpose()?,
            epsilon: source.config().epsilon as f32,
        })
    }

    /// RMS norm without weights.
    ///
    /// # Errors
    /// `Error::Compute` without memory.
    pub fn plain(width: usize, epsilon: f64) -> Result<Self> {
        let weight = Tensor::ones(width, DType::F32, &Device::Cpu)?;
        Ok(Self { weight, bias: None, epsilon: epsilon as f32 })
    }

    /// The norm with another epsilon.
    #[must_use]
    pub fn with_epsilon(self, epsilon: f64) -> Self {
        Self { epsilon: epsilon as f32, ..self }
    }

    /// Normalises the last dimension.
    ///
    /// # Errors
    /// `Error::Compute` without memory.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.contiguous()?;
        Ok(match &self.bias {
            Some(bias) => layer_norm(&x, &self.weight, bias, self.epsilon)?,
            None => rms_norm(&x, &self.weight, self.epsilon)?,
        })
    }
}
