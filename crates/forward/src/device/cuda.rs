//! NVIDIA GPUs by CUDA: the only place that calls NVIDIA's driver directly. Of several GPUs the
//! first in CUDA's own order is used, which is the fastest.
//!
//! A CUDA build also starts on computers without CUDA: calls to a missing library return an error.

#[cfg(not(feature = "cuda"))]
pub use absent::{look, memory, open};
#[cfg(feature = "cuda")]
pub use built::{look, memory, open};

#[cfg(feature = "cuda")]
mod built {
    use candle_core::cuda_backend::cudarc::cublas::sys as cublas;
    use candle_core::cuda_backend::cudarc::curand::sys as curand;
    use candle_core::cuda_backend::cudarc::driver::{DriverError, result, sys};
    use candle_core::{CudaDevice, Device};

    use crate::device::gpu::{Gpu, GpuMemory, gpu_label};
    use crate::device::label::DeviceLabel;
    use crate::device::problem::Problem;

    /// Label of the first GPU.
    pub fn look() -> Result<DeviceLabel, Problem> {
        result::init().map_err(problem)?;
        if result::device::get_count().map_err(problem)? == 0 {
            return Err(Problem::NoGpu(Gpu::Cuda));
        }
        Problem::of_versions(driver_version()?, sys::CUDA_VERSION)?;
        let missing = missing_libraries();
        if !missing.is_empty() {
            return Err(Problem::NoLibraries(missing));
        }
        let device = result::device::get(0).map_err(problem)?;
        let name = result::device::get_name(device).map_err(problem)?;
        // SAFETY: the device is one that the driver returned.
        let total = unsafe { result::device::total_mem(device) }.map_err(problem)?;
        Ok(gpu_label(Gpu::Cuda, &name, total as u64))
    }

    /// Opens the first GPU. All work runs on the calling thread's stream, in its order, so only one
    /// thread may use the models of a device.
    pub fn open() -> Result<(Device, DeviceLabel), Problem> {
        let label = look()?;
        let device = Device::new_cuda(0).map_err(|error| Problem::failed(Gpu::Cuda, error))?;
        Ok((device, label))
    }

    pub fn memory(device: &CudaDevice) -> Option<GpuMemory> {
        let (free, total) = device.cuda_stream().context().mem_get_info().ok()?;
        Some(GpuMemory { total_bytes: total as u64, free_bytes: free as u64 })
    }

    fn problem(error: DriverError) -> Problem {
        Problem::of_driver(error.0 as u32, error)
    }

    fn driver_version() -> Result<u32, Problem> {
        let mut version = 0;
        // SAFETY: the driver writes one int to this address.
        unsafe { sys::cuDriverGetVersion(&mut version) }.result().map_err(problem)?;
        Ok(version as u32)
    }

    /// Libraries that candle calls and that are not installed.
    fn missing_libraries() -> Vec<String> {
        let mut version = 0;
        // SAFETY: either library writes one int to this address and needs no initialisation before.
        let (blas, rand) = unsafe {
            let blas = cublas::cublasGetProperty(cublas::libraryPropertyType::MAJOR_VERSION, &mut version);
            (blas, curand::curandGetVersion(&mut version))
        };
        let found = [("libcublas", blas.result().is_ok()), ("libcurand", rand.result().is_ok())];
        found.into_iter().filter(|(_, here)| !here).map(|(name, _)| name.to_owned()).collect()
    }
}

#[cfg(not(feature = "cuda"))]
mod absent {
    use std::path::{Path, PathBuf};

    use candle_core::{CudaDevice, Device};

    use crate::device::gpu::{Gpu, GpuMemory};
    use crate::device::label::DeviceLabel;
    use crate::device::problem::Problem;

    pub fn look() -> Result<DeviceLabel, Problem> {
        Err(not_built())
    }

    pub fn open() -> Result<(Device, DeviceLabel), Problem> {
        Err(not_built())
    }

    pub fn memory(_: &CudaDevice) -> Option<GpuMemory> {
        None
    }

    fn not_built() -> Problem {
        Problem::NotBuilt { gpu: Gpu::Cuda, seen: traces().iter().any(|path| path.exists()) }
    }

    /// Files that NVIDIA's driver creates.
    fn traces() -> Vec<PathBuf> {
        if cfg!(windows) {
            let system = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
            return vec![Path::new(&system).join("System32").join("nvcuda.dll")];
        }
        vec!["/proc/driver/nvidia/version".into(), "/dev/nvidiactl".into()]
    }
}
