//! Number of CPU threads, and the CPU's label.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::available_parallelism;

use super::label::{DeviceFact, DeviceLabel};
use crate::cpu::Isa;

/// Configured thread limit; 0 if none is set.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Limits the threads of models that are loaded from now on.
pub fn use_threads(threads: NonZeroUsize) {
    THREADS.store(threads.get(), Ordering::Relaxed);
}

/// Largest number of compute threads: the configured limit, or one per core that this process may
/// use.
pub fn threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => {
            let cores = candle_core::utils::get_num_threads();
            available_parallelism().map_or(cores, |allowed| cores.min(allowed.get()))
        }
        asked => asked,
    }
}

static STEADY: AtomicBool = AtomicBool::new(false);

/// Disables adaptive thread counts for models loaded from now on, so that thread counts can be
/// compared: all threads compute, even when other programs need the cores.
pub fn use_threads_steadily() {
    STEADY.store(true, Ordering::Relaxed);
}

/// Returns whether the engine drops threads for a while that other programs delay.
pub(crate) fn adapts() -> bool {
    !STEADY.load(Ordering::Relaxed)
}

/// Label such as "CPU, 8 threads, AVX-512".
pub(super) fn cpu_label() -> DeviceLabel {
    let instructions = Isa::choose().ok().map(|isa| match isa {
        Isa::Scalar => DeviceFact::PlainInstructions,
        isa => DeviceFact::Instructions { name: isa.to_string() },
    });
    let threads = DeviceFact::Threads { count: threads() as u32 };
    let facts = [Some(threads), instructions].into_iter().flatten().collect();
    DeviceLabel { facts, ..DeviceLabel::named("CPU") }
}
