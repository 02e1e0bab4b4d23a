//! A GPU by wgpu: finding and opening one, its memory, and waiting for what it was handed. Its failures become errors,
//! never panics. What it computes is not known here.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wgpu::{Adapter, Backend, Backends, BufferUsages, DeviceType, Features, Limits};

use super::kernels::{Arithmetic, Pipelines, TILES};
use super::promises::Promises;
use crate::error::{Error, Result};

/// A pass is cut into parts that take far less, even where a program plays the GPU.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// What kernels need beside what every device has.
const IMMEDIATES: u32 = 64;
const WORKGROUP_BYTES: u32 = 16 << 10;
const THREADS: u32 = 128;
const BUFFERS: u32 = 8;

/// A GPU that is open, with its programs.
pub struct GpuDevice {
    device: wgpu::Device,
    queue: wgpu::Queue,
    label: String,
    pipelines: Pipelines,
    promises: Promises,
    /// The first error that nobody waited for; there is no work after it.
    failure: Arc<Mutex<Option<String>>>,
}

/// Why no GPU was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unopened {
    /// There is none; `software` are programs that play one.
    None { software: Vec<String> },
    /// Fewer than were counted on.
    Fewer { wanted: usize, found: Vec<String> },
    /// It lacks something, or its driver does.
    Failed(String),
}

impl fmt::Debug for GpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpuDevice").field("label", &self.label).field("promises", &self.promises).finish()
    }
}

impl GpuDevice {
    /// Opens GPU number `index`, counted from 0, the one that should be fastest first, and measures what it promises.
    /// `software` lets programs be opened that play a GPU on the CPU, after all others.
    ///
    /// # Errors
    /// See [`Unopened`].
    pub fn open(index: usize, software: bool) -> std::result::Result<Arc<Self>, Unopened> {
        let (adapters, software) = adapters(software);
        let names = |adapters: &[Adapter]| adapters.iter().map(label).collect::<Vec<_>>();
        if adapters.is_empty() {
            return Err(Unopened::None { software: names(&software) });
        }
        let adapter = adapters
            .get(index)
            .ok_or_else(|| Unopened::Fewer { wanted: index + 1, found: names(&adapters) })?;
        Self::of(adapter).map(Arc::new).map_err(Unopened::Failed)
    }

    fn of(adapter: &Adapter) -> std::result::Result<Self, String> {
        let (features, limits) = (adapter.features(), adapter.limits());
        if let Some(missing) = missing(features, &limits) {
            return Err(format!("{} lacks {missing}", label(adapter)));
        }
        let double = Features::SHADER_F64 | Features::SHADER_INT64;
        let descriptor = wgpu::DeviceDescriptor {
            required_features: Features::IMMEDIATES | features & double,
            required_limits: limits,
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            ..Default::default()
        };
        let (device, queue) =
            pollster::block_on(adapter.request_device(&descriptor)).map_err(|error| error.to_string())?;
        let failure = Arc::new(Mutex::new(None));
        listen(&device, &failure);
        let with = |arithmetic| -> std::result::Result<Self, String> {
            let mut opened = Self {
                device: device.clone(),
                queue: queue.clone(),
                label: label(adapter),
                pipelines: Pipelines::new(arithmetic),
                promises: Promises::default(),
                failure: Arc::clone(&failure),
            };
            opened.promises = Promises::measure(&opened).map_err(|error| error.to_string())?;
            Ok(opened)
        };
        let own = with(Arithmetic::Own)?;
        let opened = if !own.promises.cpu_bits && features.contains(double) {
            let emulated = with(Arithmetic::Emulated)?;
            if emulated.promises.cpu_bits { emulated } else { own }
        } else {
            own
        };
        if !opened.promises.computes {
            return Err(format!("{} computes wrongly", opened.label));
        }
        Ok(opened)
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
fn listen(device: &wgpu::Device, failure: &Arc<Mutex<Option<String>>>) {
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

/// The GPUs of this computer, the one that should be fastest first, and the programs that play one, which count as GPUs
/// if `software` is wanted.
fn adapters(software: bool) -> (Vec<Adapter>, Vec<Adapter>) {
    let backends = Backends::from_env().unwrap_or(Backends::PRIMARY) - Backends::BROWSER_WEBGPU;
    let descriptor = wgpu::InstanceDescriptor {
        backends,
        flags: wgpu::InstanceFlags::empty(),
        memory_budget_thresholds: wgpu::MemoryBudgetThresholds {
            for_resource_creation: Some(95),
            for_device_loss: None,
        },
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    };
    let mut found = pollster::block_on(wgpu::Instance::new(descriptor).enumerate_adapters(backends));
    found.sort_by_key(|adapter| {
        let info = adapter.get_info();
        (rank(info.device_type), info.backend == Backend::Dx12)
    });
    let mut seen = Vec::new();
    found.retain(|adapter| {
        // The same GPU by Vulkan and by DX12.
        let info = adapter.get_info();
        let who = (info.vendor, info.device, info.device_pci_bus_id);
        let is_new =
            who.1 == 0 || !seen.iter().any(|(other, backend)| *other == who && *backend != info.backend);
        seen.push((who, info.backend));
        is_new
    });
    let is_gpu = |adapter: &Adapter| software || adapter.get_info().device_type != DeviceType::Cpu;
    found.into_iter().partition(is_gpu)
}

fn rank(kind: DeviceType) -> usize {
    match kind {
        DeviceType::DiscreteGpu => 0,
        DeviceType::IntegratedGpu => 1,
        DeviceType::VirtualGpu => 2,
        DeviceType::Other => 3,
        DeviceType::Cpu => 4,
    }
}

fn label(adapter: &Adapter) -> String {
    let info = adapter.get_info();
    let backend = match info.backend {
        Backend::Vulkan => "Vulkan",
        Backend::Metal => "Metal",
        Backend::Dx12 => "DX12",
        _ => "GPU",
    };
    let software = if info.device_type == DeviceType::Cpu { ", software" } else { "" };
    format!("{backend}, {}{software}", info.name.trim())
}

fn missing(features: Features, limits: &Limits) -> Option<&'static str> {
    if !features.contains(Features::IMMEDIATES) || limits.max_immediate_size < IMMEDIATES {
        Some("immediate data for its programs")
    } else if limits.max_compute_workgroup_storage_size < WORKGROUP_BYTES {
        Some("16 KB of memory for a group of threads")
    } else if limits.max_compute_invocations_per_workgroup < THREADS
        || limits.max_compute_workgroup_size_x < THREADS
    {
        Some("groups of 128 threads")
    } else if limits.max_storage_buffers_per_shader_stage < BUFFERS {
        Some("8 buffers for a program")
    } else {
        None
    }
}
