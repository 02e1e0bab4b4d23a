//! How fast this computer reads memory: the bound on how fast a model that fills it can write.

use std::thread;
use std::time::Instant;

use super::median;

/// Much more than any cache holds.
const BYTES: usize = 1 << 29;

/// The first pass is for warming up.
const PASSES: usize = 6;

/// Gigabytes (10^9 bytes) per second, read by all threads together.
///
/// Comparing two halves reads both at the speed of the C library, however this program was built.
pub fn read(threads: usize) -> f64 {
    // Not zeros: untouched zero pages all share the same memory.
    let half = vec![1u8; BYTES / 2];
    let other = half.clone();
    let share = half.len().div_ceil(threads);
    let pass = |_| {
        let start = Instant::now();
        let equal = thread::scope(|scope| {
            let compare = |(ours, theirs)| scope.spawn(move || ours == theirs);
            let workers: Vec<_> = half.chunks(share).zip(other.chunks(share)).map(compare).collect();
            workers.into_iter().all(|worker| worker.join().unwrap_or(false))
        });
        assert!(equal, "memory that was not written to has changed");
        BYTES as f64 / start.elapsed().as_secs_f64() / 1e9
    };
    median((0..PASSES).map(pass).skip(1).collect()).unwrap_or(0.0)
}
