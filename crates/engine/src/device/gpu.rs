//! The kinds of GPU, and what they are called. Finding and opening them is for `cuda` and `metal`.

use std::fmt;

/// The variable that lets programs be opened that play a GPU on the CPU: for tests.
pub const SOFTWARE: &str = "FORETOKEN_SOFTWARE_GPU";

/// A kind of GPU, by the way to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gpu {
    Cuda,
    Metal,
    /// Of any make, by this engine's own kernels.
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

/// The memory of a GPU, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuMemory {
    pub total_bytes: u64,
    pub free_bytes: u64,
}

/// "CUDA, NVIDIA H100, 80 GB", in gigabytes as memory is sold: of 2^30 bytes.
#[cfg(any(feature = "cuda", feature = "metal", test))]
pub fn gpu_label(gpu: Gpu, name: &str, total_bytes: u64) -> String {
    let gigabytes = (total_bytes as f64 / f64::from(1 << 30)).round();
    format!("{gpu}, {}, {gigabytes} GB", name.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_say_which_gpu_computes() {
        assert_eq!(gpu_label(Gpu::Cuda, "NVIDIA H100 ", 85_520_809_984), "CUDA, NVIDIA H100, 80 GB");
        assert_eq!(gpu_label(Gpu::Metal, "Apple M3", 17_179_869_184), "Metal, Apple M3, 16 GB");
    }
}
