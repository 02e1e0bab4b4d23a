//! APIs for GPUs, and labels. `cuda`, `metal` and `any` find and open GPUs.

use std::fmt;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

#[cfg(any(feature = "cuda", feature = "metal", test))]
use super::label::{DeviceFact, DeviceLabel};

/// Environment variable that accepts software renderers as GPUs, for tests.
pub const SOFTWARE: &str = "FORETOKEN_SOFTWARE_GPU";

/// API by which a GPU is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, rename = "GpuApi")]
pub enum Gpu {
    Cuda,
    Metal,
    /// Vulkan, Metal or DX12 by wgpu, with the kernels of `gpu`.
    Any,
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cuda => "CUDA",
            Self::Metal => "Metal",
            Self::Any => "The GPU",
        })
    }
}

/// Memory of a GPU in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuMemory {
    pub total_bytes: u64,
    pub free_bytes: u64,
}

/// Label such as "CUDA, NVIDIA H100, 80 GB", in units of 2^30 bytes.
#[cfg(any(feature = "cuda", feature = "metal", test))]
pub fn gpu_label(gpu: Gpu, name: &str, total_bytes: u64) -> DeviceLabel {
    let gigabytes = (total_bytes as f64 / f64::from(1 << 30)).round() as u32;
    let facts = vec![DeviceFact::Memory { gigabytes }];
    DeviceLabel { api: Some(gpu.to_string()), name: name.trim().to_owned(), facts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_say_which_gpu_computes() {
        assert_eq!(
            gpu_label(Gpu::Cuda, "NVIDIA H100 ", 85_520_809_984).to_string(),
            "CUDA, NVIDIA H100, 80 GB"
        );
        assert_eq!(gpu_label(Gpu::Metal, "Apple M3", 17_179_869_184).to_string(), "Metal, Apple M3, 16 GB");
    }
}
