//! A tensor with random weights, before its numbers are drawn.

use foretoken_model::format::Format;

use super::mixture::bytes;

/// A tensor to generate: a matrix, or a vector of norm weights.
pub struct Tensor {
    pub name: String,
    /// Outermost dimension first: `[out, in]`.
    pub shape: Vec<usize>,
    pub format: Format,
    pub values: Values,
}

pub enum Values {
    Constant(f32),
    /// Independent with mean 0.
    Random {
        deviation: f32,
    },
}

impl Tensor {
    /// A matrix of independent random numbers.
    pub fn matrix(name: String, shape: [usize; 2], format: Format, deviation: f64) -> Self {
        let values = Values::Random { deviation: deviation as f32 };
        Self { name, shape: shape.to_vec(), format, values }
    }

    pub fn numbers(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn bytes(&self) -> usize {
        bytes(self.format, self.numbers())
    }
}
