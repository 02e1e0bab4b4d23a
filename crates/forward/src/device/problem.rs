//! Reasons why a GPU cannot be used. Each message says what was expected, what was found and what
//! to do.

use std::fmt;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::gpu::{Gpu, SOFTWARE};

/// Reason why a GPU cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", content = "args", rename_all = "snake_case")]
#[ts(export, rename = "GpuProblem")]
pub enum Problem {
    /// This build does not support the API; `seen` says whether the computer has such a GPU.
    NotBuilt {
        gpu: Gpu,
        seen: bool,
    },
    /// Neither a driver nor a GPU was found.
    NoGpu(Gpu),
    /// Only these software renderers were found.
    SoftwareOnly(Vec<String>),
    /// GPU number `wanted`, counted from 1, was asked for; `found` are all there are.
    NoSuchGpu {
        wanted: usize,
        found: Vec<String>,
    },
    /// No GPU has the chosen name.
    Gone(String),
    /// The driver supports an older CUDA than needed. Versions as CUDA numbers them: 12040 is 12.4.
    OldDriver {
        found: u32,
        needed: u32,
    },
    /// CUDA libraries that are not installed.
    NoLibraries(Vec<String>),
    Failed {
        gpu: Gpu,
        reason: String,
    },
}

impl Problem {
    /// Wraps a library's message. Only its first line is kept, without the full stop.
    pub fn failed(gpu: Gpu, reason: impl fmt::Display) -> Self {
        let reason = reason.to_string();
        let reason = reason.lines().next().unwrap_or_default().trim_end_matches('.').to_owned();
        Self::Failed { gpu, reason }
    }

    /// Problem for an error code of NVIDIA's driver; `words` are the driver's message.
    #[cfg(any(feature = "cuda", test))]
    pub(super) fn of_driver(code: u32, words: impl fmt::Display) -> Self {
        /// CUDA_ERROR_STUB_LIBRARY: the library has no driver behind it.
        const STUB: u32 = 34;
        /// CUDA_ERROR_NO_DEVICE.
        const NO_DEVICE: u32 = 100;
        match code {
            STUB | NO_DEVICE => Self::NoGpu(Gpu::Cuda),
            _ => Self::failed(Gpu::Cuda, words),
        }
    }

    /// Checks that the driver, for CUDA `found`, can run kernels built for CUDA `needed`.
    ///
    /// # Errors
    /// `OldDriver`: older drivers cannot read the kernels.
    #[cfg(any(feature = "cuda", test))]
    pub(super) fn of_versions(found: u32, needed: u32) -> Result<(), Self> {
        if found < needed { Err(Self::OldDriver { found, needed }) } else { Ok(()) }
    }

    /// Returns whether the computer seems to have a GPU that could be used once the problem is
    /// fixed.
    pub fn wastes_a_gpu(&self) -> bool {
        !matches!(self, Self::NoGpu(_) | Self::SoftwareOnly(_) | Self::NotBuilt { seen: false, .. })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt { gpu: Gpu::Cuda, seen: true } => {
                f.write_str("This computer has an NVIDIA GPU; a build made with `make cuda-build` can use it.")
            }
            Self::NotBuilt { gpu: Gpu::Metal, seen: true } => f.write_str(
                "This computer has a GPU that supports Metal; a build with `--features metal` can use it.",
            ),
            Self::NotBuilt { gpu: Gpu::Cuda, seen: false } => f.write_str(
                "This build does not support CUDA; one made with `make cuda-build` does. No NVIDIA driver was found \
                 on this computer either.",
            ),
            Self::NotBuilt { gpu: Gpu::Metal, seen: false } => {
                f.write_str("This build does not support Metal, which only Apple computers have.")
            }
            Self::NoGpu(Gpu::Cuda) => f.write_str(
                "CUDA found no NVIDIA GPU. If this computer has one, install NVIDIA's driver.",
            ),
            Self::NoGpu(Gpu::Metal) => f.write_str("Metal found no GPU on this computer."),
            Self::NoGpu(Gpu::Any) | Self::NotBuilt { gpu: Gpu::Any, .. } => f.write_str(
                "No GPU was found by Vulkan, Metal or DX12. If this computer has one, install its maker's driver.",
            ),
            Self::SoftwareOnly(programs) => write!(
                f,
                "This computer has no GPU, only a software renderer ({}), which is slower than the CPU. To use it \
                 anyway, set {SOFTWARE}=1.",
                programs.join("; ")
            ),
            Self::NoSuchGpu { wanted, found } => write!(
                f,
                "There is no GPU number {wanted}. This computer has {}.",
                found.iter().zip(1..).map(|(label, number)| format!("{number}: {label}")).collect::<Vec<_>>().join("; ")
            ),
            Self::Gone(name) => write!(f, "The GPU that was chosen is not there: {name}."),
            Self::OldDriver { found, needed } => write!(
                f,
                "NVIDIA's driver is too old: it supports CUDA {}, and this build needs {} or newer. Update the driver.",
                version(*found),
                version(*needed)
            ),
            Self::NoLibraries(missing) => write!(
                f,
                "CUDA's libraries are incomplete: {} not found. Install NVIDIA's CUDA toolkit, or only its runtime \
                 libraries.",
                missing.join(" and ")
            ),
            Self::Failed { gpu, reason } => write!(f, "{gpu} cannot be used: {reason}."),
        }
    }
}

