//! Scales of NVFP4 matrices, which GGUF files have as tensors of their own: `X.scale` multiplies
//! the weights of `X.weight`, one number for each matrix of a stack. `X.input_scale` is for
//! activations in four bits, which no engine here uses.

use crate::format::Format;
use crate::tensors::{Factor, Tensors};

/// Moves the scales from the tensors to the matrices that they belong to.
pub(super) fn attach(tensors: &mut Tensors) {
    let is_nvfp4 = |stored: &crate::tensors::Stored| stored.format == Format::Nvfp4;
    let matrices = tensors.stored.iter().filter(|(_, stored)| is_nvfp4(stored));
    let parts: Vec<String> =
        matrices.filter_map(|(name, _)| name.strip_suffix(".weight").map(str::to_owned)).collect();
    for part in parts {
        tensors.stored.remove(&format!("{part}.input_scale"));
        let (weight, scale) = (format!("{part}.weight"), format!("{part}.scale"));
        let matrices = match tensors.stored[&weight].shape[..] {
            [stack, _, _] => stack,
            _ => 1,
        };
        let belongs = |scale: &crate::tensors::Stored| {
            scale.format == Format::F32 && [1, matrices as u64].contains(&scale.elements())
        };
        // Others stay, and are reported as unknown tensors.
        let Some(found) = tensors.stored.get(&scale).filter(|found| belongs(found)) else { continue };
        let factor = Factor { file: found.file, at: found.bytes.start, count: found.elements() as usize };
        tensors.stored.remove(&scale);
        if let Some(weight) = tensors.stored.get_mut(&weight) {
            weight.factor = Some(factor);
        }
    }
}
