//! What computes: which devices there are, opening one, and what to call it. A device that cannot be had is
//! never an error: the CPU takes its place, and a sentence says why.
//!
//! - [`choice`](DeviceChoice): what a person wants to compute; [`problem`](Problem): what can stand in the way
//! - [`gpu`](Gpu): the kinds of GPU
//! - `cuda`, `metal`: finding and opening GPUs of either kind for candle's tensors; `any`: for kernels of our own
//! - [`place`]: loading a model where it has room; [`threads()`]: those of the CPU

mod any;
mod choice;
mod cuda;
mod gpu;
mod memory;
mod metal;
mod place;
mod problem;
mod threads;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{Module, Tensor};

use crate::forward::gpu::GpuDevice;

pub use any::Candidate;
pub use choice::{DeviceChoice, GpuName};
pub use gpu::{Gpu, GpuMemory};
pub use memory::free_memory;
pub use place::{Role, place};
pub use problem::Problem;
pub(crate) use threads::adapts;
use threads::cpu_label;
pub use threads::{threads, use_threads, use_threads_steadily};

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
    /// Why it is this one where none was named: a whole sentence.
    pub note: Option<String>,
    /// The CPU, as long as nobody has found a GPU that is faster.
    pub undecided: bool,
}

impl Opened {
    pub fn cpu() -> Self {
        let label = cpu_label();
        Self { device: Device::Cpu, gpu: None, label, remark: None, note: None, undecided: false }
    }

    /// The CPU in the place of something else, for the reason in `remark`.
    pub fn cpu_because(remark: String) -> Self {
        Self { remark: Some(remark), ..Self::cpu() }
    }

