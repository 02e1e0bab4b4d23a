//! What went wrong on a device that nobody waited for: wgpu's own way to tell is to panic.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// The first failure of a device; there is no work after it.
#[derive(Debug, Clone, Default)]
pub struct Failure(Arc<Mutex<Option<String>>>);

impl Failure {
    /// # Errors
    /// `Error::Compute` when there was one.
    pub fn check(&self) -> Result<()> {
        self.first().as_ref().map_or(Ok(()), |words| Err(failed(words.clone())))
    }

    /// Takes note of one, if it is the first.
    pub fn note(&self, words: String) {
        self.first().get_or_insert(words);
    }

    /// Takes note of all that `device` tells.
    pub fn listen(&self, device: &wgpu::Device) {
        let heard = self.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| heard.note(error.to_string())));
        let heard = self.clone();
        device.set_device_lost_callback(move |reason, words| {
            // A device that is given back is lost, too.
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
