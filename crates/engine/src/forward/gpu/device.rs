//! An open GPU by wgpu: its memory, and waiting for what it was handed. Its failures become errors, never panics. What it
//! computes is not known here; finding one is for `opening.rs`.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wgpu::BufferUsages;

use super::kernels::{Arithmetic, Pipelines, TILES};
use super::promises::Promises;
use crate::error::{Error, Result};

/// A pass is cut into parts that take far less, even where a program plays the GPU.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// A GPU that is open, with its programs.
pub struct GpuDevice {
    device: wgpu::Device,
    queue: wgpu::Queue,
    label: String,
    pipelines: Pipelines,
    promises: Promises,
    /// The first error that nobody waited for; there is no work after it.
    failure: Failure,
}

/// The first error that nobody waited for.
pub(super) type Failure = Arc<Mutex<Option<String>>>;

impl fmt::Debug for GpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpuDevice").field("label", &self.label).field("promises", &self.promises).finish()
    }
}

impl GpuDevice {
    /// With programs of this `arithmetic`; its failures are heard by [`listen`].
    pub(super) fn new(
        (device, queue): (wgpu::Device, wgpu::Queue),
        label: String,
        arithmetic: Arithmetic,
        failure: Failure,
    ) -> Self {
        let (pipelines, promises) = (Pipelines::new(arithmetic), Promises::default());
        Self { device, queue, label, pipelines, promises, failure }
    }

    /// The same, of which this was found to hold.
    pub(super) fn promising(self, promises: Promises) -> Self {
        Self { promises, ..self }
    }

    /// "Vulkan, NVIDIA GeForce RTX 4070"
    pub fn label(&self) -> &str {
        &self.label
    }

    pub fn promises(&self) -> Promises {
        self.promises
    }

    pub(super) fn raw(&self) -> &wgpu::Device {
        &self.device
    }

    pub(super) fn queue(&self) -> &wgpu::Queue {
        &self.queue
    }

    /// The tiles that products are made of: all of them give a row the same bits.
    pub(super) fn tiles(&self) -> &'static [usize] {
        if self.promises.any_tile { &TILES } else { &TILES[TILES.len() - 1..] }
    }

    pub(super) fn pipelines(&self) -> &Pipelines {
        &self.pipelines
    }

    /// Bytes that one buffer can have.
    pub(super) fn largest_buffer(&self) -> u64 {
        let limits = self.device.limits();
        limits.max_storage_buffer_binding_size.min(limits.max_buffer_size) / 256 * 256
    }

    /// A buffer of zeros for kernels.
    ///
    /// # Errors
    /// `Error::Compute` when there is no memory for it.
    pub(super) fn buffer(&self, bytes: usize) -> Result<wgpu::Buffer> {
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
        self.allocate(bytes, usage)
    }

    /// Hands over words for the beginning of a buffer.
    pub(super) fn write(&self, to: &wgpu::Buffer, words: impl IntoIterator<Item = u32>) {
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        self.queue.write_buffer(to, 0, &bytes);
    }

    /// A buffer that [`Self::fetch`] can read.
    ///
    /// # Errors
    /// As [`Self::buffer`].
    pub(super) fn readable(&self, bytes: usize) -> Result<wgpu::Buffer> {
        self.allocate(bytes, BufferUsages::MAP_READ | BufferUsages::COPY_DST)
    }

    fn allocate(&self, bytes: usize, usage: BufferUsages) -> Result<wgpu::Buffer> {
        let size = (bytes.max(16) as u64).next_multiple_of(16);
        let largest = self.largest_buffer();
        if size > largest {
            let words = "out of memory: a buffer of";
            return Err(failed(format!(
                "{words} {} MB, where the GPU takes {} MB",
                size / 1_000_000,
                largest / 1_000_000
            )));
        }
        let descriptor = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        self.guarded(|| self.device.create_buffer(&descriptor))
    }

    /// What `make` makes, or the error that wgpu tells of meanwhile.
    ///
    /// # Errors
    /// `Error::Compute` with wgpu's words.
    pub(super) fn guarded<T>(&self, make: impl FnOnce() -> T) -> Result<T> {
        use wgpu::ErrorFilter::{Internal, OutOfMemory, Validation};
        let scopes = [OutOfMemory, Validation, Internal].map(|filter| self.device.push_error_scope(filter));
        let made = make();
        let mut first = None;
        for scope in scopes.into_iter().rev() {
            first = first.or(pollster::block_on(scope.pop()));
        }
        match first {
            Some(error) => Err(failed(error.to_string())),
            None => Ok(made),
        }
    }

    /// Waits until everything is done that was handed over.
    ///
    /// # Errors
    /// `Error::Compute` when the device failed since it was opened, or does not come to an end.
    pub fn wait(&self) -> Result<()> {
        let all = wgpu::PollType::Wait { submission_index: None, timeout: Some(LONGEST_WAIT) };
        let polled = self.device.poll(all);
        self.check()?;
        polled.map(drop).map_err(|error| failed(format!("the GPU does not answer ({error})")))
    }

    /// # Errors
    /// `Error::Compute` when the device failed since it was opened.
    pub(super) fn check(&self) -> Result<()> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().map_or(Ok(()), |words| Err(failed(words.clone())))
    }

    /// What copies so many bytes of the device's memory when it is called, to measure how fast that is.
    ///
    /// # Errors
    /// `Error::Compute` when there is no memory for them.
    pub fn copier(&self, bytes: usize) -> Result<impl Fn() + use<'_>> {
        let size = (bytes as u64).min(self.largest_buffer());
        let (from, to) = (self.buffer(size as usize)?, self.buffer(size as usize)?);
        Ok(move || {
            let mut encoder = self.device.create_command_encoder(&Default::default());
            let mut left = bytes as u64;
            while left > 0 {
                let part = left.min(size);
                encoder.copy_buffer_to_buffer(&from, 0, &to, 0, part);
                left -= part;
            }
            self.queue.submit([encoder.finish()]);
        })
    }

    /// Waits, and reads the first `count` numbers of a readable buffer.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub(super) fn fetch(&self, from: &wgpu::Buffer, count: usize) -> Result<Vec<f32>> {
        let slice = from.slice(..(4 * count) as u64);
        slice.map_async(wgpu::MapMode::Read, |_| ());
        self.wait()?;
        let numbers = {
            let view = slice.get_mapped_range().map_err(|error| failed(error.to_string()))?;
            view.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
        };
        from.unmap();
        Ok(numbers)
    }
}

pub(super) fn failed(words: String) -> Error {
    Error::Compute(candle_core::Error::Msg(words))
}

/// The usual handler of errors panics.
pub(super) fn listen(device: &wgpu::Device, failure: &Failure) {
    let note = |failure: &Mutex<Option<String>>, words: String| {
        failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(words);
    };
    let heard = Arc::clone(failure);
    device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| note(&heard, error.to_string())));
    let heard = Arc::clone(failure);
    device.set_device_lost_callback(move |reason, words| {
        // A device that is given back is lost, too.
        if reason != wgpu::DeviceLostReason::Destroyed {
            note(&heard, format!("the GPU was lost ({})", words.trim()));
        }
    });
}
