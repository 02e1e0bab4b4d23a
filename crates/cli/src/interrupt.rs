//! Ctrl-C: the first one stops the reply or the download under way, which is then kept; without either,
//! or pressed again, it ends the program.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

const IDLE: u8 = 0;
const WORKING: u8 = 1;
const STOPPED: u8 = 2;

/// The exit code of a program ended by Ctrl-C, as shells know it.
pub const INTERRUPTED: u8 = 130;

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

    /// Waits until it is pressed; for the thread that listens.
    pub fn wait(&self) {
        self.begin();
        while !self.stopped() {
            thread::park();
        }
    }

    pub fn end(&self) {
        self.state.store(IDLE, Ordering::Relaxed);
    }

    /// Whether the reply or download under way is to stop.
    pub fn stopped(&self) -> bool {
        self.state.load(Ordering::Relaxed) == STOPPED
    }
}
