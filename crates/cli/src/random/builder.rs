//! Builds the tensors of a layer, scaled so that outputs are as large as inputs.

use foretoken_model::format::Format;

use super::mixture::{MatrixRole, Weights};
use super::tensor::{Tensor, Values};

/// The root mean square of silu(x) y for independent standard normal x and y.
const GATED: f64 = 0.596;

pub struct TensorBuilder {
    pub weights: Weights,
    pub layer: usize,
    /// Number of layers of the model.
    pub layers: usize,
    /// Standard deviation of the values that a matrix adds to the hidden state.
    pub added: f64,
}

impl TensorBuilder {
    /// The matrix `[rows, columns]` that maps inputs of deviation 1 to outputs of deviation `out`.
    pub fn one(&self, part: &str, kind: MatrixRole, [rows, columns]: [usize; 2], out: f64) -> Tensor {
        let (format, deviation) = (self.weights.format(kind, columns), out / (columns as f64).sqrt());
        Tensor::matrix(format!("blk.{}.{part}.weight", self.layer), [rows, columns], format, deviation)
    }

    /// Several such matrices in one tensor, `[count, rows, columns]`.
    pub fn stack(
        &self,
        part: &str,
        kind: MatrixRole,
        [count, rows, columns]: [usize; 3],
        out: f64,
    ) -> Tensor {
        Tensor { shape: vec![count, rows, columns], ..self.one(part, kind, [rows, columns], out) }
    }

    /// The role of this layer's matrices whose errors cost most.
    pub fn sensitive(&self) -> MatrixRole {
        MatrixRole::Sensitive { layer: self.layer.min(self.layers - 1), layers: self.layers }
    }

    pub fn norm(&self, part: &str, size: usize) -> Tensor {
        self.constant(&format!("{part}.weight"), &[size], 1.0)
    }

    pub fn constant(&self, part: &str, shape: &[usize], value: f32) -> Tensor {
        self.plain(part, shape, Values::Constant(value))
    }

    /// A tensor that is never quantised.
    pub fn plain(&self, part: &str, shape: &[usize], values: Values) -> Tensor {
        let name = format!("blk.{}.{part}", self.layer);
        Tensor { name, shape: shape.to_vec(), format: Format::F32, values }
    }

    /// Deviation of the output of a gated network that is added to the hidden state.
    pub fn gated(&self) -> f64 {
        self.added / GATED
    }

    /// A gated network; `ending` is appended to the names of its matrices.
    pub fn feed_forward(&self, ending: &str, hidden: usize, width: usize) -> [Tensor; 3] {
        let one = |part: &str, kind, shape, out| self.one(&format!("{part}{ending}"), kind, shape, out);
        [
            one("ffn_gate", MatrixRole::Other, [width, hidden], 1.0),
            one("ffn_up", MatrixRole::Other, [width, hidden], 1.0),
            one("ffn_down", self.sensitive(), [hidden, width], self.gated()),
        ]
    }
}
