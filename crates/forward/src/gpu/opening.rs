//! Finds and opens GPUs, and selects how a device computes fused multiply-adds.

use std::sync::Arc;

use wgpu::{Adapter, Backend, Backends, DeviceType, Features, Limits};

use super::device::GpuDevice;
use super::failure::Failure;
use super::kernels::{Arithmetic, IMMEDIATE_BYTES, Lanes};
use super::probe::{measure, rounds_once};
use super::timestamps;

/// Limits that kernels require beside the defaults.
const WORKGROUP_BYTES: u32 = 16 << 10;
const THREADS: u32 = 256;
const BUFFERS: u32 = 8;

/// A GPU that was found and is not open yet.
pub struct Found {
    adapter: Adapter,
    name: String,
}

impl Found {
    /// Name such as "Vulkan, NVIDIA GeForce RTX 4070". The second of several identical GPUs ends
    /// with "(2)".
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name and version of the driver.
    pub fn driver(&self) -> String {
        let info = self.adapter.get_info();
        format!("{} {}", info.driver, info.driver_info)
    }

    /// Opens the GPU and probes it.
    ///
    /// # Errors
    /// The missing feature, or the driver's message.
    pub fn open(&self) -> std::result::Result<Arc<GpuDevice>, String> {
        GpuDevice::of(&self.adapter, &self.name, &[Arithmetic::Own, Arithmetic::Emulated]).map(Arc::new)
    }
}

/// GPUs of this computer, the presumably fastest first, and the names of software renderers. If
/// `software`, these count as GPUs.
pub fn find(software: bool) -> (Vec<Found>, Vec<String>) {
    let (found, software) = adapters(software);
    let mut all: Vec<Found> = Vec::new();
    for adapter in found {
        let called = label(&adapter);
        let alike = all.iter().filter(|found| label(&found.adapter) == called).count();
        let name = if alike == 0 { called } else { format!("{called} ({})", alike + 1) };
        all.push(Found { adapter, name });
    }
    (all, software.iter().map(label).collect())
}

impl GpuDevice {
    /// Opens and probes GPU `index`, counted from 0, the presumably fastest first. `software` also
    /// accepts software renderers, after all others.
    ///
    /// # Errors
    /// The number of GPUs if there are fewer, and those of [`Found::open`].
    pub fn open(index: usize, software: bool) -> std::result::Result<Arc<Self>, String> {
        let found = find(software).0;
        found.get(index).ok_or_else(|| format!("{} GPUs were found", found.len()))?.open()
    }

    /// Opens the adapter, with subgroups that share inputs where compilers make good use of that
    /// and the probe finds it to work.
    ///
    /// # Errors
    /// As [`Self::in_lanes`].
    pub(super) fn of(
        adapter: &Adapter,
        name: &str,
        ways: &[Arithmetic],
    ) -> std::result::Result<Self, String> {
        let opened = match lanes_of(adapter) {
            Lanes::Sixteen => None,
            lanes => Self::in_lanes(adapter, name, ways, lanes).ok(),
        };
        match opened.filter(|opened| opened.guarantees().any_tile) {
            Some(opened) => Ok(opened),
            None => Self::in_lanes(adapter, name, ways, Lanes::Sixteen),
        }
    }

