//! Selection of the engine that runs a model.

use foretoken_model::error::{Error, Result};
use foretoken_model::{KvDtype, ModelSource};

use super::gpu::GpuModel;
use super::{CpuModel, Model, TensorModel};
use crate::device::Device;

/// Loads the model that `source` describes onto `device`.
///
/// # Errors
/// Those of `ModelSource::weights`, `Error::NotOnGpu` for a model that the GPU engine cannot run
/// and for a KV cache in 8 bits on any GPU, `Error::Setting` for a model that cannot have such a
/// cache, and `Error::Compute` when the device has no memory left.
pub fn load(source: &ModelSource, device: &Device) -> Result<Box<dyn Model>> {
    if source.config()?.kv_dtype == KvDtype::Int8 && !matches!(device, Device::Cpu) {
        return Err(Error::NotOnGpu("an 8-bit KV cache"));
    }
    Ok(match device {
        Device::Cpu => Box::new(CpuModel::load(source)?),
        Device::Gpu(device) => Box::new(GpuModel::load(source, device)?),
        Device::Tensors(device) => Box::new(TensorModel::load(source, device)?),
    })
}
