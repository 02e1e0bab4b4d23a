//! GPUs of every make, for kernels of our own: which there are, and opening the one that was named. What opening one
//! takes is in `forward/gpu/opening.rs`.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::choice::{DeviceChoice, GpuName};
use super::gpu::{Gpu, SOFTWARE};
use super::problem::Problem;
use crate::forward::gpu::{Found, GpuDevice, find, unfound};

/// A GPU that may be faster than the CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// By its name.
    pub choice: DeviceChoice,
    /// "Vulkan, AMD Radeon 780M"
    pub name: String,
    pub driver: String,
}

/// The GPUs, the one that should be fastest first.
///
/// # Errors
/// `NoGpu`, `SoftwareOnly` or `Failed` where there is none.
pub fn candidates() -> Result<Vec<Candidate>, Problem> {
    let candidate = |found: &Found| {
        let name = found.name().to_owned();
        let choice = DeviceChoice::Gpu(GpuName::Called(name.clone()));
        Candidate { choice, name, driver: found.driver() }
    };
    Ok(found()?.iter().map(candidate).collect())
}

/// Whether it is worth looking for a GPU that nobody named. On Linux every driver of one has a file in `/dev`; looking
/// without one would load the drivers that are installed, which takes time, and some write on standard error.
pub fn may_be_here() -> bool {
    !cfg!(target_os = "linux") || plays_count() || has_node(Path::new("/dev"))
}

/// Whether there is the file of a driver among those in `dev`: any maker's, NVIDIA's own, Windows' for Linux within it,
/// and those of processors for phones.
fn has_node(dev: &Path) -> bool {
    let renders = || {
        let files = std::fs::read_dir(dev.join("dri")).into_iter().flatten().flatten();
        files.into_iter().any(|file| file.file_name().to_string_lossy().starts_with("renderD"))
    };
    renders() || ["nvidiactl", "dxg", "mali0", "kgsl-3d0"].iter().any(|node| dev.join(node).exists())
}

/// Whether programs that play a GPU count as one.
fn plays_count() -> bool {
    std::env::var_os(SOFTWARE).is_some_and(|value| value == "1")
}

/// At least one.
fn found() -> Result<Vec<Found>, Problem> {
    let (found, software) = find(plays_count());
    match (found.is_empty(), software.is_empty()) {
        (false, _) => Ok(found),
        (true, true) => Err(match std::env::var("WGPU_BACKEND") {
            Ok(named) => Problem::failed(Gpu::Any, unfound(&named)),
            Err(_) => Problem::NoGpu(Gpu::Any),
        }),
        (true, false) => Err(Problem::SoftwareOnly(software)),
    }
}

/// Those that are open: target and draft share one.
static OPEN: Mutex<Vec<Weak<GpuDevice>>> = Mutex::new(Vec::new());

/// The GPU of this name, opened unless it is open and works.
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
    fn a_gpu_is_worth_looking_for_where_a_driver_has_a_file() {
        let dev = tempfile::tempdir().unwrap();
        let dri = dev.path().join("dri");
        assert!(!has_node(dev.path()));
        std::fs::create_dir(&dri).unwrap();
        // It shows pictures, and computes nothing.
        std::fs::write(dri.join("card0"), "").unwrap();
        assert!(!has_node(dev.path()));
        std::fs::write(dri.join("renderD128"), "").unwrap();
        assert!(has_node(dev.path()));
        let dev = tempfile::tempdir().unwrap();
        std::fs::write(dev.path().join("nvidiactl"), "").unwrap();
        assert!(has_node(dev.path()));
    }
}
