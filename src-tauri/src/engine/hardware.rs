//! What computes, as the engine thread uses it. Tests put GPUs that fail in its place.

use foretoken_engine::Result;
use foretoken_engine::device::{self, DeviceChoice, Opened};
use foretoken_engine::forward::{self, Model};
use foretoken_engine::model::ModelSource;

use crate::ipc::DeviceOption;

/// Devices, and how models get there.
pub trait Hardware: Send {
    /// Every choice, usable or not.
    fn survey(&self) -> Vec<DeviceOption>;

    /// What was chosen, or the CPU with a remark why.
    fn open(&self, choice: DeviceChoice) -> Opened;

    /// # Errors
    /// Those of loading a model, `Error::Compute` when the device has no room for it or fails.
    fn load(&self, source: &ModelSource, opened: &Opened) -> Result<Box<dyn Model>>;
}

/// The devices there are.
pub struct ThisComputer;

impl Hardware for ThisComputer {
    fn survey(&self) -> Vec<DeviceOption> {
        let option = |(choice, found): (DeviceChoice, std::result::Result<String, device::Problem>)| {
            let problem = found.as_ref().err().map(ToString::to_string);
            DeviceOption { choice, label: found.unwrap_or_else(|_| choice.to_string()), problem }
        };
        device::survey().into_iter().map(option).collect()
    }

    fn open(&self, choice: DeviceChoice) -> Opened {
        device::open(choice)
    }

    fn load(&self, source: &ModelSource, opened: &Opened) -> Result<Box<dyn Model>> {
        forward::load(source, &opened.device)
    }
}
