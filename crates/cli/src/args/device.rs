//! Options for the device that runs a model.

use std::num::NonZeroUsize;

use clap::Args;
use foretoken_forward::device::DeviceChoice;
use foretoken_model::{KvDtype, ModelSource};

use crate::error::{Error, Result};
use crate::session;

/// Options for the device that runs a model.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Device")]
pub struct DeviceArgs {
    /// Device that runs the model: `auto`, `cpu`, `gpu` (through Vulkan, Metal or DX12; `gpu:2` is
    /// the second, and `foretoken-cli devices` lists all), and `cuda` or `metal` in builds that
    /// include them. `auto` prefers CUDA or Metal, then the GPU if this model runs faster there
    /// than on the CPU. If the device is unavailable, the CPU is used and standard error says why
    #[arg(long, value_name = "auto|cpu|gpu|gpu:N|cuda|metal", default_value = "auto")]
    device: DeviceChoice,
    /// CPU threads [default: one per core]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub threads: Option<NonZeroUsize>,
    /// Round 16-bit and 32-bit weights to Q8_0 when loading: faster and smaller, but no longer
    /// exactly the weights of the file
    #[arg(long)]
    eight_bits: bool,
    /// Format of the target's KV cache. `int8` halves its memory and makes attention over long
    /// texts faster, but rounds keys and values. On the CPU, and not for latent attention (MLA)
    #[arg(long, value_name = "f16|int8", default_value = "f16")]
    pub kv_cache_dtype: KvDtype,
}

/// Options for the devices of a target and its draft.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Device")]
pub struct PairDeviceArgs {
    #[command(flatten)]
    pub target: DeviceArgs,
    /// Device that runs the draft [default: the target's, or the CPU where that is faster]
    #[arg(long, value_name = "auto|cpu|gpu|gpu:N|cuda|metal")]
    draft_device: Option<DeviceChoice>,
    /// Context length of the target in tokens, at most the one it was trained with [default: that
    /// one]. A full context takes memory, which `foretoken-cli inspect` shows per token
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    context: Option<NonZeroUsize>,
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
    /// Context length of a target that was trained with `trained` tokens; `None` for that one.
    ///
    /// # Errors
    /// `Error::Usage` for a longer one.
    pub fn context(&self, trained: usize) -> Result<Option<usize>> {
        match self.context.map(NonZeroUsize::get) {
            Some(found) if found > trained => Err(Error::Usage(format!(
                "--context: expected at most {trained} tokens, which the model was trained with, found {found}."
            ))),
            context => Ok(context),
        }
    }

    /// These options for another target.
    #[must_use]
    pub fn without_context(&self) -> Self {
        Self { context: None, ..self.clone() }
    }

    /// `None` for the target's device.
    pub fn draft_device(&self) -> Option<&DeviceChoice> {
        self.draft_device.as_ref()
    }
}
