//! What computes.

use std::num::NonZeroUsize;
use std::str::FromStr;

use clap::Args;
use foretoken_engine::device::DeviceChoice;
use foretoken_engine::model::ModelSource;

use crate::error::Result;
use crate::session;

/// What computes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Device")]
pub struct DeviceArgs {
    /// What computes: `auto`, `cpu`, `gpu` (by Vulkan, Metal or DX12; `gpu:2` is the second), and in builds for
    /// them `cuda` and `metal`. `auto` takes one of the last two where there is one. If the device is unavailable,
    /// the CPU is used and standard error says why
    #[arg(long, value_name = "auto|cpu|gpu|gpu:N|cuda|metal", default_value = "auto")]
    device: DeviceName,
    /// Threads that compute on the CPU [default: one for each core]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub threads: Option<NonZeroUsize>,
    /// Round weights of 16 and 32 bits to Q8_0 as they are loaded: faster, in less memory, and no longer
    /// exactly those of the file
    #[arg(long)]
    eight_bits: bool,
}

/// What computes for a target and its draft.
#[derive(Debug, Args)]
#[command(next_help_heading = "Device")]
pub struct PairDeviceArgs {
    #[command(flatten)]
    pub target: DeviceArgs,
    /// What computes for the draft [default: what computes for the target]
    #[arg(long, value_name = "auto|cpu|gpu|cuda|metal", value_parser = draft_device)]
    draft_device: Option<DeviceChoice>,
}

/// A device by name: which one, and of several GPUs its number from 0 on.
#[derive(Debug, Clone, Copy)]
struct DeviceName {
    choice: DeviceChoice,
    number: Option<usize>,
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        let of = |choice| Ok(Self { choice, number: None });
        match name {
            "auto" => of(DeviceChoice::Auto),
            "cpu" => of(DeviceChoice::Cpu),
            "gpu" => of(DeviceChoice::Gpu),
            "cuda" => of(DeviceChoice::Cuda),
            "metal" => of(DeviceChoice::Metal),
            _ => match name.strip_prefix("gpu:").map(str::parse::<NonZeroUsize>) {
                Some(Ok(number)) => Ok(Self { choice: DeviceChoice::Gpu, number: Some(number.get() - 1) }),
                _ => Err("expected auto, cpu, gpu, gpu:N with N from 1 on, cuda or metal".to_owned()),
            },
        }
    }
}

/// What computes for a draft, which on a GPU is the same one as for the target.
fn draft_device(name: &str) -> std::result::Result<DeviceChoice, String> {
    match name.parse() {
        Ok(DeviceName { choice, number: None }) => Ok(choice),
        _ => Err("expected auto, cpu, gpu, cuda or metal".to_owned()),
    }
}

impl DeviceArgs {
    pub fn device(&self) -> DeviceChoice {
        self.device.choice
    }

    /// Which of several GPUs was named, from 0 on.
    pub fn gpu(&self) -> Option<usize> {
        self.device.number
    }

    /// Opens a model by path or name; reads its header only.
    pub fn open(&self, name: &str) -> Result<ModelSource> {
        Ok(session::open(name)?.in_eight_bits(self.eight_bits))
    }
}

impl PairDeviceArgs {
    /// `None` for what computes for the target.
    pub fn draft_device(&self) -> Option<DeviceChoice> {
        self.draft_device
    }
}
