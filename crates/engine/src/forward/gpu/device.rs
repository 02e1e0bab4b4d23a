//! An open GPU by wgpu: its memory, and waiting for what it was handed. Its failures become errors, never panics. What it
//! computes is not known here; finding one is for `opening.rs`.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wgpu::{BufferUsages, CommandEncoder, DeviceType, PollType, SubmissionIndex};

use super::failure::{Failure, failed};
use super::kernels::{Arithmetic, TILES};
use super::pace::Pace;
use super::pipelines::Pipelines;
use super::promises::Promises;
use crate::device::free_memory;
use crate::error::Result;

/// Bytes from which on a buffer is worth asking whether there is memory left.
const LARGE: u64 = 1 << 20;

/// Bytes of memory that the device leaves to everything else where it has none of its own.
const SPARED: u64 = 256 << 20;

/// A GPU that is open, with its programs.
pub struct GpuDevice {
    device: wgpu::Device,
    queue: wgpu::Queue,
    label: String,
    /// A program plays it.
    software: bool,
    pipelines: Pipelines,
    promises: Promises,
    /// The first error that nobody waited for; there is no work after it.
    failure: Failure,
    bounds: Mutex<Bounds>,
    line: Mutex<Line>,
    /// Held by who waits or hands over: what one thread has fetched is not mapped until the poll of another is over that
    /// found it done, and wgpu panics where a submission tidies up between the two looks that a poll takes.
    polling: Mutex<()>,
}

/// What a device can be asked for. Tests ask it for less than there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Bytes of one buffer.
    pub buffer: u64,
    /// Bytes that are free where its memory is the computer's.
    pub free_memory: fn() -> u64,
    /// How long it may take for what it is handed at once, which is made to take far less.
    pub patience: Duration,
}

/// What it was handed and nobody waited for yet, the first first.
#[derive(Default)]
struct Line {
    handed: VecDeque<Handed>,
    pace: Pace,
}

struct Handed {
    index: SubmissionIndex,
    /// That it reads, about.
    bytes: u64,
    at: Instant,
}

impl fmt::Debug for GpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpuDevice").field("label", &self.label).field("promises", &self.promises).finish()
    }
}

