//! Cache of compiled pipelines.

use std::borrow::Cow;
use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foretoken_model::error::Result;

use super::device::GpuDevice;
use super::kernels::{Arithmetic, IMMEDIATE_BYTES, Kernel, Lanes};
use super::source::source;

/// A compiled kernel.
#[derive(Debug, Clone)]
pub struct Pipeline {
    pub kernel: Kernel,
    /// Output rows side by side, in products.
    pub lanes: Lanes,
    pub raw: wgpu::ComputePipeline,
}

/// Pipelines compiled so far.
#[derive(Debug)]
pub struct Pipelines {
    arithmetic: Arithmetic,
    lanes: Lanes,
    made: Mutex<HashMap<Kernel, Pipeline>>,
}

impl Pipelines {
    pub fn new(arithmetic: Arithmetic, lanes: Lanes) -> Self {
        Self { arithmetic, lanes, made: Mutex::default() }
    }

    /// Pipeline of `kernel`, compiled on first use.
    ///
    /// # Errors
    /// `Error::Compute` when the driver rejects the kernel.
    pub fn get(&self, device: &GpuDevice, kernel: Kernel) -> Result<Pipeline> {
        debug_assert!(
            Kernel::all().any(|known| known == kernel),
            "{kernel:?} is not translated in the tests"
        );
        if let Some(pipeline) = self.made().get(&kernel) {
            return Ok(pipeline.clone());
        }
        // The lock is released meanwhile, so that other threads compile in parallel.
        let source = source(kernel, self.arithmetic, self.lanes);
        let lanes = kernel.lanes(self.lanes);
        let pipeline = device.guarded(|| make(device.raw(), kernel, lanes, source))?;
        Ok(self.made().entry(kernel).or_insert(pipeline).clone())
    }

    /// Compiles several pipelines in parallel, each on its own thread. A driver takes a few to some
    /// tens of milliseconds for one.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn prepare(&self, device: &GpuDevice, kernels: &[Kernel]) -> Result<()> {
        std::thread::scope(|scope| {
            let threads =
                kernels.iter().map(|&kernel| scope.spawn(move || self.get(device, kernel).map(drop)));
            let threads: Vec<_> = threads.collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
        })
    }

    fn made(&self) -> MutexGuard<'_, HashMap<Kernel, Pipeline>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn make(device: &wgpu::Device, kernel: Kernel, lanes: Lanes, source: String) -> Pipeline {
    let descriptor = wgpu::ShaderModuleDescriptor {
        label: Some(kernel.entry()),
        source: wgpu::ShaderSource::Wgsl(Cow::Owned(source)),
    };
    // SAFETY: the kernels are part of this engine, stay within their buffers for the immediates and
    // workgroups that this folder passes, and contain no infinite loops. Runtime checks would cost
    // a sixth of the speed.
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
    let raw = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(kernel.entry()),
        layout: Some(&layout),
        module: &module,
        entry_point: Some(kernel.entry()),
        compilation_options: Default::default(),
        cache: None,
    });
    Pipeline { kernel, lanes, raw }
}
