//! Coverage of our own crates: counters of executed edges that the compiler inserts on request
//! (`scripts/with-counters.sh`). Without them no input counts as new, and mutations start from the
//! seeds only.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

static START: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);

/// Callback of the inserted code, called before `main` and with the same range each time.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, end: *mut u8) {
    START.store(start as usize, Ordering::Relaxed);
    END.store(end as usize, Ordering::Relaxed);
}

/// Coverage so far: for each counter, the magnitudes it has had, one bit each.
pub struct Coverage {
    counters: &'static [AtomicU8],
    seen: Vec<u8>,
}

impl Coverage {
    pub fn new() -> Self {
        let (start, end) = (START.load(Ordering::Relaxed), END.load(Ordering::Relaxed));
        let counters = match end - start {
            0 => &[],
            // SAFETY: START to END are the program's own counters, one byte each, valid as long as
            // it runs. The inserted instructions increment them without synchronisation, so a count
            // may be lost.
            count => unsafe { std::slice::from_raw_parts(start as *const AtomicU8, count) },
        };
        Self { counters, seen: vec![0; counters.len()] }
    }

    /// Returns the number of edges; 0 without counters.
    pub fn edges(&self) -> usize {
        self.seen.len()
    }

    /// Returns the number of edges executed so far.
    pub fn taken(&self) -> usize {
        self.seen.iter().filter(|seen| **seen != 0).count()
    }

    /// Returns whether the last execution reached new coverage, and resets the counters.
    pub fn is_new(&mut self) -> bool {
        // SAFETY: eight aligned counters are read as one number; every bit pattern is valid.
        let (before, many, after) = unsafe { self.counters.align_to::<AtomicU64>() };
        let mut new = false;
        for at in 0..before.len() {
            new |= self.note(at);
        }
        // Most counters are zero, so eight are skipped at once.
        for (number, eight) in many.iter().enumerate() {
            if eight.load(Ordering::Relaxed) != 0 {
                let at = before.len() + 8 * number;
                for at in at..at + 8 {
                    new |= self.note(at);
                }
            }
        }
        for at in self.seen.len() - after.len()..self.seen.len() {
            new |= self.note(at);
        }
        new
    }

    /// Records a counter and resets it.
    fn note(&mut self, at: usize) -> bool {
        let count = self.counters[at].load(Ordering::Relaxed);
        if count == 0 {
            return false;
        }
        self.counters[at].store(0, Ordering::Relaxed);
        let magnitude = 1 << (u8::BITS - 1 - count.leading_zeros());
        let new = self.seen[at] & magnitude == 0;
        self.seen[at] |= magnitude;
        new
    }
}

impl Default for Coverage {
    fn default() -> Self {
        Self::new()
    }
}
