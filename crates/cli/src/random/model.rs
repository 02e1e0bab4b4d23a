//! Parses the name of a model with random weights.

use std::fmt;
use std::str::FromStr;

use super::mixture::Weights;
use super::shape::{SHAPES, Shape};

/// A shape and its storage of weights, "0.5B:Q4_K_M".
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomModel {
    pub shape: Shape,
    pub weights: Weights,
}

impl FromStr for RandomModel {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (shape, weights) = text.split_once(':').unwrap_or((text, ""));
        let shape = SHAPES.into_iter().find(|known| known.name == shape);
        let weights = Weights::ALL.into_iter().find(|known| known.name() == weights);
        match (shape, weights) {
            (Some(shape), Some(weights)) => Ok(Self { shape, weights }),
            _ => Err(format!(
                "expected SHAPE:WEIGHTS with a shape of {} and weights of {}",
                SHAPES.map(|shape| shape.name).join(", "),
                Weights::ALL.map(Weights::name).join(", ")
            )),
        }
    }
}

impl fmt::Display for RandomModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.shape.name, self.weights.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_named_by_shape_and_weights() {
        for name in ["tiny:F16", "tiny:Q5_K", "0.5B:Q4_K_M", "1.1B:Q8_0", "8B:Q4_K_M"] {
            assert_eq!(name.parse::<RandomModel>().unwrap().to_string(), name);
        }
        for name in ["", "0.5B", "0.5B:", "7B:Q8_0", "0.5B:Q3_K_M", "Q8_0:0.5B"] {
            let error = name.parse::<RandomModel>().unwrap_err();
            assert!(error.contains("tiny, 0.5B, 1.1B, 8B") && error.contains("Q4_K_M, Q8_0, F16"), "{error}");
        }
    }
}
