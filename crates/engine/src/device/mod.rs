//! What computes: which devices there are, opening one, and what to call it. A device that cannot be had is
//! never an error: the CPU takes its place, and a sentence says why.
//!
//! - [`problem`](Problem): what can stand in the way of a GPU
//! - [`gpu`](Gpu): the kinds of GPU
//! - `cuda`, `metal`: finding and opening GPUs of either kind for candle's tensors; `any`: for kernels of our own
//! - [`place`]: loading a model where it has room

mod any;
mod cuda;
mod gpu;
mod memory;
mod metal;
mod place;
mod problem;

use std::fmt;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::available_parallelism;

use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{Module, Tensor};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::forward::cpu::Isa;
use crate::forward::gpu::GpuDevice;

pub use gpu::{Gpu, GpuMemory};
pub use memory::free_memory;
pub use place::{Role, place};
pub use problem::Problem;

/// What a person wants to compute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum DeviceChoice {
    /// A GPU where this build can use one, else the CPU.
    #[default]
    Auto,
    Cpu,
    Cuda,
    Metal,
    /// A GPU of any make: see [`use_gpu`].
    Gpu,
}

impl DeviceChoice {
    /// Those that are offered. [`Self::Gpu`] has to be named, as long as nobody measures whether it pays.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Cpu, Self::Cuda, Self::Metal];

    /// The GPUs to try, the best first.
    fn gpus(self) -> &'static [Gpu] {
        match self {
            Self::Auto => &[Gpu::Cuda, Gpu::Metal],
            Self::Cpu => &[],
            Self::Cuda => &[Gpu::Cuda],
            Self::Metal => &[Gpu::Metal],
            Self::Gpu => &[Gpu::Any],
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "Automatic",
            Self::Cpu => "CPU",
            Self::Cuda => "CUDA",
            Self::Metal => "Metal",
            Self::Gpu => "GPU",
        })
    }
}

/// What runs models.
#[derive(Debug, Clone)]
pub enum Device {
    /// The engine for CPUs.
    Cpu,
    /// The engine for GPUs.
    Gpu(Arc<GpuDevice>),
    /// candle's tensors.
    Tensors(candle_core::Device),
}

impl Device {
    /// Waits until everything is done that was handed over.
    ///
    /// # Errors
    /// `Error::Compute` when the device failed.
    pub fn wait(&self) -> crate::Result<()> {
        match self {
            Self::Cpu => Ok(()),
            Self::Gpu(device) => device.wait(),
            Self::Tensors(device) => Ok(device.synchronize()?),
        }
    }
}

/// A device that is ready, and why it is not the one that was asked for.
#[derive(Debug, Clone)]
pub struct Opened {
    pub device: Device,
    /// `None` for the CPU.
    pub gpu: Option<Gpu>,
    /// "CPU, 8 threads, AVX-512", "CUDA, NVIDIA H100, 80 GB", "Vulkan, AMD Radeon 780M, bit-identical to the CPU".
    pub label: String,
    /// Whole sentences.
    pub remark: Option<String>,
}

impl Opened {
    pub fn cpu() -> Self {
        Self { device: Device::Cpu, gpu: None, label: cpu_label(), remark: None }
    }

    /// The CPU in the place of something else, for the reason in `remark`.
    pub fn cpu_because(remark: String) -> Self {
        Self { remark: Some(remark), ..Self::cpu() }
    }

    /// Whether this is what `choice` names.
    pub fn is(&self, choice: DeviceChoice) -> bool {
        match self.gpu {
            None => choice == DeviceChoice::Cpu,
            Some(Gpu::Cuda) => choice == DeviceChoice::Cuda,
            Some(Gpu::Metal) => choice == DeviceChoice::Metal,
            Some(Gpu::Any) => choice == DeviceChoice::Gpu,
        }
    }

    /// `None` on the CPU, and where the driver does not say.
    pub fn memory(&self) -> Option<GpuMemory> {
        match &self.device {
            Device::Tensors(candle_core::Device::Cuda(device)) => cuda::memory(device),
            Device::Tensors(candle_core::Device::Metal(device)) => metal::memory(device),
            Device::Cpu | Device::Gpu(_) | Device::Tensors(_) => None,
        }
    }
}

/// The end of the remark of a device that gave way to the CPU.
pub const CPU_INSTEAD: &str = " Using the CPU instead.";

/// Opens what was chosen, or the CPU where that cannot be had. Opening a GPU takes up to a second.
pub fn open(choice: DeviceChoice) -> Opened {
    open_by(choice, &open_gpu)
}