impl GpuDevice {
    /// With programs of this `arithmetic`; its failures are heard by [`Failure::listen`].
    pub(super) fn new(
        (device, queue): (wgpu::Device, wgpu::Queue),
        (label, kind): (String, DeviceType),
        arithmetic: Arithmetic,
        failure: Failure,
    ) -> Self {
        let (pipelines, promises) = (Pipelines::new(arithmetic), Promises::default());
        let limits = device.limits();
        let buffer = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size) / 256 * 256;
        // Of the memory that buffers are made in, as far as it is the computer's own.
        let free_memory = match kind {
            DeviceType::IntegratedGpu | DeviceType::Cpu => free_memory,
            _ => || u64::MAX,
        };
        let bounds = Bounds { buffer, free_memory, patience: Duration::from_secs(20) };
        let (bounds, line, polling) = (Mutex::new(bounds), Mutex::default(), Mutex::default());
        let software = kind == DeviceType::Cpu;
        Self { device, queue, label, software, pipelines, promises, failure, bounds, line, polling }
    }

    /// The same, of which this was found to hold.
    pub(super) fn promising(mut self, promises: Promises) -> Self {
        self.promises = promises;
        self
    }

    /// Makes it less able than it is.
    #[cfg(test)]
    pub(crate) fn bound(&self, change: impl FnOnce(&mut Bounds)) {
        change(&mut locked(&self.bounds));
    }

    /// Makes it believe that it is so slow that nothing can be handed to it with anything else.
    #[cfg(test)]
    pub(super) fn slow_down(&self) {
        locked(&self.line).pace.learn(1, Duration::from_secs(1 << 30));
    }

    /// Takes it away.
    #[cfg(test)]
    pub(crate) fn lose(&self) {
        self.device.destroy();
    }

    /// "Vulkan, NVIDIA GeForce RTX 4070"
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Whether a program plays it on the CPU.
    pub fn is_software(&self) -> bool {
        self.software
    }

    pub fn promises(&self) -> Promises {
        self.promises
    }

    /// Whether it has not failed since it was opened.
    pub fn works(&self) -> bool {
        self.check().is_ok()
    }

    pub(super) fn raw(&self) -> &wgpu::Device {
        &self.device
    }

    pub(super) fn queue(&self) -> &wgpu::Queue {
        &self.queue
    }

    /// The tiles that products are made of: all of them give a row the same bits, at whatever place in them. One row
    /// alone does that on every device.
    pub(super) fn tiles(&self) -> &'static [usize] {
        if self.promises.any_tile { &TILES } else { &TILES[..1] }
    }

    pub(super) fn pipelines(&self) -> &Pipelines {
        &self.pipelines
    }

    /// Bytes that one buffer can have.
    pub(super) fn largest_buffer(&self) -> u64 {
        locked(&self.bounds).buffer
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
        let free_memory = locked(&self.bounds).free_memory;
        if size > LARGE && free_memory() < size + SPARED {
            return Err(failed(
                "out of memory: the GPU has the computer's, of which too little is left".to_owned(),
            ));
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

    /// Bytes of weights that it can be handed at once to read.
    pub(super) fn at_once(&self) -> u64 {
        locked(&self.line).pace.bytes()
    }

    /// Hands over what was written down, which reads about so many bytes.
    pub(super) fn submit(&self, encoder: CommandEncoder, bytes: u64) {
        let _alone = locked(&self.polling);
        let index = self.queue.submit([encoder.finish()]);
        locked(&self.line).handed.push_back(Handed { index, bytes, at: Instant::now() });
    }

    /// Hands over what lies ready to be written.
    pub(super) fn flush(&self) {
        let _alone = locked(&self.polling);
        self.queue.submit([]);
    }

    /// Waits until everything is done that was handed over.
    ///
    /// # Errors
    /// `Error::Compute` when the device failed since it was opened, or does not come to an end.
    pub fn wait(&self) -> Result<()> {
        let _alone = locked(&self.polling);
        let patience = locked(&self.bounds).patience;
        let mut idle = None;
        loop {
            let Some(Handed { index, bytes, at }) = locked(&self.line).handed.pop_front() else { break };
            // Of what is over already nobody knows how long it took.
            if self.poll(Some(&index), Duration::ZERO) {
                continue;
            }
            let since = idle.map_or(at, |idle| at.max(idle));
            if !self.poll(Some(&index), patience) {
                return self.give_up(patience);
            }
            let now = Instant::now();
            locked(&self.line).pace.learn(bytes, now - since);
            idle = Some(now);
        }
        if self.poll(None, patience) { self.check() } else { self.give_up(patience) }
    }

    /// Whether all up to `index`, or everything, is over before the time is.
    fn poll(&self, index: Option<&SubmissionIndex>, timeout: Duration) -> bool {
        let wait = PollType::Wait { submission_index: index.cloned(), timeout: Some(timeout) };
        match self.device.poll(wait) {
            Err(wgpu::PollError::Timeout) => return false,
            Err(error) => self.failure.note(error.to_string()),
            Ok(_) => (),
        }
        true
    }

    /// Takes note that the device hangs, unless something else is the matter.
    fn give_up(&self, patience: Duration) -> Result<()> {
        self.check()?;
        self.failure.note(format!("the GPU did not answer for {} seconds", patience.as_secs()));
        // Giving it back would wait for it for ever.
        std::mem::forget((self.device.clone(), self.queue.clone()));
        self.check()
    }

    /// # Errors
    /// `Error::Compute` when the device failed since it was opened.
    pub(super) fn check(&self) -> Result<()> {
        self.failure.check()
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
            self.submit(encoder, 0);
        })
    }

    /// Replaces a readable buffer that has no room for so many words.
    ///
    /// # Errors
    /// As [`Self::buffer`].
    pub(super) fn grow(&self, readable: &mut wgpu::Buffer, words: usize) -> Result<()> {
        if readable.size() < 4 * words as u64 {
            *readable = self.readable(4 * words)?;
        }
        Ok(())
    }

    /// Brings these numbers of a buffer back, one range after the other, through a readable one.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub(super) fn bring(
        &self,
        from: &wgpu::Buffer,
        ranges: &[Range<usize>],
        through: &wgpu::Buffer,
    ) -> Result<Vec<f32>> {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        let mut count = 0;
        for range in ranges {
            let bytes = |words: usize| 4 * words as u64;
            let (start, length) = (bytes(range.start), bytes(range.len()));
            encoder.copy_buffer_to_buffer(from, start, through, bytes(count), length);
            count += range.len();
        }
        self.submit(encoder, 0);
        self.fetch(through, count)
    }

    /// Waits, and reads the first `count` numbers of a readable buffer.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub(super) fn fetch(&self, from: &wgpu::Buffer, count: usize) -> Result<Vec<f32>> {
        Ok(self.fetch_words(from, count)?.into_iter().map(f32::from_bits).collect())
    }

    /// The same of words.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub(super) fn fetch_words(&self, from: &wgpu::Buffer, count: usize) -> Result<Vec<u32>> {
        let slice = from.slice(..(4 * count) as u64);
        slice.map_async(wgpu::MapMode::Read, |_| ());
        self.wait()?;
        let words = {
            let view = slice.get_mapped_range().map_err(|error| failed(error.to_string()))?;
            view.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect()
        };
        from.unmap();
        Ok(words)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
