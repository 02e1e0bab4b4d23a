//! An open GPU by wgpu: allocates, submits and waits. Failures become errors, never panics.
//! `kernels.rs` lists the kernels, and `opening.rs` finds devices.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foretoken_model::error::Result;
use wgpu::{BufferUsages, CommandEncoder, DeviceType, PollType, SubmissionIndex};

use super::failure::{Failure, failed};
use super::guarantees::Guarantees;
use super::kernels::{Arithmetic, Lanes, TILES};
use super::pace::Pace;
use super::pipelines::Pipelines;
use super::timestamps::Timestamps;
use crate::device::free_memory;

/// Buffer size from which free memory is checked before allocation, in bytes.
const LARGE: u64 = 1 << 20;

/// Bytes of system memory that an integrated GPU leaves free.
const SPARED: u64 = 256 << 20;

/// An open GPU with its pipelines.
pub struct GpuDevice {
    device: wgpu::Device,
    queue: wgpu::Queue,
    label: String,
    /// The device is a software renderer, on the CPU.
    software: bool,
    pipelines: Pipelines,
    guarantees: Guarantees,
    /// First uncaptured error; the device does no work after it.
    failure: Failure,
    bounds: Mutex<Bounds>,
    submitted: Mutex<SubmissionQueue>,
    /// Lock around waiting and submitting. A buffer that one thread fetches is mapped only when the
    /// poll that found it ready is over, which may run on another thread. wgpu also panics when a
    /// submission cleans up between the two checks of a poll.
    polling: Mutex<()>,
    timestamps: Mutex<Option<Arc<Timestamps>>>,
}

/// Limits of a device. Tests lower them.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Largest buffer in bytes.
    pub buffer: u64,
    /// Returns free system memory in bytes; no limit for GPUs with memory of their own.
    pub free_memory: fn() -> u64,
    /// Timeout of a submission. Submissions are sized to take far less.
    pub timeout: Duration,
}

/// Submissions that were not waited for, oldest first.
#[derive(Default)]
struct SubmissionQueue {
    pending: VecDeque<Submission>,
    pace: Pace,
    counts: DeviceCounts,
}

/// Submissions and waits of all passes on a device since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    pub submissions: usize,
    /// Waits for submitted work, mostly to read results.
    pub waits: usize,
}

struct Submission {
    index: SubmissionIndex,
    /// Bytes that the submission reads, roughly.
    bytes: u64,
    at: Instant,
}

impl fmt::Debug for GpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpuDevice").field("label", &self.label).field("guarantees", &self.guarantees).finish()
    }
}