fn open_by(choice: DeviceChoice, open: &dyn Fn(Gpu) -> Result<Opened, Problem>) -> Opened {
    let mut in_the_way = None;
    for &gpu in choice.gpus() {
        match open(gpu) {
            Ok(opened) => return opened,
            // Nobody misses a GPU that is neither there nor asked for.
            Err(problem) if choice == DeviceChoice::Auto && !problem.wastes_a_gpu() => {}
            Err(problem) => in_the_way = in_the_way.or(Some(problem)),
        }
    }
    match in_the_way {
        Some(problem) => Opened::cpu_because(format!("{problem}{CPU_INSTEAD}")),
        None => Opened::cpu(),
    }
}

/// What there is to choose from, without opening it: its label, or what stands in the way.
pub fn survey() -> Vec<(DeviceChoice, Result<String, Problem>)> {
    let found = |choice: DeviceChoice| match choice {
        DeviceChoice::Auto => Ok(choice.to_string()),
        DeviceChoice::Cpu => Ok(cpu_label()),
        DeviceChoice::Cuda => guarded(Gpu::Cuda, cuda::look),
        DeviceChoice::Metal => guarded(Gpu::Metal, metal::look),
        DeviceChoice::Gpu => any::open().map(|device| device.label().to_owned()),
    };
    DeviceChoice::ALL.into_iter().map(|choice| (choice, found(choice))).collect()
}

fn open_gpu(gpu: Gpu) -> Result<Opened, Problem> {
    guarded(gpu, || {
        let (device, label) = match gpu {
            Gpu::Cuda => cuda::open()?,
            Gpu::Metal => metal::open()?,
            Gpu::Any => {
                let device = any::open()?;
                let label = format!("{}, {}", device.label(), device.promises());
                return Ok(Opened { device: Device::Gpu(device), gpu: Some(gpu), label, remark: None });
            }
        };
        try_out(&device).map_err(|error| Problem::failed(gpu, error))?;
        Ok(Opened { device: Device::Tensors(device), gpu: Some(gpu), label, remark: None })
    })
}

/// The libraries on the way to a GPU panic over some errors.
fn guarded<T>(gpu: Gpu, attempt: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(attempt)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or(panic.downcast_ref::<&str>().copied());
        Err(Problem::failed(gpu, said.unwrap_or("no reason was given")))
    })
}

/// A GPU shows only when it computes that it cannot read the kernels of this build: those of quantised
/// products are made for one generation of GPUs, and candle does not ask whether they ran. One row and nine
/// take different kernels.
fn try_out(device: &candle_core::Device) -> candle_core::Result<()> {
    let wave = |size: usize| (0..size).map(|n| (n as f32 * 0.7).sin());
    let weights = Tensor::from_iter(wave(32 * 256), &candle_core::Device::Cpu)?.reshape((32, 256))?;
    for rows in [1, 9] {
        let x = Tensor::from_iter(wave(rows * 256), &candle_core::Device::Cpu)?.reshape((rows, 256))?;
        let product = |device: &candle_core::Device| -> candle_core::Result<Vec<f32>> {
            let weights = QTensor::quantize_onto(&weights, GgmlDType::Q8_0, device)?;
            let product = QMatMul::from_qtensor(weights)?.forward(&x.to_device(device)?)?;
            product.flatten_all()?.to_vec1()
        };
        let (found, expected) = (product(device)?, product(&candle_core::Device::Cpu)?);
        let size = expected.iter().copied().fold(0.0, f32::max);
        let near = |(found, expected): (&f32, &f32)| (found - expected).abs() < 0.05 * size;
        if !found.iter().zip(&expected).all(near) {
            candle_core::bail!("its results are wrong: this build may be for another generation of GPUs");
        }
    }
    Ok(())
}

/// "CPU, 8 threads, AVX-512"
fn cpu_label() -> String {
    let threads = match threads() {
        1 => "1 thread".to_owned(),
        threads => format!("{threads} threads"),
    };
    Isa::choose().map_or_else(|_| format!("CPU, {threads}"), |isa| format!("CPU, {threads}, {isa}"))
}

/// 0: nobody said.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Makes models loaded from now on compute on at most so many threads.
pub fn use_threads(threads: NonZeroUsize) {
    THREADS.store(threads.get(), Ordering::Relaxed);
}

/// Threads that compute, at most: what was asked for, or one for each core that this program may use.
pub fn threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => {
            let cores = candle_core::utils::get_num_threads();
            available_parallelism().map_or(cores, |allowed| cores.min(allowed.get()))
        }
        asked => asked,
    }
}

/// Which GPU [`DeviceChoice::Gpu`] is.
static GPU: AtomicUsize = AtomicUsize::new(0);

/// Makes [`DeviceChoice::Gpu`] mean GPU number `index`, counted from 0; without it, the one that should be fastest.
pub fn use_gpu(index: usize) {
    GPU.store(index, Ordering::Relaxed);
}

