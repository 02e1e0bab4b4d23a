//! The allocator of a program that renders strangers' templates: the system's, with a bound that the process which
//! renders sets on itself.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The exit code of a process that asked for more than its bound.
pub(super) const OUT_OF_MEMORY: i32 = 86;

/// Bytes that may be allocated beside those at the time the bound was set; 0 for no bound.
static BOUND: AtomicUsize = AtomicUsize::new(0);

/// Bytes allocated since then less those freed; below zero, it wraps, where more were freed.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator. In a process that set itself a bound, an allocation beyond it ends the process; in all
/// others it costs a look at a variable that never changes.
pub struct Bounded;

/// Bounds what this process may allocate from now on. Returns whether [`Bounded`] is what it allocates by.
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
    // A layout has no more bytes than an isize.
    if before.saturating_add(bytes as isize) > bound as isize {
        std::process::exit(OUT_OF_MEMORY);
    }
}

fn give(bytes: usize) {
    if BOUND.load(Ordering::Relaxed) != 0 {
        HELD.fetch_sub(bytes, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on as it is to the system's allocator. Counting neither allocates nor unwinds; where
// the bound is passed, nothing is returned at all.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller's promises are those that the system's allocator asks for.
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
