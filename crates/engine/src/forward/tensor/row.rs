//! A row of all heads of a recurrent layer: what it does to their matrices, and what it reads of them.

use candle_core::{Result, Tensor};

use super::memory::Update;

pub struct Row {
    pub query: Tensor, // [values, key_size, 1]
    pub key: Tensor,   // [values, key_size, 1]
    pub decay: Tensor, // [values, 1, 1]
    pub adds: Adds,
}

/// What is added by the row's key, after its decay.
pub enum Adds {
    /// So much of what the matrices lack of a value at this key.
    Correction {
        value: Tensor, // [values, 1, value_size]
        beta: Tensor,  // [values, 1, 1]
    },
    /// This.
    Value(Tensor), // [values, 1, value_size]
}

impl Row {
    /// What the row's query reads of the matrices after what it does to them, `[values, value_size]`.
    pub fn read(&self, matrices: &Tensor) -> Result<(Tensor, Update)> {
        let correction = match &self.adds {
            Adds::Correction { value, beta } => {
                let decayed = matrices.broadcast_mul(&self.decay)?;
                let known = decayed.broadcast_mul(&self.key)?.sum_keepdim(1)?;
                (value - known)?.broadcast_mul(beta)?
            }
            Adds::Value(value) => value.clone(),
        };
        let update = Update { decay: self.decay.clone(), key: self.key.clone(), correction };
        Ok((update.apply(matrices)?.broadcast_mul(&self.query)?.sum(1)?, update))
    }
}

/// ln(1 + e^x), as max(x, 0) + ln(1 + e^-|x|)
pub fn softplus(x: &Tensor) -> Result<Tensor> {
    x.relu()? + (x.abs()?.neg()?.exp()? + 1.0)?.log()?
}
