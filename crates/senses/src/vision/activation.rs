//! Activation functions. GELU's tanh form runs on all threads; candle computes it on one.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor, bail};
use foretoken_model::VisionActivation;
use rayon::prelude::*;

/// Numbers per unit of work.
const UNIT: usize = 1 << 14;

/// GELU's approximation by tanh (Hendrycks and Gimpel 2016).
struct GeluTanh;

impl CustomOp1 for GeluTanh {
    fn name(&self) -> &'static str {
        "gelu-tanh"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (CpuStorage::F32(numbers), Some((start, end))) = (storage, layout.contiguous_offsets()) else {
            bail!("numbers of 32 bits one after the other")
        };
        let mut out = vec![0.0; end - start];
        out.par_chunks_mut(UNIT).zip(numbers[start..end].par_chunks(UNIT)).for_each(|(out, numbers)| {
            out.iter_mut().zip(numbers).for_each(|(out, &number)| *out = gelu_tanh(number));
        });
        Ok((CpuStorage::F32(out), layout.shape().clone()))
    }
}

fn gelu_tanh(x: f32) -> f32 {
    // sqrt(2 / pi)
    const ROOT: f32 = 0.797_884_6;
    0.5 * x * (1.0 + (ROOT * x * (1.0 + 0.044_715 * x * x)).tanh())
}

/// Applies an activation function to every number.
///
/// # Errors
/// Those of candle, without memory.
pub(super) fn activated(activation: VisionActivation, x: &Tensor) -> Result<Tensor> {
    match activation {
        VisionActivation::GeluTanh => x.contiguous()?.apply_op1_no_bwd(&GeluTanh),
        VisionActivation::Gelu => x.gelu_erf(),
        VisionActivation::Silu => x.silu(),
    }
}
