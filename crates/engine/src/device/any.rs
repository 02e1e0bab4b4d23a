//! GPUs of every make, for kernels of our own: the only place that knows which one was named. What opening one takes
//! is in `forward/gpu/device.rs`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::gpu::{Gpu, SOFTWARE};
use super::problem::Problem;
use crate::forward::gpu::{GpuDevice, Unopened};

/// The GPU that was named by [`super::use_gpu`].
pub fn open() -> Result<Arc<GpuDevice>, Problem> {
    let software = std::env::var_os(SOFTWARE).is_some_and(|value| value == "1");
    GpuDevice::open(super::GPU.load(Ordering::Relaxed), software).map_err(|unopened| match unopened {
        Unopened::None { software } if software.is_empty() => Problem::NoGpu(Gpu::Any),
        Unopened::None { software } => Problem::SoftwareOnly(software),
        Unopened::Fewer { wanted, found } => Problem::NoSuchGpu { wanted, found },
        Unopened::Failed(reason) => Problem::failed(Gpu::Any, reason),
    })
}
