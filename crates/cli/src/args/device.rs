//! What computes.

use std::num::NonZeroUsize;

use clap::Args;
use foretoken_engine::device::DeviceChoice;
use foretoken_engine::model::ModelSource;

use crate::error::Result;
use crate::session;

/// What computes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Device")]
pub struct DeviceArgs {
    /// What computes: `auto`, `cpu`, `gpu` (by Vulkan, Metal or DX12; `gpu:2` is the second, and `foretoken-cli
    /// devices` lists all), and in builds for them `cuda` and `metal`. `auto` takes one of the last two where there is
    /// one, else the GPU if the model is faster there than on the CPU. If the device is unavailable, the CPU is used
    /// and standard error says why
    #[arg(long, value_name = "auto|cpu|gpu|gpu:N|cuda|metal", default_value = "auto")]
    device: DeviceChoice,
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
    /// What computes for the draft [default: what computes for the target, or the CPU where that is faster]
    #[arg(long, value_name = "auto|cpu|gpu|gpu:N|cuda|metal")]
    draft_device: Option<DeviceChoice>,
}

impl DeviceArgs {
    pub fn device(&self) -> &DeviceChoice {
        &self.device
    }

    /// Opens a model by path or name; reads its header only.
    pub fn open(&self, name: &str) -> Result<ModelSource> {
        Ok(session::open(name)?.in_eight_bits(self.eight_bits))
    }
}

impl PairDeviceArgs {
    /// `None` for what computes for the target.
    pub fn draft_device(&self) -> Option<&DeviceChoice> {
        self.draft_device.as_ref()
    }
}
