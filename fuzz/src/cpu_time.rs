//! Processor time of a thread: other programs on a busy computer do not count.

use std::time::Duration;

/// Returns the processor time of `run` in this thread.
#[cfg(unix)]
pub fn cpu_time_of<T>(run: impl FnOnce() -> T) -> (Duration, T) {
    use rustix::time::{ClockId, clock_gettime};
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
    };
    let before = now();
    let result = run();
    (now().saturating_sub(before), result)
}

/// Returns the time of `run`, since this system is asked for no processor time.
#[cfg(not(unix))]
pub fn cpu_time_of<T>(run: impl FnOnce() -> T) -> (Duration, T) {
    let before = std::time::Instant::now();
    let result = run();
    (before.elapsed(), result)
}
