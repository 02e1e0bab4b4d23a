//! Compute devices: finding, opening and labelling them. A device that cannot be opened is never an
//! error: the CPU is used instead, and a remark says why.
//!
//! - [`choice`](DeviceChoice): the user's choice of device; [`problem`](Problem): reasons why a GPU
//!   cannot be used
//! - [`gpu`](Gpu): APIs for GPUs
//! - `cuda`, `metal`: GPUs for candle's tensors; `any`: GPUs for the kernels of `gpu`
//! - [`place`]: loads a model on the GPU or, failing that, on the CPU; [`threads()`]: CPU threads

mod any;
mod choice;
mod cuda;
mod gpu;
mod label;
mod memory;
mod metal;
mod place;
mod problem;
mod remark;
mod threads;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{Module, Tensor};

use crate::gpu::GpuDevice;

pub use any::Candidate;
pub use choice::{DeviceChoice, GpuName};
pub use gpu::{Gpu, GpuMemory};
pub use label::{DeviceFact, DeviceLabel};
pub use memory::free_memory;
pub use place::place;
pub use problem::Problem;
pub use remark::{DeviceNote, DeviceRemark, Role};
pub(crate) use threads::adapts;
use threads::cpu_label;
pub use threads::{threads, use_threads, use_threads_steadily};

/// Executor of models.
#[derive(Debug, Clone)]
pub enum Device {
    /// `forward::cpu`.
    Cpu,
    /// `forward::gpu`, by wgpu.
    Gpu(Arc<GpuDevice>),
    /// `forward::tensor`, by candle.
    Tensors(candle_core::Device),
}

impl Device {
    /// Waits for all submitted work.
    ///
    /// # Errors
    /// `Error::Compute` when the device failed.
    pub fn wait(&self) -> foretoken_model::Result<()> {
        match self {
            Self::Cpu => Ok(()),
            Self::Gpu(device) => device.wait(),
            Self::Tensors(device) => Ok(device.synchronize()?),
        }
    }
}

/// An open device, and why it is not the chosen one.
#[derive(Debug, Clone)]
pub struct Opened {
    pub device: Device,
    /// `None` for the CPU.
    pub gpu: Option<Gpu>,
    pub label: DeviceLabel,
    /// Reason why the device is not the one that was asked for.
    pub remark: Option<DeviceRemark>,
    /// Reason why this device was selected automatically.
    pub note: Option<DeviceNote>,
    /// Automatic selection has not measured yet whether a GPU is faster than this CPU.
    pub undecided: bool,
}

impl Opened {
    pub fn cpu() -> Self {
        let label = cpu_label();
        Self { device: Device::Cpu, gpu: None, label, remark: None, note: None, undecided: false }
    }

    /// The CPU as a substitute, for the reason in `remark`.
    pub fn cpu_because(remark: DeviceRemark) -> Self {
        Self { remark: Some(remark), ..Self::cpu() }
    }

    /// Returns whether this is certainly the device that `choice` names. `gpu` and `gpu:N` depend
    /// on the order of the GPUs, which is unknown here.
    pub fn is(&self, choice: &DeviceChoice) -> bool {
        match (self.gpu, choice) {
            (None, DeviceChoice::Cpu)
            | (Some(Gpu::Cuda), DeviceChoice::Cuda)
            | (Some(Gpu::Metal), DeviceChoice::Metal) => true,
            (Some(Gpu::Any), DeviceChoice::Gpu(GpuName::Called(name))) => {
                let label = self.label.to_string();
                label.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(", "))
            }
            _ => false,
        }
    }

    /// Returns whether both are the same device.
    pub fn is_same(&self, other: &Self) -> bool {
        self.gpu == other.gpu && self.label == other.label
    }

    /// Memory of the GPU; `None` on the CPU, and where the driver does not report it.
    pub fn memory(&self) -> Option<GpuMemory> {
        match &self.device {
            Device::Tensors(candle_core::Device::Cuda(device)) => cuda::memory(device),
            Device::Tensors(candle_core::Device::Metal(device)) => metal::memory(device),
            Device::Cpu | Device::Gpu(_) | Device::Tensors(_) => None,
        }
    }
}

/// Opens the chosen device, or the CPU if it cannot be opened. Opening a GPU takes up to a second.
pub fn open(choice: &DeviceChoice) -> Opened {
    open_by(choice, &|gpu| open_gpu(gpu, choice))
}

fn open_by(choice: &DeviceChoice, open: &dyn Fn(Gpu) -> Result<Opened, Problem>) -> Opened {
    let automatic = *choice == DeviceChoice::Auto;
    let mut in_the_way = None;
    for &gpu in choice.gpus() {
        match open(gpu) {
            Ok(opened) => return opened,
            // A GPU that neither exists nor was asked for is no reason for a remark.
            Err(problem) if automatic && !problem.wastes_a_gpu() => {}
            Err(problem) => in_the_way = in_the_way.or(Some(problem)),
        }
    }
    match in_the_way {
        Some(Problem::Gone(gpu)) => {
            let remark = Some(DeviceRemark::Automatic { gpu });
            Opened { remark, ..open_by(&DeviceChoice::Auto, open) }
        }
        Some(problem) => {
            let cpu = Opened::cpu_because(DeviceRemark::CpuInstead { problem });
            Opened { undecided: automatic, ..cpu }
        }
        None => Opened { undecided: automatic, ..Opened::cpu() },
    }
}

/// GPUs of any vendor that may be faster than the CPU, the presumably fastest first.
pub fn candidates() -> Vec<Candidate> {
    if !any::may_be_here() {
        return Vec::new();
    }
    guarded(Gpu::Any, any::candidates).unwrap_or_default()
}

