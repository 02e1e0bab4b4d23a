//! What computes, as a session uses it. Tests put GPUs that fail in its place.

use crate::device::{self, Candidate, DeviceChoice, Opened, Problem};
use crate::error::Result;
use crate::forward::{self, Model};
use crate::model::ModelSource;

/// Devices, and how models get there.
pub trait Hardware: Send + Sync {
    /// Every choice with its label, or with what stands in the way.
    fn survey(&self) -> Vec<(DeviceChoice, std::result::Result<String, Problem>)>;

    /// What was chosen, or the CPU with a remark why.
    fn open(&self, choice: &DeviceChoice) -> Opened;

    /// The GPUs that may be faster than the CPU, the one that should be fastest first.
    fn candidates(&self) -> Vec<Candidate>;

    /// # Errors
    /// Those of loading a model, `Error::Compute` when the device has no room for it or fails.
    fn load(&self, source: &ModelSource, opened: &Opened) -> Result<Box<dyn Model>>;
}

/// The devices there are.
pub struct ThisComputer;

impl Hardware for ThisComputer {
    fn survey(&self) -> Vec<(DeviceChoice, std::result::Result<String, Problem>)> {
        device::survey()
    }

    fn open(&self, choice: &DeviceChoice) -> Opened {
        device::open(choice)
    }

    fn candidates(&self) -> Vec<Candidate> {
        device::candidates()
    }

    fn load(&self, source: &ModelSource, opened: &Opened) -> Result<Box<dyn Model>> {
        forward::load(source, &opened.device)
    }
}
