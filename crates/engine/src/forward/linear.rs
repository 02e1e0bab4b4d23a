//! A matrix product with quantised or plain weights whose every row is computed by the same
//! instructions in the same order, however many rows there are.

use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{Module, Tensor};

/// candle switches to another kernel from 32 rows on where the processor has AMX.
const MOST_ROWS: usize = 31;

/// `y = x W^T` with `W` `[out, in]`.
#[derive(Debug, Clone)]
pub struct Linear {
    weight: QMatMul,
    /// candle multiplies a single Q6_K row by another kernel than several.
    pad_single_row: bool,
}

impl Linear {
    /// # Errors
    /// If the device cannot hold plain weights.
    pub fn new(weight: Arc<QTensor>) -> candle_core::Result<Self> {
        let pad_single_row = weight.device().is_cpu() && weight.dtype() == GgmlDType::Q6K;
        // On the CPU plain weights stay as they are stored and are multiplied row by row; elsewhere
        // they become ordinary tensors, for which the device has kernels.
        let weight =
            if weight.device().is_cpu() { QMatMul::QTensor(weight) } else { QMatMul::from_arc(weight)? };
        Ok(Self { weight, pad_single_row })
    }

    /// `[rows, in]` to `[rows, out]`.
    pub fn forward(&self, x: &Tensor) -> candle_core::Result<Tensor> {
        let rows = x.dim(0)?;
        if !x.device().is_cpu() {
            return self.weight.forward(x);
        }
        if rows == 1 && self.pad_single_row {
            return self.weight.forward(&Tensor::cat(&[x, x], 0)?)?.narrow(0, 0, 1);
        }
        if rows <= MOST_ROWS {
            return self.weight.forward(x);
        }
        let mut parts = Vec::with_capacity(rows.div_ceil(MOST_ROWS));
        for start in (0..rows).step_by(MOST_ROWS) {
            parts.push(self.forward(&x.narrow(0, start, MOST_ROWS.min(rows - start))?)?);
        }
        Tensor::cat(&parts, 0)
    }
}
