//! The threads that compute on the CPU, and what it is called.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::available_parallelism;

use crate::forward::cpu::Isa;

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

/// "CPU, 8 threads, AVX-512"
pub(super) fn cpu_label() -> String {
    let threads = match threads() {
        1 => "1 thread".to_owned(),
        threads => format!("{threads} threads"),
    };
    Isa::choose().map_or_else(|_| format!("CPU, {threads}"), |isa| format!("CPU, {threads}, {isa}"))
}