/// Formats a CUDA version: 12040 is "12.4".
fn version(number: u32) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_without_a_gpu_and_a_missing_driver_are_the_same_problem() {
        assert_eq!(Problem::of_driver(34, "stub"), Problem::NoGpu(Gpu::Cuda));
        assert_eq!(Problem::of_driver(100, "no device"), Problem::NoGpu(Gpu::Cuda));
        let other = Problem::of_driver(46, "DriverError(CUDA_ERROR_DEVICE_UNAVAILABLE)");
        assert_eq!(other.to_string(), "CUDA cannot be used: DriverError(CUDA_ERROR_DEVICE_UNAVAILABLE).");
        assert!(other.wastes_a_gpu());
    }

    #[test]
    fn a_driver_older_than_the_builds_cuda_is_a_problem() {
        assert_eq!(Problem::of_versions(12040, 12040), Ok(()));
        assert_eq!(Problem::of_versions(13000, 12040), Ok(()));
        let old = Problem::of_versions(11080, 12090).unwrap_err();
        let words = "NVIDIA's driver is too old: it supports CUDA 11.8, and this build needs 12.9 or newer. Update the \
                     driver.";
        assert_eq!(old.to_string(), words);
    }

    #[test]
    fn missing_libraries_are_named() {
        let libraries = |names: &[&str]| {
            Problem::NoLibraries(names.iter().map(|&name| name.to_owned()).collect()).to_string()
        };
        let both = libraries(&["libcublas", "libcurand"]);
        assert!(both.contains(": libcublas and libcurand not found."), "{both}");
        let one = libraries(&["libcurand"]);
        assert!(one.contains(": libcurand not found."), "{one}");
    }

    #[test]
    fn a_build_without_gpus_says_which_build_would_use_the_one_it_sees() {
        let sentence = |gpu, seen| Problem::NotBuilt { gpu, seen }.to_string();
        let cuda = "This computer has an NVIDIA GPU; a build made with `make cuda-build` can use it.";
        assert_eq!(sentence(Gpu::Cuda, true), cuda);
        assert!(sentence(Gpu::Metal, true).contains("`--features metal` can use it."));
        assert!(sentence(Gpu::Cuda, false).contains("does not support CUDA"));
        assert!(sentence(Gpu::Metal, false).contains("Apple"));
    }

    #[test]
    fn a_missing_gpu_number_lists_the_gpus_there_are() {
        let found = vec!["Vulkan, AMD Radeon 780M".to_owned()];
        let words = Problem::NoSuchGpu { wanted: 3, found: found.clone() }.to_string();
        assert_eq!(words, "There is no GPU number 3. This computer has 1: Vulkan, AMD Radeon 780M.");
        let software = Problem::SoftwareOnly(found);
        assert!(software.to_string().contains("set FORETOKEN_SOFTWARE_GPU=1") && !software.wastes_a_gpu());
    }

    #[test]
    fn only_the_first_line_of_an_error_with_a_backtrace_is_shown() {
        let problem = Problem::failed(Gpu::Metal, "no queue.\n   0: candle_core::metal\n   1: main");
        assert_eq!(problem.to_string(), "Metal cannot be used: no queue.");
    }
}
