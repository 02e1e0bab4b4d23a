//! Devices, as a session uses them. Tests replace them with failing GPUs.

use foretoken_forward::device::{self, Candidate, DeviceChoice, DeviceLabel, Opened, Problem};
use foretoken_forward::{self, Model};
use foretoken_model::ModelSource;
use foretoken_model::error::Result;

/// Devices and loading of models.
pub trait Hardware: Send + Sync {
    /// Every choice with its label, or with the problem that prevents it.
    fn survey(&self) -> Vec<(DeviceChoice, std::result::Result<DeviceLabel, Problem>)>;

    /// Opens the chosen device, or the CPU with a remark why.
    fn open(&self, choice: &DeviceChoice) -> Opened;

    /// GPUs that may be faster than the CPU, expected fastest first.
    fn candidates(&self) -> Vec<Candidate>;

    /// # Errors
    /// Those of loading a model, `Error::Compute` when the device has no room for it or fails.
    fn load(&self, source: &ModelSource, opened: &Opened) -> Result<Box<dyn Model>>;
}

/// Devices of this computer.
pub struct ThisComputer;

impl Hardware for ThisComputer {
    fn survey(&self) -> Vec<(DeviceChoice, std::result::Result<DeviceLabel, Problem>)> {
        device::survey()
    }

    fn open(&self, choice: &DeviceChoice) -> Opened {
        device::open(choice)
    }

    fn candidates(&self) -> Vec<Candidate> {
        device::candidates()
    }

    fn load(&self, source: &ModelSource, opened: &Opened) -> Result<Box<dyn Model>> {
        foretoken_forward::load(source, &opened.device)
    }
}
