//! Which edges of our own crates an execution took, and how often: counters that the compiler puts in when it is
//! asked to (`scripts/with-counters.sh`). Without them every execution looks like the last, and damage is drawn
//! from the whole files alone.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

static START: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);

/// Called by what the compiler puts in, before `main` and with the same place each time.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, end: *mut u8) {
    START.store(start as usize, Ordering::Relaxed);
    END.store(end as usize, Ordering::Relaxed);
}

/// What was seen so far: for each counter, the magnitudes it has had, one bit each.
pub struct Coverage {
    counters: &'static [AtomicU8],
    seen: Vec<u8>,
}

impl Coverage {
    pub fn new() -> Self {
        let (start, end) = (START.load(Ordering::Relaxed), END.load(Ordering::Relaxed));
        let counters = match end - start {
            0 => &[],
            // SAFETY: between START and END are the program's own counters, a byte each, for as long as it runs.
            // What counts in them are instructions that are no Rust; a count may be lost beside them, and no more.
            count => unsafe { std::slice::from_raw_parts(start as *const AtomicU8, count) },
        };
        Self { counters, seen: vec![0; counters.len()] }
    }

    /// Edges there are; 0 without counters.
    pub fn edges(&self) -> usize {
        self.seen.len()
    }

    /// Edges that were taken so far.
    pub fn taken(&self) -> usize {
        self.seen.iter().filter(|seen| **seen != 0).count()
    }

    /// Whether something happened since the last call that never had, and sets the counters to zero.
    pub fn is_new(&mut self) -> bool {
        // SAFETY: an aligned run of eight counters is looked at as one number; any bits are one.
        let (before, many, after) = unsafe { self.counters.align_to::<AtomicU64>() };
        let mut new = false;
        for at in 0..before.len() {
            new |= self.note(at);
        }
        // Nearly all are zero: eight are passed over at once.
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

    /// Takes note of a counter and sets it to zero.
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
