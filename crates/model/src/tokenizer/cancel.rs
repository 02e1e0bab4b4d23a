//! Encoding and building of tokenizers that can be stopped: on a thread of its own, which checks a
//! flag after each word.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};

/// Interval at which a caller's wish to stop is checked.
const INTERVAL: Duration = Duration::from_millis(20);

/// Stack size in bytes, as large as that of a main thread.
const STACK: usize = 8 << 20;

/// Reason of an encoding that was stopped; callers see `Error::Cancelled`.
pub(super) const CANCELLED: &str = "it was stopped";

thread_local! {
    static FLAG: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Runs `work` on a thread of its own until it is done or `stop` returns `true`. Encoding then ends
/// after the current word. A single word of megabytes, and the building of a tokenizer, end by
/// themselves within seconds; nobody waits for them.
///
/// # Errors
/// Errors of `work`; `Error::Cancelled`; `Error::Compute` if no thread can be started.
pub fn unless_stopped<T: Send + 'static>(
    stop: &dyn Fn() -> bool,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    if stop() {
        return Err(Error::Cancelled);
    }
    let flag = Arc::new(AtomicBool::new(false));
    let (sender, done) = mpsc::channel();
    let mine = Arc::clone(&flag);
    let run = move || {
        FLAG.set(Some(mine));
        // The receiver may be dropped; send errors are ignored.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    };
    let started = thread::Builder::new().name("tokenizer".to_owned()).stack_size(STACK).spawn(run);
    started.map_err(candle_core::Error::from)?;
    loop {
        match done.recv_timeout(INTERVAL) {
            Ok(Ok(outcome)) => return outcome,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(RecvTimeoutError::Timeout) if !stop() => {}
            Err(_) => {
                flag.store(true, Ordering::Relaxed);
                return Err(Error::Cancelled);
            }
        }
    }
}

/// Returns whether the work of this thread was stopped.
pub(super) fn is_cancelled() -> bool {
    FLAG.with_borrow(|flag| flag.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn work_that_is_stopped_is_not_waited_for_and_sees_the_flag() {
        let (sender, ended) = mpsc::channel();
        let begun = Instant::now();
        let endless = move || -> Result<()> {
            while !is_cancelled() {
                thread::yield_now();
            }
            let _ = sender.send(());
            Ok(())
        };
        let stopped = unless_stopped(&|| begun.elapsed() > Duration::from_millis(50), endless);
        assert!(matches!(stopped, Err(Error::Cancelled)));
        ended.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(!is_cancelled());
        assert_eq!(unless_stopped(&|| false, || Ok(7)).unwrap(), 7);
    }

    #[test]
    fn a_panic_of_the_work_is_the_callers() {
        let panicked =
            catch_unwind(|| unless_stopped(&|| false, || -> Result<()> { panic!("a made-up failure") }));
        assert!(panicked.is_err());
    }
}
