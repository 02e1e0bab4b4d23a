//! Names of devices as users choose them: in the terminal, in the settings and in their storage.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ts_rs::TS;

use super::gpu::Gpu;

/// The user's choice of a device: `auto`, `cpu`, `cuda`, `metal`, `gpu`, `gpu:2` or `gpu:` with a
/// GPU's name.
#[derive(Debug, Clone, Default, PartialEq, Eq, TS)]
#[ts(export, type = "\"auto\" | \"cpu\" | \"cuda\" | \"metal\" | \"gpu\" | `gpu:${string}`")]
pub enum DeviceChoice {
    /// A GPU if one is faster, else the CPU.
    #[default]
    Auto,
    Cpu,
    Cuda,
    Metal,
    /// A GPU of any vendor, by wgpu.
    Gpu(GpuName),
}

/// Selection of one of several GPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum GpuName {
    /// The presumably fastest one.
    #[default]
    First,
    /// By number; 1 is the presumably fastest.
    Number(NonZeroUsize),
    /// By name: "Vulkan, AMD Radeon 780M".
    Called(String),
}

impl DeviceChoice {
    /// APIs to try, the best first.
    pub(super) fn gpus(&self) -> &'static [Gpu] {
        match self {
            Self::Auto => &[Gpu::Cuda, Gpu::Metal],
            Self::Cpu => &[],
            Self::Cuda => &[Gpu::Cuda],
            Self::Metal => &[Gpu::Metal],
            Self::Gpu(_) => &[Gpu::Any],
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::Metal => "metal",
            Self::Gpu(GpuName::First) => "gpu",
            Self::Gpu(GpuName::Number(number)) => return write!(f, "gpu:{number}"),
            Self::Gpu(GpuName::Called(name)) => return write!(f, "gpu:{name}"),
        })
    }
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Ok(match name {
            "auto" => Self::Auto,
            "cpu" => Self::Cpu,
            "cuda" => Self::Cuda,
            "metal" => Self::Metal,
            "gpu" => Self::Gpu(GpuName::First),
            _ => match name.strip_prefix("gpu:").map(str::trim) {
                Some(name) if !name.is_empty() => Self::Gpu(gpu_name(name)?),
                _ => return Err(EXPECTED.to_owned()),
            },
        })
    }
}

const EXPECTED: &str = "expected auto, cpu, gpu, gpu:N with N from 1 on, gpu:NAME, cuda or metal";

fn gpu_name(name: &str) -> Result<GpuName, String> {
    if name.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
        return name.parse().map(GpuName::Number).map_err(|_| EXPECTED.to_owned());
    }
    Ok(GpuName::Called(name.to_owned()))
}

impl Serialize for DeviceChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DeviceChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_stored_by_name_and_auto_is_the_default() {
        let called = |name: &str| DeviceChoice::Gpu(GpuName::Called(name.to_owned()));
        let second = DeviceChoice::Gpu(GpuName::Number(NonZeroUsize::new(2).unwrap()));
        let names = [
            ("auto", DeviceChoice::Auto),
            ("cpu", DeviceChoice::Cpu),
            ("cuda", DeviceChoice::Cuda),
            ("metal", DeviceChoice::Metal),
            ("gpu", DeviceChoice::Gpu(GpuName::First)),
            ("gpu:2", second),
            ("gpu:Vulkan, AMD Radeon 780M", called("Vulkan, AMD Radeon 780M")),
        ];
        for (name, choice) in names {
            let stored = serde_json::to_string(&choice).unwrap();
            assert_eq!(stored, format!("\"{name}\""));
            assert_eq!(serde_json::from_str::<DeviceChoice>(&stored).unwrap(), choice);
        }
        assert_eq!(DeviceChoice::default(), DeviceChoice::Auto);
    }

    #[test]
    fn unknown_device_names_are_rejected_with_the_valid_ones() {
        for name in ["", "GPU", "abacus", "gpu:", "gpu: ", "gpu:0", "gpu:-1", "gpu:2x", "cpu:1"] {
            assert_eq!(name.parse::<DeviceChoice>(), Err(EXPECTED.to_owned()), "{name}");
        }
    }
}