    /// Opens the adapter with the first way of computing fused multiply-adds that gives the CPU's
    /// bits, else with the first one.
    ///
    /// # Errors
    /// The reason, worded to be part of a sentence.
    pub(super) fn in_lanes(
        adapter: &Adapter,
        name: &str,
        ways: &[Arithmetic],
        lanes: Lanes,
    ) -> std::result::Result<Self, String> {
        let (features, limits) = (adapter.features(), adapter.limits());
        if let Some(missing) = missing(features, &limits) {
            return Err(format!("{name} lacks {missing}, which a newer driver may have"));
        }
        let double = Features::SHADER_F64 | Features::SHADER_INT64;
        let shared = if lanes == Lanes::Sixteen { Features::empty() } else { Features::SUBGROUP };
        let descriptor = wgpu::DeviceDescriptor {
            required_features: Features::IMMEDIATES | shared | features & (double | timestamps::FEATURES),
            required_limits: limits,
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            ..Default::default()
        };
        let (device, queue) =
            pollster::block_on(adapter.request_device(&descriptor)).map_err(|error| error.to_string())?;
        let failure = Failure::default();
        failure.register(&device);
        let emulates = ways.contains(&Arithmetic::Emulated) && features.contains(double);
        let with = |arithmetic| {
            let kind = adapter.get_info().device_type;
            Self::new(
                device.clone(),
                queue.clone(),
                name.to_owned(),
                kind,
                arithmetic,
                lanes,
                failure.clone(),
            )
        };
        let words = |error: foretoken_model::Error| error.to_string();
        let measured = |opened: Self| -> std::result::Result<Self, String> {
            let guarantees = measure(&opened).map_err(words)?;
            Ok(opened.with_guarantees(guarantees))
        };
        let mut opened: Option<Self> = None;
        let mut inexact = None;
        for &way in ways {
            if way == Arithmetic::Emulated && !features.contains(double) {
                continue;
            }
            let one = with(way);
            // An `fma` that rounds twice cannot give the CPU's bits, so the other kernels need not
            // be compiled to know.
            if way == Arithmetic::Own && emulates && !rounds_once(&one).map_err(words)? {
                inexact = Some(one);
                continue;
            }
            let one = measured(one)?;
            let keeps_all = one.guarantees().cpu_bits;
            opened = if keeps_all { Some(one) } else { opened.or(Some(one)) };
            if keeps_all {
                break;
            }
        }
        // Without the CPU's bits in either case, the device's own `fma` is faster than the
        // emulation.
        if let Some(own) = inexact
            && !opened.as_ref().is_some_and(|one| one.guarantees().cpu_bits)
        {
            opened = Some(measured(own)?);
        }
        let opened = opened.ok_or_else(|| format!("{name} cannot multiply and add"))?;
        if !opened.guarantees().computes {
            return Err(format!("{} computes wrongly", opened.label()));
        }
        Ok(opened)
    }
}

/// GPUs of this computer, the presumably fastest first, and software renderers. If `software`,
/// these count as GPUs.
pub(super) fn adapters(software: bool) -> (Vec<Adapter>, Vec<Adapter>) {
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
        // The same GPU is reported by Vulkan and by DX12.
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

/// Numbers of the makers of GPUs whose compilers load once what a subgroup shares (PCI-SIG).
const AMD: u32 = 0x1002;
const INTEL: u32 = 0x8086;

/// Lanes of products on an adapter: as many as its largest subgroups have threads, if they share
/// inputs.
fn lanes_of(adapter: &Adapter) -> Lanes {
    let info = adapter.get_info();
    let shares = matches!(info.vendor, AMD | INTEL) && adapter.features().contains(Features::SUBGROUP);
    match info.subgroup_max_size {
        17..=32 if shares => Lanes::ThirtyTwo,
        33..=64 if shares => Lanes::SixtyFour,
        _ => Lanes::Sixteen,
    }
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

/// Message for the case that WGPU_BACKEND is `named` and no GPU was found.
pub fn unfound(named: &str) -> String {
    format!(
        "WGPU_BACKEND is '{named}', by which no GPU was found; leave it out, or name vulkan, metal or dx12"
    )
}

pub(super) fn missing(features: Features, limits: &Limits) -> Option<&'static str> {
    if !features.contains(Features::IMMEDIATES) || limits.max_immediate_size < IMMEDIATE_BYTES {
        Some("immediate data for its programs")
    } else if limits.max_compute_workgroup_storage_size < WORKGROUP_BYTES {
        Some("16 KB of memory for a group of threads")
    } else if limits.max_compute_invocations_per_workgroup < THREADS
        || limits.max_compute_workgroup_size_x < THREADS
    {
        Some("groups of 256 threads")
    } else if limits.max_storage_buffers_per_shader_stage < BUFFERS {
        Some("8 buffers for a program")
    } else {
        None
    }
}
