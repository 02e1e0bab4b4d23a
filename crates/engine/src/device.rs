//! The device a model runs on, what to call it, and how many threads compute.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use candle_core::Device;

use crate::forward::cpu::Isa;

/// The device for new models.
pub fn default_device() -> Device {
    Device::Cpu
}

/// "CPU, 8 threads, AVX-512".
pub fn label(device: &Device) -> String {
    match device {
        Device::Cpu => {
            let threads = match threads() {
                1 => "1 thread".to_owned(),
                threads => format!("{threads} threads"),
            };
            Isa::choose().map_or_else(|_| format!("CPU, {threads}"), |isa| format!("CPU, {threads}, {isa}"))
        }
        Device::Cuda(_) => "CUDA".to_owned(),
        Device::Metal(_) => "Metal".to_owned(),
    }
}

/// 0: nobody said.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Makes models loaded from now on compute on so many threads.
pub fn use_threads(threads: NonZeroUsize) {
    THREADS.store(threads.get(), Ordering::Relaxed);
}

/// Threads that compute: what was asked for, or one for each core.
pub fn threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => candle_core::utils::get_num_threads(),
        asked => asked,
    }
}
