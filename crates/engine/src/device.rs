//! The device a model runs on, and what to call it.

pub use candle_core::Device;

/// The device for new models.
pub fn default_device() -> Device {
    Device::Cpu
}

/// "CPU, 8 threads".
pub fn label(device: &Device) -> String {
    let name = match device {
        Device::Cpu => "CPU",
        Device::Cuda(_) => "CUDA",
        Device::Metal(_) => "Metal",
    };
    match (device, threads()) {
        (Device::Cpu, 1) => format!("{name}, 1 thread"),
        (Device::Cpu, threads) => format!("{name}, {threads} threads"),
        _ => name.to_owned(),
    }
}

/// Threads the CPU's arithmetic uses.
pub fn threads() -> usize {
    candle_core::utils::get_num_threads()
}
