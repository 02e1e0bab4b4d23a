//! GPUs of any vendor, for the kernels of `gpu`: lists them and opens the chosen one.
//! `gpu/opening.rs` does the opening itself.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::choice::{DeviceChoice, GpuName};
use super::gpu::{Gpu, SOFTWARE};
use super::problem::Problem;
use crate::gpu::{Found, GpuDevice, find, unfound};

/// A GPU that may be faster than the CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Choice of this GPU by its name.
    pub choice: DeviceChoice,
    /// "Vulkan, AMD Radeon 780M"
    pub name: String,
    pub driver: String,
}

/// All GPUs, the presumably fastest first.
///
/// # Errors
/// `NoGpu`, `SoftwareOnly` or `Failed` if there is none.
pub fn candidates() -> Result<Vec<Candidate>, Problem> {
    let candidate = |found: &Found| {
        let name = found.name().to_owned();
        let choice = DeviceChoice::Gpu(GpuName::Called(name.clone()));
        Candidate { choice, name, driver: found.driver() }
    };
    Ok(found()?.iter().map(candidate).collect())
}

/// Returns whether looking for an unnamed GPU is worthwhile. On Linux every GPU driver has a file
/// in `/dev`. Looking without one would load all installed drivers, which takes time, and some of
/// them write to standard error.
pub fn may_be_here() -> bool {
    !cfg!(target_os = "linux") || accepts_software() || has_node(Path::new("/dev"))
}

/// Returns whether `dev` contains a driver's file: a DRM render node, NVIDIA's, WSL's, or one of a
/// phone's processor.
fn has_node(dev: &Path) -> bool {
    let renders = || {
        let files = std::fs::read_dir(dev.join("dri")).into_iter().flatten().flatten();
        files.into_iter().any(|file| file.file_name().to_string_lossy().starts_with("renderD"))
    };
    renders() || ["nvidiactl", "dxg", "mali0", "kgsl-3d0"].iter().any(|node| dev.join(node).exists())
}

/// Returns whether software renderers are accepted, as tests do.
fn accepts_software() -> bool {
    std::env::var_os(SOFTWARE).is_some_and(|value| value == "1")
}

/// All GPUs, at least one.
fn found() -> Result<Vec<Found>, Problem> {
    let (found, software) = find(accepts_software());
    match (found.is_empty(), software.is_empty()) {
        (false, _) => Ok(found),
        (true, true) => Err(match std::env::var("WGPU_BACKEND") {
            Ok(named) => Problem::failed(Gpu::Any, unfound(&named)),
            Err(_) => Problem::NoGpu(Gpu::Any),
        }),
        (true, false) => Err(Problem::SoftwareOnly(software)),
    }
}

/// Open GPUs, shared by target and draft.
static OPEN: Mutex<Vec<Weak<GpuDevice>>> = Mutex::new(Vec::new());

/// Opens the GPU with this name, or returns it if it is already open and works.
///
/// # Errors
/// `NoGpu`, `SoftwareOnly`, `NoSuchGpu`, `Gone` and `Failed`.
pub fn open(name: &GpuName) -> Result<Arc<GpuDevice>, Problem> {
    let found = match (found(), name) {
        (Ok(found), _) => found,
        (Err(_), GpuName::Called(name)) => return Err(Problem::Gone(name.clone())),
        (Err(problem), _) => return Err(problem),
    };
    let gpu = named(&found, name)?;
    let mut all = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|device| device.upgrade().is_some_and(|device| device.works()));
    if let Some(open) = all.iter().filter_map(Weak::upgrade).find(|device| device.label() == gpu.name()) {
        return Ok(open);
    }
    let opened = gpu.open().map_err(|reason| Problem::failed(Gpu::Any, reason))?;
    all.push(Arc::downgrade(&opened));
    Ok(opened)
}

fn named<'a>(found: &'a [Found], name: &GpuName) -> Result<&'a Found, Problem> {
    let index = match name {
        GpuName::First => 0,
        GpuName::Number(number) => number.get() - 1,
        GpuName::Called(name) => {
            return found.iter().find(|gpu| gpu.name() == name).ok_or_else(|| Problem::Gone(name.clone()));
        }
    };
    found.get(index).ok_or_else(|| Problem::NoSuchGpu {
        wanted: index + 1,
        found: found.iter().map(|gpu| gpu.name().to_owned()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_looked_for_if_a_driver_has_a_device_file() {
        let dev = tempfile::tempdir().unwrap();
        let dri = dev.path().join("dri");
        assert!(!has_node(dev.path()));
        std::fs::create_dir(&dri).unwrap();
        // A display node does not compute.
        std::fs::write(dri.join("card0"), "").unwrap();
        assert!(!has_node(dev.path()));
        std::fs::write(dri.join("renderD128"), "").unwrap();
        assert!(has_node(dev.path()));
        let dev = tempfile::tempdir().unwrap();
        std::fs::write(dev.path().join("nvidiactl"), "").unwrap();
        assert!(has_node(dev.path()));
    }
}
