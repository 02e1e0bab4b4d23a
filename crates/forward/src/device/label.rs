//! Labels of devices as fields, so that the window can word them in its language.

use std::fmt;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// End of the name of a software renderer.
const SOFTWARE: &str = ", software";

/// Label of a device. Displays in English, in the form that replies and measurements are stored
/// with: "CPU, 8 threads, AVX-512", "Vulkan, AMD Radeon 780M, bit-identical to the CPU".
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct DeviceLabel {
    /// API by which a GPU is used: "Vulkan".
    pub api: Option<String>,
    /// "CPU", "AMD Radeon 780M"
    pub name: String,
    pub facts: Vec<DeviceFact>,
}

/// Fact about a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum DeviceFact {
    /// Threads of the CPU in use.
    Threads { count: u32 },
    /// Instruction set of the CPU in use: "AVX-512".
    Instructions { name: String },
    /// No instruction set beyond the CPU's basic one.
    PlainInstructions,
    /// Memory in units of 2^30 bytes.
    Memory { gigabytes: u32 },
    /// Host of a remote server with its port.
    Host { address: String },
    /// The device is a software renderer.
    Software,
    /// Results have the CPU engine's bits.
    BitIdentical,
    /// Results differ from the CPU engine's by rounding.
    OwnRounding,
    /// Tiles of different sizes give a row different bits, so one size is used.
    OneTile,
}

impl DeviceLabel {
    /// Label with a name and no facts.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Label of a GPU by its name in choices: "Vulkan, AMD Radeon 780M". The API comes before the
    /// name, which may contain commas.
    pub fn of_gpu(name: &str) -> Self {
        let (api, name) = name.split_once(", ").map_or((None, name), |(api, name)| (Some(api), name));
        let software = name.strip_suffix(SOFTWARE);
        Self {
            api: api.map(str::to_owned),
            name: software.unwrap_or(name).to_owned(),
            facts: software.map(|_| DeviceFact::Software).into_iter().collect(),
        }
    }
}

impl fmt::Display for DeviceLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(api) = &self.api {
            write!(f, "{api}, ")?;
        }
        f.write_str(&self.name)?;
        self.facts.iter().try_for_each(|fact| write!(f, ", {fact}"))
    }
}

impl fmt::Display for DeviceFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads { count: 1 } => f.write_str("1 thread"),
            Self::Threads { count } => write!(f, "{count} threads"),
            Self::Instructions { name } => f.write_str(name),
            Self::PlainInstructions => f.write_str("plain instructions"),
            Self::Memory { gigabytes } => write!(f, "{gigabytes} GB"),
            Self::Host { address } => f.write_str(address),
            Self::Software => f.write_str("software"),
            Self::BitIdentical => f.write_str("bit-identical to the CPU"),
            Self::OwnRounding => f.write_str("rounds in its own way"),
            Self::OneTile => f.write_str("one tile for all rows"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpus_name_is_split_into_api_name_and_software_and_displays_as_before() {
        let name = "Vulkan, llvmpipe (LLVM 15.0.6, 256 bits), software";
        let label = DeviceLabel::of_gpu(name);
        assert_eq!(label.name, "llvmpipe (LLVM 15.0.6, 256 bits)");
        assert_eq!((label.api.as_deref(), &label.facts[..]), (Some("Vulkan"), &[DeviceFact::Software][..]));
        for name in [name, "Vulkan, AMD Radeon 780M", "A GPU"] {
            assert_eq!(DeviceLabel::of_gpu(name).to_string(), name);
        }
    }

    #[test]
    fn labels_display_in_the_form_that_files_store() {
        let facts =
            vec![DeviceFact::Threads { count: 1 }, DeviceFact::Instructions { name: "AVX-512".to_owned() }];
        let cpu = DeviceLabel { facts, ..DeviceLabel::named("CPU") };
        assert_eq!(cpu.to_string(), "CPU, 1 thread, AVX-512");
        let facts = vec![DeviceFact::OwnRounding, DeviceFact::OneTile];
        let gpu = DeviceLabel { facts, ..DeviceLabel::of_gpu("Vulkan, A GPU") };
        assert_eq!(gpu.to_string(), "Vulkan, A GPU, rounds in its own way, one tile for all rows");
    }
}