/// Every choice with its label, or the reason why it cannot be used. Opens no device.
pub fn survey() -> Vec<(DeviceChoice, Result<DeviceLabel, Problem>)> {
    let gpus = match guarded(Gpu::Any, any::candidates) {
        Ok(gpus) => gpus.into_iter().map(|gpu| (gpu.choice, Ok(DeviceLabel::of_gpu(&gpu.name)))).collect(),
        Err(problem) => vec![(DeviceChoice::Gpu(GpuName::First), Err(problem))],
    };
    let cpu =
        [(DeviceChoice::Auto, Ok(DeviceLabel::named("Automatic"))), (DeviceChoice::Cpu, Ok(cpu_label()))];
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
                let mut label = DeviceLabel::of_gpu(device.label());
                label.facts.extend(device.guarantees().facts());
                return Ok(Opened { gpu: Some(gpu), label, device: Device::Gpu(device), ..Opened::cpu() });
            }
        };
        try_out(&device).map_err(|error| Problem::failed(gpu, error))?;
        Ok(Opened { gpu: Some(gpu), label, device: Device::Tensors(device), ..Opened::cpu() })
    })
}

/// Runs `attempt` and turns its panic into a `Problem`: GPU libraries panic on some errors.
fn guarded<T>(gpu: Gpu, attempt: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(attempt)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or(panic.downcast_ref::<&str>().copied());
        Err(Problem::failed(gpu, said.unwrap_or("no reason was given")))
    })
}

/// Checks the results of a small quantised product against the CPU's. The kernels are compiled for
/// one generation of GPUs, and candle does not check their launch, so a mismatch shows only in the
/// results. One row and nine rows take different kernels.
#[allow(clippy::disallowed_methods, reason = "both sides of the comparison take these numbers")]
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
        Ok(Opened { gpu: Some(gpu), label: DeviceLabel::named(gpu.to_string()), ..Opened::cpu() })
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
    fn the_chosen_device_is_opened_and_auto_tries_cuda_then_metal() {
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
    fn an_unavailable_device_is_replaced_by_the_cpu_with_a_remark() {
        let nothing = Problem::NoGpu(Gpu::Cuda);
        let cuda = opened(DeviceChoice::Cuda, &nothing, None);
        assert_eq!((cuda.gpu, cuda.label), (None, cpu_label()));
        let remark = cuda.remark.unwrap().to_string();
        assert!(remark.contains("NVIDIA GPU") && remark.ends_with(". Using the CPU instead."), "{remark}");
    }

    #[test]
    fn auto_remarks_on_unusable_gpus_but_not_on_missing_ones() {
        let absent = Problem::NotBuilt { gpu: Gpu::Metal, seen: false };
        let auto = opened(DeviceChoice::Auto, &Problem::NoGpu(Gpu::Cuda), Some(&absent));
        assert_eq!((auto.gpu, auto.remark), (None, None));
        let unused = Problem::NotBuilt { gpu: Gpu::Cuda, seen: true };
        let remark = opened(DeviceChoice::Auto, &unused, Some(&absent)).remark.unwrap().to_string();
        assert!(
            remark.starts_with("This computer has an NVIDIA GPU; a build made with `make cuda-build`"),
            "{remark}"
        );
    }

    #[test]
    fn a_panic_while_opening_a_gpu_becomes_a_problem() {
        let problem = guarded::<()>(Gpu::Cuda, || panic!("no symbol {}", "cuInit")).unwrap_err();
        assert_eq!(problem, Problem::failed(Gpu::Cuda, "no symbol cuInit"));
    }

    #[test]
    fn a_device_that_multiplies_correctly_is_accepted() {
        try_out(&candle_core::Device::Cpu).unwrap();
    }

    #[test]
    fn without_a_chosen_device_it_stays_undecided_whether_a_gpu_is_faster() {
        let absent = Problem::NotBuilt { gpu: Gpu::Metal, seen: false };
        let unused = Problem::NotBuilt { gpu: Gpu::Cuda, seen: true };
        assert!(opened(DeviceChoice::Auto, &absent, Some(&absent)).undecided);
        assert!(opened(DeviceChoice::Auto, &unused, Some(&absent)).undecided);
        assert!(!opened(DeviceChoice::Auto, &absent, None).undecided, "Metal is there");
        assert!(!opened(DeviceChoice::Cuda, &unused, Some(&absent)).undecided);
        assert!(!open_by(&DeviceChoice::Cpu, &gpu).undecided);
    }

    #[test]
    fn a_chosen_gpu_that_is_gone_is_replaced_automatically() {
        let gone = |kind| match kind {
            Gpu::Any => Err(Problem::Gone("Vulkan, AMD Radeon 780M".to_owned())),
            _ => Err(Problem::NotBuilt { gpu: kind, seen: false }),
        };
        let named = DeviceChoice::Gpu(GpuName::Called("Vulkan, AMD Radeon 780M".to_owned()));
        let opened = open_by(&named, &gone);
        let remark = "The GPU that was chosen is not there: Vulkan, AMD Radeon 780M. Choosing automatically.";
        assert_eq!((opened.gpu, opened.undecided), (None, true));
        assert_eq!(opened.remark.unwrap().to_string(), remark);
    }

    #[test]
    fn every_device_is_listed_with_a_label_or_a_reason() {
        let survey = survey();
        let of = |choice| &survey.iter().find(|(found, _)| *found == choice).unwrap().1;
        assert!(of(DeviceChoice::Auto).is_ok());
        assert_eq!(*of(DeviceChoice::Cpu), Ok(cpu_label()));
        assert!(cpu_label().to_string().starts_with("CPU, "));
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
