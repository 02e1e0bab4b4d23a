//! Domino's correction of a block's scores: a GRU over the block's tokens, and a low-rank bias of
//! the top candidates from its state. The products with matrices are the engine's.

use foretoken_model::Domino as Sizes;
use foretoken_model::error::Result;

use super::block_head::Domino;
use super::exp;
use super::rescoring::{Multiply, PositionScores, add_to_top};

impl Domino {
    /// State of the GRU after `state` (empty for zeros) and a token with this `embedding`, as
    /// `torch.nn.GRU` without biases computes it:
    /// r = sigmoid(W_ir x + W_hr h), z = sigmoid(W_iz x + W_hz h),
    /// n = tanh(W_in x + r * (W_hn h)), h' = (1 - z) * n + z * h.
    ///
    /// # Errors
    /// As `multiply`.
    pub fn step(&self, state: &[f32], embedding: &[f32], multiply: &mut Multiply<'_>) -> Result<Vec<f32>> {
        let gru = self.state.inputs();
        let of_token = multiply(&self.input, embedding)?;
        let (state, of_state) = match state.is_empty() {
            true => (vec![0.0; gru], vec![0.0; 3 * gru]),
            false => (state.to_vec(), multiply(&self.state, state)?),
        };
        let next = |at: usize| {
            let [r, z, n] = [at, gru + at, 2 * gru + at];
            let reset = sigmoid(of_token[r] + of_state[r]);
            let update = sigmoid(of_token[z] + of_state[z]);
            let new = tanh(of_token[n] + reset * of_state[n]);
            (1.0 - update) * new + update * state[at]
        };
        Ok((0..gru).map(next).collect())
    }

    /// Scores of a position after tokens that left the GRU in `state`: the bias
    /// `after * silu(reduce * [position; state])` is added to the top candidates.
    ///
    /// # Errors
    /// As `multiply`, and errors of fetching the scores.
    pub fn scores(
        &self,
        scored: PositionScores<'_>,
        state: &[f32],
        multiply: &mut Multiply<'_>,
    ) -> Result<Vec<f32>> {
        let mut reduced = multiply(&self.reduce, &[scored.state, state].concat())?;
        reduced.iter_mut().for_each(|number| *number *= sigmoid(*number));
        add_to_top(scored.scores, Sizes::CANDIDATES, &self.after, &reduced)
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

fn tanh(x: f32) -> f32 {
    1.0 - 2.0 / (1.0 + exp(2.0 * x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activations_are_those_of_their_definitions_and_bounded() {
        for x in [-200.0, -9.0, -1.0, -1e-3, 0.0, 0.3, 4.0, 200.0f32] {
            let expected = 1.0 / (1.0 + (-f64::from(x)).exp());
            assert!((f64::from(sigmoid(x)) - expected).abs() < 1e-6, "{x}");
            assert!((f64::from(tanh(x)) - f64::from(x).tanh()).abs() < 1e-6, "{x}");
        }
    }
}
