//! Which engine runs a model.

use candle_core::Device;

use super::{CpuModel, Model, TensorModel};
use crate::error::Result;
use crate::model::ModelSource;

/// Loads the model that `source` describes onto `device`: the CPU by the engine made for it, others by
/// candle's tensors.
///
/// # Errors
/// What `ModelSource::weights` reports, and `Error::Compute` when the device has no room.
pub fn load(source: &ModelSource, device: &Device) -> Result<Box<dyn Model>> {
    Ok(if device.is_cpu() {
        Box::new(CpuModel::load(source)?)
    } else {
        Box::new(TensorModel::load(source, device)?)
    })
}
