//! Apple GPUs by Metal.

#[cfg(not(feature = "metal"))]
pub use absent::{look, memory, open};
#[cfg(feature = "metal")]
pub use built::{look, memory, open};

#[cfg(feature = "metal")]
mod built {
    use std::process::Command;

    use candle_core::{Device, MetalDevice};

    use crate::device::gpu::{Gpu, GpuMemory, gpu_label};
    use crate::device::label::DeviceLabel;
    use crate::device::problem::Problem;

    /// Label of the GPU. Opens it, which costs little.
    pub fn look() -> Result<DeviceLabel, Problem> {
        Ok(open()?.1)
    }

    pub fn open() -> Result<(Device, DeviceLabel), Problem> {
        let device = Device::new_metal(0).map_err(|error| Problem::failed(Gpu::Metal, error))?;
        let metal = device.as_metal_device().map_err(|error| Problem::failed(Gpu::Metal, error))?;
        let name = super::chip(&system("machdep.cpu.brand_string"));
        let total = system("hw.memsize").trim().parse();
        let label =
            gpu_label(Gpu::Metal, &name, total.unwrap_or(metal.recommended_max_working_set_size() as u64));
        Ok((device, label))
    }

    /// Unified memory: the total is the working set that Metal recommends.
    pub fn memory(device: &MetalDevice) -> Option<GpuMemory> {
        let total = device.recommended_max_working_set_size() as u64;
        let used = device.current_allocated_size() as u64;
        Some(GpuMemory { total_bytes: total, free_bytes: total.saturating_sub(used) })
    }

    /// Value of the sysctl `name`; empty if there is none.
    fn system(name: &str) -> String {
        let said = Command::new("/usr/sbin/sysctl").args(["-n", name]).output();
        said.map_or_else(|_| String::new(), |said| String::from_utf8_lossy(&said.stdout).into_owned())
    }
}

/// Name of the GPU. An Apple GPU is part of the processor and has its name.
#[cfg(any(feature = "metal", test))]
fn chip(processor: &str) -> String {
    let processor = processor.trim();
    if processor.starts_with("Apple") { processor.to_owned() } else { "GPU".to_owned() }
}

#[cfg(not(feature = "metal"))]
mod absent {
    use candle_core::{Device, MetalDevice};

    use crate::device::gpu::{Gpu, GpuMemory};
    use crate::device::label::DeviceLabel;
    use crate::device::problem::Problem;

    /// Every Mac with Apple silicon has a Metal GPU.
    const PROBLEM: Problem =
        Problem::NotBuilt { gpu: Gpu::Metal, seen: cfg!(all(target_os = "macos", target_arch = "aarch64")) };

    pub fn look() -> Result<DeviceLabel, Problem> {
        Err(PROBLEM)
    }

    pub fn open() -> Result<(Device, DeviceLabel), Problem> {
        Err(PROBLEM)
    }

    pub fn memory(_: &MetalDevice) -> Option<GpuMemory> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_apple_gpu_is_named_after_its_chip() {
        assert_eq!(chip("Apple M3 Max\n"), "Apple M3 Max");
        assert_eq!(chip("Intel(R) Core(TM) i7"), "GPU");
        assert_eq!(chip(""), "GPU");
    }
}