static STEADY: AtomicBool = AtomicBool::new(false);

/// Makes models loaded from now on compute on all threads all the time, also beside other programs that need
/// the cores: where threads are compared.
pub fn use_threads_steadily() {
    STEADY.store(true, Ordering::Relaxed);
}

/// Whether threads that other programs hold up are given up for a while.
pub(crate) fn adapts() -> bool {
    !STEADY.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(gpu: Gpu) -> Result<Opened, Problem> {
        Ok(Opened { gpu: Some(gpu), label: gpu.to_string(), ..Opened::cpu() })
    }

    fn opened(choice: DeviceChoice, cuda: &Problem, metal: Option<&Problem>) -> Opened {
        open_by(choice, &|kind| match (kind, metal) {
            (Gpu::Cuda, _) => Err(cuda.clone()),
            (Gpu::Metal, Some(problem)) => Err(problem.clone()),
            (Gpu::Metal, None) => gpu(Gpu::Metal),
            (Gpu::Any, _) => unreachable!("nobody named it"),
        })
    }

    #[test]
    fn what_is_chosen_is_opened_and_auto_takes_cuda_then_metal() {
        let open = |choice| open_by(choice, &gpu).gpu;
        assert_eq!(open(DeviceChoice::Auto), Some(Gpu::Cuda));
        assert_eq!(open(DeviceChoice::Cpu), None);
        assert_eq!(open(DeviceChoice::Cuda), Some(Gpu::Cuda));
        assert_eq!(open(DeviceChoice::Metal), Some(Gpu::Metal));
        let old = Problem::OldDriver { found: 12020, needed: 12040 };
        let auto = opened(DeviceChoice::Auto, &old, None);
        assert_eq!((auto.gpu, auto.remark), (Some(Gpu::Metal), None));
    }

    #[test]
    fn the_cpu_takes_the_place_of_what_cannot_be_had_and_says_so() {
        let nothing = Problem::NoGpu(Gpu::Cuda);
        let cuda = opened(DeviceChoice::Cuda, &nothing, None);
        assert_eq!((cuda.gpu, cuda.label.as_str()), (None, cpu_label().as_str()));
        let remark = cuda.remark.unwrap();
        assert!(remark.contains("NVIDIA GPU") && remark.ends_with(". Using the CPU instead."), "{remark}");
    }

    #[test]
    fn auto_is_silent_about_gpus_that_are_not_there_and_not_about_those_it_cannot_use() {
        let absent = Problem::NotBuilt { gpu: Gpu::Metal, seen: false };
        let auto = opened(DeviceChoice::Auto, &Problem::NoGpu(Gpu::Cuda), Some(&absent));
        assert_eq!((auto.gpu, auto.remark), (None, None));
        let unused = Problem::NotBuilt { gpu: Gpu::Cuda, seen: true };
        let remark = opened(DeviceChoice::Auto, &unused, Some(&absent)).remark.unwrap();
        assert!(
            remark.starts_with("This computer has an NVIDIA GPU; a build made with `make cuda-build`"),
            "{remark}"
        );
    }

    #[test]
    fn a_panic_on_the_way_to_a_gpu_is_a_problem_like_others() {
        let problem = guarded::<()>(Gpu::Cuda, || panic!("no symbol {}", "cuInit")).unwrap_err();
        assert_eq!(problem, Problem::failed(Gpu::Cuda, "no symbol cuInit"));
    }

    #[test]
    fn a_device_that_multiplies_is_taken() {
        try_out(&candle_core::Device::Cpu).unwrap();
    }

    #[test]
    fn everything_is_in_the_survey_with_a_label_or_a_reason() {
        let survey = survey();
        assert_eq!(survey.iter().map(|(choice, _)| *choice).collect::<Vec<_>>(), DeviceChoice::ALL);
        assert_eq!(survey[1].1.as_deref(), Ok(cpu_label().as_str()));
        assert!(cpu_label().starts_with("CPU, "));
        if !cfg!(feature = "cuda") {
            assert!(matches!(survey[2].1, Err(Problem::NotBuilt { gpu: Gpu::Cuda, .. })));
        }
        if !cfg!(feature = "metal") {
            assert!(matches!(survey[3].1, Err(Problem::NotBuilt { gpu: Gpu::Metal, .. })));
        }
    }

    #[test]
    fn choices_are_stored_by_name_and_auto_is_the_default() {
        let names = serde_json::to_string(&DeviceChoice::ALL).unwrap();
        assert_eq!(names, r#"["auto","cpu","cuda","metal"]"#);
        assert_eq!(DeviceChoice::default(), DeviceChoice::Auto);
    }
}
