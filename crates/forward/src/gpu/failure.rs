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
        self.first().as_ref().map_or(Ok(()), |words| Err(failed(words.clone())))
    }

    /// Records a failure, unless there was one before.
    pub fn note(&self, words: String) {
        self.first().get_or_insert(words);
    }

    /// Records uncaptured errors and the loss of `device`.
    pub fn listen(&self, device: &wgpu::Device) {
        let heard = self.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| heard.note(error.to_string())));
        let heard = self.clone();
        device.set_device_lost_callback(move |reason, words| {
            // A dropped device counts as lost, too.
            if reason != wgpu::DeviceLostReason::Destroyed {
                heard.note(format!("the GPU was lost ({})", words.trim()));
            }
        });
    }

    fn first(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub fn failed(words: String) -> Error {
    Error::Compute(candle_core::Error::Msg(words))
}