    /// Whether this is sure to be what `choice` names: of several GPUs nobody knows here which is the first.
    pub fn is(&self, choice: &DeviceChoice) -> bool {
        match (self.gpu, choice) {
            (None, DeviceChoice::Cpu)
            | (Some(Gpu::Cuda), DeviceChoice::Cuda)
            | (Some(Gpu::Metal), DeviceChoice::Metal) => true,
            (Some(Gpu::Any), DeviceChoice::Gpu(GpuName::Called(name))) => {
                self.label.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(", "))
            }
            _ => false,
        }
    }

    /// Whether both are one device.
    pub fn is_same(&self, other: &Self) -> bool {
        self.gpu == other.gpu && self.label == other.label
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
pub fn open(choice: &DeviceChoice) -> Opened {
    open_by(choice, &|gpu| open_gpu(gpu, choice))
}

fn open_by(choice: &DeviceChoice, open: &dyn Fn(Gpu) -> Result<Opened, Problem>) -> Opened {
    let automatic = *choice == DeviceChoice::Auto;
    let mut in_the_way = None;
    for &gpu in choice.gpus() {
        match open(gpu) {
            Ok(opened) => return opened,
            // Nobody misses a GPU that is neither there nor asked for.
            Err(problem) if automatic && !problem.wastes_a_gpu() => {}
            Err(problem) => in_the_way = in_the_way.or(Some(problem)),
        }
    }
    match in_the_way {
        Some(gone @ Problem::Gone(_)) => {
            let remark = Some(format!("{gone} Choosing automatically."));
            Opened { remark, ..open_by(&DeviceChoice::Auto, open) }
        }
        Some(problem) => {
            let cpu = Opened::cpu_because(format!("{problem}{CPU_INSTEAD}"));
            Opened { undecided: automatic, ..cpu }
        }
        None => Opened { undecided: automatic, ..Opened::cpu() },
    }
}

/// The GPUs of any make that may be faster than the CPU, the one that should be fastest first.
pub fn candidates() -> Vec<Candidate> {
    if !any::may_be_here() {
        return Vec::new();
    }
    guarded(Gpu::Any, any::candidates).unwrap_or_default()
}

/// What there is to choose from, without opening it: its label, or what stands in the way.
pub fn survey() -> Vec<(DeviceChoice, Result<String, Problem>)> {
    let gpus = match guarded(Gpu::Any, any::candidates) {
        Ok(gpus) => gpus.into_iter().map(|gpu| (gpu.choice, Ok(gpu.name))).collect(),
        Err(problem) => vec![(DeviceChoice::Gpu(GpuName::First), Err(problem))],
    };
    let cpu = [(DeviceChoice::Auto, Ok("Automatic".to_owned())), (DeviceChoice::Cpu, Ok(cpu_label()))];
    let others = [
        (DeviceChoice::Cuda, guarded(Gpu::Cuda, cuda::look)),
        (DeviceChoice::Metal, guarded(Gpu::Metal, metal::look)),
    ];
    cpu.into_iter().chain(gpus).chain(others).collect()
}

fn open_gpu(gpu: Gpu, choice: &DeviceChoice) -> Result<Opened, Problem> {
    guarded(gpu, || {
        let (device, label) = match gpu {
            Gpu::Cuda => cuda::open()?,
            Gpu::Metal => metal::open()?,
            Gpu::Any => {
                let name = if let DeviceChoice::Gpu(name) = choice { name } else { &GpuName::First };
                let device = any::open(name)?;
                let label = format!("{}, {}", device.label(), device.promises());
                return Ok(Opened { gpu: Some(gpu), label, device: Device::Gpu(device), ..Opened::cpu() });
            }
        };
        try_out(&device).map_err(|error| Problem::failed(gpu, error))?;
        Ok(Opened { gpu: Some(gpu), label, device: Device::Tensors(device), ..Opened::cpu() })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(gpu: Gpu) -> Result<Opened, Problem> {
        Ok(Opened { gpu: Some(gpu), label: gpu.to_string(), ..Opened::cpu() })
    }

    fn opened(choice: DeviceChoice, cuda: &Problem, metal: Option<&Problem>) -> Opened {
        open_by(&choice, &|kind| match (kind, metal) {
            (Gpu::Cuda, _) => Err(cuda.clone()),
            (Gpu::Metal, Some(problem)) => Err(problem.clone()),
            (Gpu::Metal, None) => gpu(Gpu::Metal),
            (Gpu::Any, _) => unreachable!("nobody named it"),
        })
    }

    #[test]
    fn what_is_chosen_is_opened_and_auto_takes_cuda_then_metal() {
        let open = |choice| open_by(&choice, &gpu).gpu;
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
    fn whoever_names_no_device_leaves_it_open_whether_a_gpu_is_faster() {
        let absent = Problem::NotBuilt { gpu: Gpu::Metal, seen: false };
        let unused = Problem::NotBuilt { gpu: Gpu::Cuda, seen: true };
        assert!(opened(DeviceChoice::Auto, &absent, Some(&absent)).undecided);
        assert!(opened(DeviceChoice::Auto, &unused, Some(&absent)).undecided);
        assert!(!opened(DeviceChoice::Auto, &absent, None).undecided, "Metal is there");
        assert!(!opened(DeviceChoice::Cuda, &unused, Some(&absent)).undecided);
        assert!(!open_by(&DeviceChoice::Cpu, &gpu).undecided);
    }

    #[test]
    fn in_the_place_of_a_gpu_that_is_gone_one_is_chosen_automatically() {
        let gone = |kind| match kind {
            Gpu::Any => Err(Problem::Gone("Vulkan, AMD Radeon 780M".to_owned())),
            _ => Err(Problem::NotBuilt { gpu: kind, seen: false }),
        };
        let named = DeviceChoice::Gpu(GpuName::Called("Vulkan, AMD Radeon 780M".to_owned()));
        let opened = open_by(&named, &gone);
        let remark = "The GPU that was chosen is not there: Vulkan, AMD Radeon 780M. Choosing automatically.";
        assert_eq!((opened.gpu, opened.undecided, opened.remark.as_deref()), (None, true, Some(remark)));
    }

    #[test]
    fn everything_is_in_the_survey_with_a_label_or_a_reason() {
        let survey = survey();
        let of = |choice| &survey.iter().find(|(found, _)| *found == choice).unwrap().1;
        assert!(of(DeviceChoice::Auto).is_ok());
        assert_eq!(of(DeviceChoice::Cpu).as_deref(), Ok(cpu_label().as_str()));
        assert!(cpu_label().starts_with("CPU, "));
        assert!(survey.iter().any(|(choice, _)| matches!(choice, DeviceChoice::Gpu(_))));
        let [cuda, metal] = [cfg!(feature = "cuda"), cfg!(feature = "metal")];
        for (choice, kind, built) in
            [(DeviceChoice::Cuda, Gpu::Cuda, cuda), (DeviceChoice::Metal, Gpu::Metal, metal)]
        {
            let missing = matches!(of(choice), Err(Problem::NotBuilt { gpu, .. }) if *gpu == kind);
            assert!(built || missing);
        }
    }
}
