//! Device errors outside of error scopes, on which wgpu panics by default.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foretoken_model::error::{Error, Result};

/// First failure of a device; no work is submitted after it.
#[derive(Debug, Clone, Default)]
pub struct Failure(Arc<Mutex<Option<String>>>);

impl Failure {
    /// # Errors
    /// `Error::Compute` if a failure was recorded.
    pub fn check(&self) -> Result<()> {
        self.first().as_ref().map_or(Ok(()), |message| Err(failed(message.clone())))
    }

    /// Records a failure, unless there was one before.
    pub fn note(&self, message: String) {
        self.first().get_or_insert(message);
    }

    /// Records uncaptured errors and the loss of `device`.
    pub fn register(&self, device: &wgpu::Device) {
        let failure = self.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| failure.note(error.to_string())));
        let failure = self.clone();
        device.set_device_lost_callback(move |reason, message| {
            // A dropped device counts as lost, too.
            if reason != wgpu::DeviceLostReason::Destroyed {
                failure.note(format!("the GPU was lost ({})", message.trim()));
            }
        });
    }

    fn first(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub fn failed(message: String) -> Error {
    Error::Compute(candle_core::Error::Msg(message))
}
