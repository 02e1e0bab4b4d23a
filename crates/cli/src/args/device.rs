//! What computes.

use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};
use foretoken_engine::device::DeviceChoice;
use foretoken_engine::model::ModelSource;

use crate::error::Result;
use crate::session;

/// What computes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Device")]
pub struct DeviceArgs {
    /// What computes; `auto` takes a GPU where this build can use one. If the device is unavailable, the CPU is
    /// used and standard error says why
    #[arg(long, value_enum, default_value = "auto")]
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
    #[arg(long, value_enum)]
    draft_device: Option<DeviceName>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DeviceName {
    Auto,
    Cpu,
    Cuda,
    Metal,
}

impl From<DeviceName> for DeviceChoice {
    fn from(name: DeviceName) -> Self {
        match name {
            DeviceName::Auto => Self::Auto,
            DeviceName::Cpu => Self::Cpu,
            DeviceName::Cuda => Self::Cuda,
            DeviceName::Metal => Self::Metal,
        }
    }
}

impl DeviceArgs {
    pub fn device(&self) -> DeviceChoice {
        self.device.into()
    }

    /// Opens a model by path or name; reads its header only.
    pub fn open(&self, name: &str) -> Result<ModelSource> {
        Ok(session::open(name)?.in_eight_bits(self.eight_bits))
    }
}

impl PairDeviceArgs {
    /// `None` for what computes for the target.
    pub fn draft_device(&self) -> Option<DeviceChoice> {
        self.draft_device.map(Into::into)
    }
}
