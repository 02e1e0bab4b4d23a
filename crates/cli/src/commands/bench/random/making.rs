//! Makes the tensors of a layer, so that outputs are as large as inputs.

use foretoken_engine::format::Format;

use super::mixture::{Part, Weights};
use super::tensor::{Tensor, Values};

/// The root mean square of silu(x) y for independent standard normal x and y.
const GATED: f64 = 0.596;

pub struct Making {
    pub weights: Weights,
    pub layer: usize,
    /// Of the model.
    pub layers: usize,
    /// The deviation of what a matrix adds to the hidden state.
    pub added: f64,
}

impl Making {
    /// The matrix `[rows, columns]` that makes outputs of deviation `out` of inputs of deviation 1.
    pub fn one(&self, part: &str, kind: Part, [rows, columns]: [usize; 2], out: f64) -> Tensor {
        let (format, deviation) = (self.weights.format(kind, columns), out / (columns as f64).sqrt());
        Tensor::matrix(format!("blk.{}.{part}.weight", self.layer), [rows, columns], format, deviation)
    }

    /// So many of them in one tensor, `[count, rows, columns]`.
    pub fn stack(&self, part: &str, kind: Part, [count, rows, columns]: [usize; 3], out: f64) -> Tensor {
        Tensor { shape: vec![count, rows, columns], ..self.one(part, kind, [rows, columns], out) }
    }

    /// Where errors cost most, in this layer.
    pub fn sensitive(&self) -> Part {
        Part::Sensitive { layer: self.layer.min(self.layers - 1), layers: self.layers }
    }

    pub fn norm(&self, part: &str, size: usize) -> Tensor {
        self.constant(&format!("{part}.weight"), &[size], 1.0)
    }

    pub fn constant(&self, part: &str, shape: &[usize], value: f32) -> Tensor {
        self.plain(part, shape, Values::Constant(value))
    }

    /// One that is never quantised.
    pub fn plain(&self, part: &str, shape: &[usize], values: Values) -> Tensor {
        let name = format!("blk.{}.{part}", self.layer);
        Tensor { name, shape: shape.to_vec(), format: Format::F32, values }
    }

    /// What comes out of a gated network, added to the hidden state.
    pub fn gated(&self) -> f64 {
        self.added / GATED
    }

    /// A gated network, whose matrices' names end like this.
    pub fn feed_forward(&self, ending: &str, hidden: usize, width: usize) -> [Tensor; 3] {
        let one = |part: &str, kind, shape, out| self.one(&format!("{part}{ending}"), kind, shape, out);
        [
            one("ffn_gate", Part::Other, [width, hidden], 1.0),
            one("ffn_up", Part::Other, [width, hidden], 1.0),
            one("ffn_down", self.sensitive(), [hidden, width], self.gated()),
        ]
    }
}
