//! Ctrl-C: the first press stops the current reply or download and keeps what is done so far. A
//! second press, or one while nothing is running, ends the program.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

const IDLE: u8 = 0;
const WORKING: u8 = 1;
const STOPPED: u8 = 2;

/// Exit code of a program ended by Ctrl-C, by the convention of shells.
pub const INTERRUPTED: u8 = 130;

/// Interval at which the end of other work is noticed.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    state: Arc<AtomicU8>,
}

impl Interrupt {
    /// Listens for Ctrl-C from now on. Called once.
    pub fn listen() -> Self {
        let interrupt = Self::default();
        let state = Arc::clone(&interrupt.state);
        let listener = thread::current();
        let listening = ctrlc::set_handler(move || {
            let working =
                state.compare_exchange(WORKING, STOPPED, Ordering::Relaxed, Ordering::Relaxed).is_ok();
            if !working {
                process::exit(INTERRUPTED.into());
            }
            listener.unpark();
        });
        if let Err(error) = listening {
            tracing::warn!(%error, "Ctrl-C will end the program instead of the reply");
        }
        interrupt
    }

    pub fn begin(&self) {
        self.state.store(WORKING, Ordering::Relaxed);
    }

    /// Blocks until Ctrl-C is pressed or `ended` returns `true`; for the thread that handles it.
    pub fn wait_unless(&self, ended: impl Fn() -> bool) {
        self.begin();
        while !self.stopped() && !ended() {
            thread::park_timeout(CHECK_INTERVAL);
        }
    }

    pub fn end(&self) {
        self.state.store(IDLE, Ordering::Relaxed);
    }

    /// Returns whether the current reply or download should stop.
    pub fn stopped(&self) -> bool {
        self.state.load(Ordering::Relaxed) == STOPPED
    }
}
