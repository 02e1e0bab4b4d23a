//! Which threads the small operations of a pass run on. The matrix products have candle's own team
//! of threads; for everything between them, waking others costs more than it saves.

use std::sync::OnceLock;

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::device;

/// Runs `pass` so that what it would share among threads, candle's element-wise operations, stays
/// on one.
pub fn on_one_thread<T: Send>(pass: impl FnOnce() -> T + Send) -> T {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    within(&POOL, 1, pass)
}

/// Runs `work` so that what it shares is shared among all threads.
pub fn on_all_threads<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    within(&POOL, device::threads(), work)
}

/// A system that has no thread to give gets the work done all the same.
fn within<T: Send>(
    pool: &OnceLock<Option<ThreadPool>>,
    threads: usize,
    work: impl FnOnce() -> T + Send,
) -> T {
    let pool = pool.get_or_init(|| ThreadPoolBuilder::new().num_threads(threads).build().ok());
    match pool {
        Some(pool) => pool.install(work),
        None => work(),
    }
}