impl GpuDevice {
    /// Wraps an open device. [`Failure::register`] has to collect its errors in `failure`.
    pub(super) fn new(
        device: wgpu::Device,
        queue: wgpu::Queue,
        label: String,
        kind: DeviceType,
        arithmetic: Arithmetic,
        lanes: Lanes,
        failure: Failure,
    ) -> Self {
        let (pipelines, guarantees) = (Pipelines::new(arithmetic, lanes), Guarantees::default());
        let limits = device.limits();
        let buffer = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size) / 256 * 256;
        // Integrated GPUs and software renderers allocate in system memory.
        let free_memory = match kind {
            DeviceType::IntegratedGpu | DeviceType::Cpu => free_memory,
            _ => || u64::MAX,
        };
        let bounds = Bounds { buffer, free_memory, timeout: Duration::from_secs(20) };
        let (bounds, submitted, polling) = (Mutex::new(bounds), Mutex::default(), Mutex::default());
        let software = kind == DeviceType::Cpu;
        Self {
            device,
            queue,
            label,
            software,
            pipelines,
            guarantees,
            failure,
            bounds,
            submitted,
            polling,
            timestamps: Mutex::default(),
        }
    }

    /// Replaces the assumed guarantees with measured ones.
    pub(super) fn with_guarantees(mut self, guarantees: Guarantees) -> Self {
        self.guarantees = guarantees;
        self
    }

    /// Lowers the device's limits.
    pub fn bound(&self, change: impl FnOnce(&mut Bounds)) {
        change(&mut locked(&self.bounds));
    }

    /// Slows the estimated pace down so far that every part of a pass is submitted alone.
    #[cfg(test)]
    pub(super) fn slow_down(&self) {
        locked(&self.submitted).pace.learn(1, Duration::from_secs(1 << 30));
    }

    /// Destroys the device, as when a GPU is unplugged.
    pub fn lose(&self) {
        self.device.destroy();
    }

    /// Name of the API and the GPU: "Vulkan, NVIDIA GeForce RTX 4070".
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Returns whether the device is a software renderer.
    pub fn is_software(&self) -> bool {
        self.software
    }

    pub fn guarantees(&self) -> Guarantees {
        self.guarantees
    }

    /// Returns whether the device has not failed since it was opened.
    pub fn works(&self) -> bool {
        self.check().is_ok()
    }

    /// Timestamps that passes write, if a profile runs.
    pub(super) fn timestamps(&self) -> Option<Arc<Timestamps>> {
        locked(&self.timestamps).clone()
    }

    /// Lets passes write `timestamps`, or none.
    pub(super) fn write_timestamps(&self, timestamps: Option<Arc<Timestamps>>) {
        *locked(&self.timestamps) = timestamps;
    }

    pub(super) fn raw(&self) -> &wgpu::Device {
        &self.device
    }

    pub(super) fn queue(&self) -> &wgpu::Queue {
        &self.queue
    }

    /// Tile sizes for products. Tiles of all these sizes give a row the same bits, at any index in
    /// the tile. Tiles of one row do so on every device.
    pub(super) fn tiles(&self) -> &'static [usize] {
        if self.guarantees.any_tile { &TILES } else { &TILES[..1] }
    }

    /// Rows per tile of the kernel that runs `rows` rows.
    pub(super) fn tile_of(&self, rows: usize) -> usize {
        let tiles = self.tiles();
        tiles.iter().copied().find(|&size| size >= rows).unwrap_or_else(|| tiles[tiles.len() - 1])
    }

    pub(super) fn pipelines(&self) -> &Pipelines {
        &self.pipelines
    }

    /// Largest buffer in bytes.
    pub(super) fn largest_buffer(&self) -> u64 {
        locked(&self.bounds).buffer
    }

    /// Allocates a buffer of zeros for kernels.
    ///
    /// # Errors
    /// `Error::Compute` when there is no memory for it.
    pub(super) fn buffer(&self, bytes: usize) -> Result<wgpu::Buffer> {
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
        self.allocate(bytes, usage)
    }

    /// Uploads words to the beginning of a buffer.
    pub(super) fn write(&self, to: &wgpu::Buffer, words: impl IntoIterator<Item = u32>) {
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        self.queue.write_buffer(to, 0, &bytes);
    }

    /// Allocates a buffer that [`Self::fetch`] can read.
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

    /// Runs `make` in wgpu error scopes.
    ///
    /// # Errors
    /// `Error::Compute` with wgpu's message, if it reports one.
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

    /// Submissions and waits so far.
    pub fn counts(&self) -> DeviceCounts {
        locked(&self.submitted).counts
    }

    /// Bytes of weights that one submission may read.
    pub(super) fn at_once(&self) -> u64 {
        locked(&self.submitted).pace.bytes()
    }

    /// Submits encoded work that reads about `bytes` bytes.
    pub(super) fn submit(&self, encoder: CommandEncoder, bytes: u64) {
        let _guard = locked(&self.polling);
        let index = self.queue.submit([encoder.finish()]);
        let mut submitted = locked(&self.submitted);
        submitted.pending.push_back(Submission { index, bytes, at: Instant::now() });
        submitted.counts.submissions += 1;
    }

    /// Submits pending buffer writes.
    pub(super) fn flush(&self) {
        let _guard = locked(&self.polling);
        self.queue.submit([]);
    }

    /// Waits for all submitted work.
    ///
    /// # Errors
    /// `Error::Compute` when the device failed since it was opened, or does not finish in time.
    pub fn wait(&self) -> Result<()> {
        let _guard = locked(&self.polling);
        let timeout = locked(&self.bounds).timeout;
        locked(&self.submitted).counts.waits += 1;
        let mut idle = None;
        loop {
            let Some(Submission { index, bytes, at }) = locked(&self.submitted).pending.pop_front() else {
                break;
            };
            // Finished already, so its duration is unknown.
            if self.poll(Some(&index), Duration::ZERO) {
                continue;
            }
            let since = idle.map_or(at, |idle| at.max(idle));
            if !self.poll(Some(&index), timeout) {
                return self.record_hang(timeout);
            }
            let now = Instant::now();
            locked(&self.submitted).pace.learn(bytes, now - since);
            idle = Some(now);
        }
        if self.poll(None, timeout) { self.check() } else { self.record_hang(timeout) }
    }

    /// Polls until the work up to `index`, or all work, is done. Returns `false` on timeout.
    fn poll(&self, index: Option<&SubmissionIndex>, timeout: Duration) -> bool {
        let wait = PollType::Wait { submission_index: index.cloned(), timeout: Some(timeout) };
        match self.device.poll(wait) {
            Err(wgpu::PollError::Timeout) => return false,
            Err(error) => self.failure.note(error.to_string()),
            Ok(_) => (),
        }
        true
    }

    /// Records that the device hangs, unless another failure was recorded.
    fn record_hang(&self, timeout: Duration) -> Result<()> {
        self.check()?;
        self.failure.note(format!("the GPU did not answer for {} seconds", timeout.as_secs()));
        // Dropping the device would wait for its work forever.
        std::mem::forget((self.device.clone(), self.queue.clone()));
        self.check()
    }

    /// # Errors
    /// `Error::Compute` when the device failed since it was opened.
    pub(super) fn check(&self) -> Result<()> {
        self.failure.check()
    }

    /// Returns a function that copies `bytes` bytes within device memory, to measure its bandwidth.
    ///
    /// # Errors
    /// `Error::Compute` when there is no memory for the copies.
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

    /// Replaces a readable buffer that is smaller than `words` words.
    ///
    /// # Errors
    /// As [`Self::buffer`].
    pub(super) fn grow(&self, readable: &mut wgpu::Buffer, words: usize) -> Result<()> {
        if readable.size() < 4 * words as u64 {
            *readable = self.readable(4 * words)?;
        }
        Ok(())
    }

    /// Downloads ranges of a buffer, concatenated, by way of a readable buffer.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub(super) fn download(
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

    /// Waits for all work, then reads the first `count` numbers of a readable buffer.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub(super) fn fetch(&self, from: &wgpu::Buffer, count: usize) -> Result<Vec<f32>> {
        Ok(self.fetch_words(from, count)?.into_iter().map(f32::from_bits).collect())
    }

    /// Does what [`Self::fetch`] does, for words.
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
