//! The programs of the GPU, and the pipelines that are made of them, each once. Their text is for `source.rs`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::device::GpuDevice;
use super::source::source;
use crate::error::Result;
use crate::forward::cpu::panels::Format;

/// Rows of a tile, for each of which there is a program.
pub const TILES: [usize; 4] = [1, 2, 4, 8];

/// Bytes that a program is told each time it runs.
pub const IMMEDIATE_BYTES: u32 = 64;

/// The most numbers of a head.
pub const LONGEST_HEAD: usize = 512;

/// Where a vector would begin that a family does not have.
pub const NONE: u32 = u32::MAX;

/// How a device multiplies and adds with one rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// By its own `fma`.
    Own,
    /// By numbers of 64 bits: slow, for devices whose `fma` rounds twice.
    Emulated,
    /// As no device should.
    #[cfg(test)]
    Wrong,
}

/// A program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// Of weights in this format with a tile of so many rows.
    Product(Format, usize),
    /// The same of experts, with a tile of so many slots.
    SlotProduct(Format, usize),
    Rank,
    Arrange,
    Combine,
    Join,
    Convolve,
    Norm,
    Quantise,
    Activate,
    Turn,
    Attend,
    Gather,
    Score,
    Sketch,
    Probe,
}

impl Kernel {
    /// All there are.
    pub fn all() -> impl Iterator<Item = Self> {
        let of_tile = |rows| move |format| [Self::Product(format, rows), Self::SlotProduct(format, rows)];
        let weights = TILES.into_iter().flat_map(move |rows| Format::ALL.into_iter().flat_map(of_tile(rows)));
        let others = [Self::Norm, Self::Quantise, Self::Activate, Self::Turn, Self::Attend, Self::Gather];
        let of_experts = [Self::Rank, Self::Arrange, Self::Combine];
        let of_heads = [Self::Join, Self::Convolve];
        weights.chain(others).chain(of_experts).chain(of_heads).chain([
            Self::Score,
            Self::Sketch,
            Self::Probe,
        ])
    }

    /// Of each buffer whether it is written.
    fn bindings(self) -> &'static [bool] {
        match self {
            Self::Product(..) => &[false, true, false, false],
            Self::SlotProduct(..) => &[false, true, false, false, false],
            Self::Rank => &[false, true],
            Self::Arrange => &[false, true, true],
            Self::Combine | Self::Convolve => &[false, false, false, true],
            Self::Join => &[true, false, true, true, true],
            Self::Norm => &[true, false, false, true, true, true],
            Self::Quantise => &[true, true, true],
            Self::Activate => &[false, false, true, true, true],
            Self::Turn => &[true, false, false, false, false, false, true, true],
            Self::Attend => &[false, false, false, false, true, true],
            Self::Gather => &[false, true, true],
            Self::Score => &[true],
            Self::Sketch => &[false, false, true],
            Self::Probe => &[false, true],
        }
    }

    fn entry(self) -> &'static str {
        match self {
            Self::Product(..) | Self::SlotProduct(..) => "product",
            Self::Rank => "rank",
            Self::Arrange => "arrange",
            Self::Combine => "combine",
            Self::Join => "join",
            Self::Convolve => "convolve",
            Self::Norm => "norm",
            Self::Quantise => "quantise",
            Self::Activate => "activate",
            Self::Turn => "turn",
            Self::Attend => "attend",
            Self::Gather => "gather",
            Self::Score => "score",
            Self::Sketch => "sketch",
            Self::Probe => "probe",
        }
    }
}

/// The name and the source of every program, for either kind of device.
pub fn programs() -> impl Iterator<Item = (String, String)> {
    let of = |arithmetic| {
        move |kernel: Kernel| (format!("{kernel:?}, {arithmetic:?}"), source(kernel, arithmetic))
    };
    [Arithmetic::Own, Arithmetic::Emulated]
        .into_iter()
        .flat_map(move |arithmetic| Kernel::all().map(of(arithmetic)))
}

/// The pipelines that were made so far.
#[derive(Debug)]
pub struct Pipelines {
    arithmetic: Arithmetic,
    made: Mutex<HashMap<Kernel, wgpu::ComputePipeline>>,
}

impl Pipelines {
    pub fn new(arithmetic: Arithmetic) -> Self {
        Self { arithmetic, made: Mutex::default() }
    }

    /// Made when it is first asked for.
    ///
    /// # Errors
    /// `Error::Compute` when the driver does not take it.
    pub fn get(&self, device: &GpuDevice, kernel: Kernel) -> Result<wgpu::ComputePipeline> {
        debug_assert!(
            Kernel::all().any(|known| known == kernel),
            "{kernel:?} is not translated in the tests"
        );
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = made.get(&kernel) {
            return Ok(pipeline.clone());
        }
        let pipeline = device.guarded(|| make(device.raw(), kernel, source(kernel, self.arithmetic)))?;
        Ok(made.entry(kernel).or_insert(pipeline).clone())
    }
}

fn make(device: &wgpu::Device, kernel: Kernel, source: String) -> wgpu::ComputePipeline {
    let descriptor = wgpu::ShaderModuleDescriptor {
        label: Some(kernel.entry()),
        source: wgpu::ShaderSource::Wgsl(Cow::Owned(source)),
    };
    // SAFETY: the kernels are this engine's own, stay within their buffers for what `step.rs` is asked to hand them,
    // and each of their loops ends; checks would cost a sixth.
    let module =
        unsafe { device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked()) };
    let entry = |(binding, &written): (usize, &bool)| wgpu::BindGroupLayoutEntry {
        binding: binding as u32,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only: !written },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    let entries: Vec<_> = kernel.bindings().iter().enumerate().map(entry).collect();
    let group =
        device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
    let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(&group)],
        immediate_size: IMMEDIATE_BYTES,
    });
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(kernel.entry()),
        layout: Some(&layout),
        module: &module,
        entry_point: Some(kernel.entry()),
        compilation_options: Default::default(),
        cache: None,
    })
}
