//! The programs of the GPU: WGSL from `kernels/`, with a format's constants and the device's way to multiply and add
//! filled in, and the pipelines made of them, each once.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::device::GpuDevice;
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
    /// Of quantised weights with a tile of so many rows.
    Product(Format, usize),
    /// Of weights that are numbers.
    Plain(Format),
    /// The same of experts, with a tile of so many slots.
    SlotProduct(Format, usize),
    SlotPlain(Format),
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
}

impl Kernel {
    /// All there are.
    pub fn all() -> impl Iterator<Item = Self> {
        let weights = Format::ALL.into_iter().flat_map(|format| match format.quantised() {
            true => TILES.map(|rows| [Self::Product(format, rows), Self::SlotProduct(format, rows)]).concat(),
            false => vec![Self::Plain(format), Self::SlotPlain(format)],
        });
        let others = [Self::Norm, Self::Quantise, Self::Activate, Self::Turn, Self::Attend, Self::Gather];
        let of_experts = [Self::Rank, Self::Arrange, Self::Combine];
        weights.chain(others).chain(of_experts).chain([Self::Join, Self::Convolve])
    }

    /// Of each buffer whether it is written.
    fn bindings(self) -> &'static [bool] {
        match self {
            Self::Product(..) => &[false, false, false, true],
            Self::Plain(_) => &[false, false, true],
            Self::SlotProduct(..) => &[false, false, false, true, false],
            Self::SlotPlain(_) => &[false, false, true, false],
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
        }
    }

    fn entry(self) -> &'static str {
        match self {
            Self::Product(..) | Self::Plain(_) | Self::SlotProduct(..) | Self::SlotPlain(_) => "product",
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
        }
    }

    /// The whole program.
    pub fn source(self, arithmetic: Arithmetic) -> String {
        let own = match self {
            Self::Product(format, rows) | Self::SlotProduct(format, rows) => {
                let own =
                    [include_str!("kernels/product.wgsl"), include_str!("kernels/codebook.wgsl")].join("\n");
                fill(&own, &[("ROWS", rows)], format)
            }
            Self::Plain(format) | Self::SlotPlain(format) => {
                fill(include_str!("kernels/plain.wgsl"), &[], format)
            }
            Self::Rank => include_str!("kernels/rank.wgsl").to_owned(),
            Self::Arrange => include_str!("kernels/arrange.wgsl").to_owned(),
            Self::Combine => include_str!("kernels/combine.wgsl").to_owned(),
            Self::Join => include_str!("kernels/join.wgsl").to_owned(),
            Self::Convolve => include_str!("kernels/convolve.wgsl").to_owned(),
            Self::Norm => include_str!("kernels/norm.wgsl").to_owned(),
            Self::Quantise => include_str!("kernels/quantise.wgsl").to_owned(),
            Self::Activate => include_str!("kernels/activate.wgsl").to_owned(),
            Self::Turn => include_str!("kernels/turn.wgsl").replace("{{LONGEST}}", &LONGEST_HEAD.to_string()),
            Self::Attend => include_str!("kernels/attend.wgsl").to_owned(),
            Self::Gather => include_str!("kernels/gather.wgsl").to_owned(),
        };
        let fused = match arithmetic {
            Arithmetic::Own => "fn fused(a: f32, b: f32, c: f32) -> f32 { return fma(a, b, c); }\n",
            Arithmetic::Emulated => include_str!("kernels/emulated.wgsl"),
            #[cfg(test)]
            Arithmetic::Wrong => "fn fused(a: f32, b: f32, c: f32) -> f32 { return a * b - c; }\n",
        };
        let more = match self {
            Self::Norm | Self::Join => {
                [include_str!("kernels/norm_scale.wgsl"), include_str!("kernels/rounding.wgsl")].join("\n")
            }
            Self::Quantise | Self::Activate => include_str!("kernels/rounding.wgsl").to_owned(),
            Self::Product(..) | Self::Plain(_) => include_str!("kernels/rows.wgsl").to_owned(),
            // The slots are bound after what the others are given.
            Self::SlotProduct(..) => include_str!("kernels/slots.wgsl").replace("{{SLOTS}}", "4"),
            Self::SlotPlain(_) => include_str!("kernels/slots.wgsl").replace("{{SLOTS}}", "3"),
            _ => String::new(),
        };
        [&own, fused, include_str!("kernels/arithmetic.wgsl"), &more].join("\n")
    }
}

/// Fills in what a format's panels are like, in words of four bytes.
fn fill(source: &str, others: &[(&str, usize)], format: Format) -> String {
    let (centre, scaled) = match format {
        Format::Q8_0 => (128, 0),
        Format::Q4_0 => (8, 0),
        Format::Q5_0 => (16, 0),
        Format::Q4_1 | Format::Q5_1 => (0, 1),
        Format::Q4K | Format::Q5K => (0, 2),
        Format::Q6K => (32, 3),
        Format::Q3K | Format::Iq1M | Format::Iq2Xs | Format::Iq2S => (0, 3),
        Format::Iq1S | Format::Iq2Xxs | Format::Iq3Xxs | Format::Iq3S | Format::Iq4Xs => (0, 4),
        Format::Mxfp4 => (0, 5),
        Format::Q2K | Format::Tq1_0 | Format::Tq2_0 => (0, 6),
        Format::Iq4Nl | Format::F16 | Format::Bf16 | Format::F32 => (0, 0),
    };
    let values = [
        ("BITS", format.bits()),
        ("CENTRE", centre),
        ("SCALED", scaled),
        ("GROUPS", format.inputs() / 32),
        ("HEAD", format.head() / 4),
        ("GROUP", format.group() / 4),
    ];
    let words = format.codebook().unwrap_or_default().map(|value| value as u8);
    let words = words.as_chunks().0.iter().map(|&word| format!("{}u", u32::from_le_bytes(word)));
    let texts = [
        ("BRAIN", (format == Format::Bf16).to_string()),
        ("CHOSEN", format.codebook().is_some().to_string()),
        ("VALUES", words.collect::<Vec<_>>().join(", ")),
        ("FACTOR", format!("{:?}", format.factor())),
    ];
    let filled = texts
        .iter()
        .fold(source.to_owned(), |source, (name, text)| source.replace(&format!("{{{{{name}}}}}"), text));
    values
        .iter()
        .chain(others)
        .fold(filled, |source, (name, value)| source.replace(&format!("{{{{{name}}}}}"), &value.to_string()))
}

/// The name and the source of every program, for either kind of device.
pub fn programs() -> impl Iterator<Item = (String, String)> {
    let of =
        |arithmetic| move |kernel: Kernel| (format!("{kernel:?}, {arithmetic:?}"), kernel.source(arithmetic));
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
        let pipeline = device.guarded(|| make(device.raw(), kernel, kernel.source(self.arithmetic)))?;
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
