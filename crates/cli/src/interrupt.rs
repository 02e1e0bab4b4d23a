//! Ctrl-C: the first one stops the reply under way, which is then kept; without a reply, or pressed
//! again, it ends the program.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const IDLE: u8 = 0;
const WRITING: u8 = 1;
const STOPPED: u8 = 2;

/// The exit code of a program ended by Ctrl-C, as shells know it.
const INTERRUPTED: i32 = 130;

#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    state: Arc<AtomicU8>,
}

impl Interrupt {
    /// Listens for Ctrl-C from now on. Called once.
    pub fn listen() -> Self {
        let interrupt = Self::default();
        let state = Arc::clone(&interrupt.state);
        let listening = ctrlc::set_handler(move || {
            let writing =
                state.compare_exchange(WRITING, STOPPED, Ordering::Relaxed, Ordering::Relaxed).is_ok();
            if !writing {
                process::exit(INTERRUPTED);
            }
        });
        if let Err(error) = listening {
            tracing::warn!(%error, "Ctrl-C will end the program instead of the reply");
        }
        interrupt
    }

    pub fn begin_reply(&self) {
        self.state.store(WRITING, Ordering::Relaxed);
    }

    pub fn end_reply(&self) {
        self.state.store(IDLE, Ordering::Relaxed);
    }

    /// Whether the reply under way is to stop.
    pub fn stopped(&self) -> bool {
        self.state.load(Ordering::Relaxed) == STOPPED
    }
}
