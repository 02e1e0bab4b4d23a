//! Selection of the engine that runs a model.

use foretoken_model::ModelSource;
use foretoken_model::error::Result;

use super::gpu::GpuModel;
use super::{CpuModel, Model, TensorModel};
use crate::device::Device;

/// Loads the model that `source` describes onto `device`.
///
/// # Errors
/// Those of `ModelSource::weights`, `Error::NotOnGpu` for a model that the GPU engine cannot run,
/// and `Error::Compute` when the device has no memory left.
pub fn load(source: &ModelSource, device: &Device) -> Result<Box<dyn Model>> {
    Ok(match device {
        Device::Cpu => Box::new(CpuModel::load(source)?),
        Device::Gpu(device) => Box::new(GpuModel::load(source, device)?),
        Device::Tensors(device) => Box::new(TensorModel::load(source, device)?),
    })
}
