//! Allocator of programs that start themselves as child processes: the system's, with a limit that
//! the child process sets for itself.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Exit code of a process that exceeded its limit.
pub(super) const OUT_OF_MEMORY: i32 = 86;

/// Limit in bytes, on top of allocations at the time it was first set; 0 for none.
static BOUND: AtomicUsize = AtomicUsize::new(0);

/// Bytes allocated minus bytes freed since the limit was first set; wraps below zero.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator with an optional limit. Exceeding the limit ends the process; without
/// one, an allocation costs a read of a variable that never changes.
pub struct Bounded;

/// Limits the memory of this process from now on. Returns whether [`Bounded`] is its allocator.
pub(super) fn bound(bytes: usize) -> bool {
    BOUND.store(bytes, Ordering::Relaxed);
    let before = HELD.load(Ordering::Relaxed);
    let probe = std::hint::black_box(Vec::<u8>::with_capacity(1));
    let bounded = HELD.load(Ordering::Relaxed) != before;
    drop(probe);
    bounded
}

fn take(bytes: usize) {
    let bound = BOUND.load(Ordering::Relaxed);
    if bound == 0 {
        return;
    }
    let before = HELD.fetch_add(bytes, Ordering::Relaxed) as isize;
    // A layout has at most isize::MAX bytes.
    if before.saturating_add(bytes as isize) > bound as isize {
        std::process::exit(OUT_OF_MEMORY);
    }
}

fn give(bytes: usize) {
    if BOUND.load(Ordering::Relaxed) != 0 {
        HELD.fetch_sub(bytes, Ordering::Relaxed);
    }
}

// SAFETY: every call is forwarded unchanged to the system's allocator. Counting neither allocates
// nor unwinds; if the limit is exceeded, the call does not return.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller upholds what the system's allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        give(layout.size());
        // SAFETY: as above; all memory comes from the system's allocator.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > layout.size() {
            take(size - layout.size());
        } else {
            give(layout.size() - size);
        }
        // SAFETY: as above; all memory comes from the system's allocator.
        unsafe { System.realloc(place, layout, size) }
    }
}
