//! One row of a recurrent layer, for all heads: its update of the state matrices and its output.

use candle_core::{Result, Tensor};

use super::memory::Update;

pub struct Row {
    pub query: Tensor, // [values, key_size, 1]
    pub key: Tensor,   // [values, key_size, 1]
    pub decay: Tensor, // [values, 1, 1]
    pub added: Added,
}

/// Term that a row adds at its key, after the decay.
pub enum Added {
    /// Delta rule: `beta` times the difference between the value and the one stored at this key.
    Correction {
        value: Tensor, // [values, 1, value_size]
        beta: Tensor,  // [values, 1, 1]
    },
    /// The value itself.
    Value(Tensor), // [values, 1, value_size]
}

impl Row {
    /// Returns the output of the row's query after the row's update, `[values, value_size]`, and
    /// the update.
    pub fn read(&self, matrices: &Tensor) -> Result<(Tensor, Update)> {
        let correction = match &self.added {
            Added::Correction { value, beta } => {
                let decayed = matrices.broadcast_mul(&self.decay)?;
                let stored = decayed.broadcast_mul(&self.key)?.sum_keepdim(1)?;
                (value - stored)?.broadcast_mul(beta)?
            }
            Added::Value(value) => value.clone(),
        };
        let update = Update { decay: self.decay.clone(), key: self.key.clone(), correction };
        Ok((update.apply(matrices)?.broadcast_mul(&self.query)?.sum(1)?, update))
    }
}

/// ln(1 + e^x), as max(x, 0) + ln(1 + e^-|x|).
pub fn softplus(x: &Tensor) -> Result<Tensor> {
    x.relu()? + (x.abs()?.neg()?.exp()? + 1.0)?.log()?
}
