//! Memory that several threads write to at once, each to its own part.

use std::cell::UnsafeCell;
use std::collections::TryReserveError;

/// Numbers behind raw pointers; who may touch which, and when, is for the phases of a pass to keep.
#[derive(Debug, Default)]
pub struct Buffer<T> {
    cells: Vec<UnsafeCell<T>>,
}

// SAFETY: threads get at the numbers through `at` alone, whose callers promise not to collide.
unsafe impl<T: Send> Sync for Buffer<T> {}

impl<T: Copy + Default> Buffer<T> {
    /// Makes room for at least `length` numbers; what was in it may be lost.
    pub fn reserve(&mut self, length: usize) {
        if self.cells.len() < length {
            self.cells.clear();
            self.cells.resize_with(length, UnsafeCell::default);
        }
    }

    /// The same, where the system may have none to give.
    ///
    /// # Errors
    /// When it has none; what was there stays.
    pub fn try_reserve(&mut self, length: usize) -> Result<(), TryReserveError> {
        self.cells.try_reserve_exact(length.saturating_sub(self.cells.len()))?;
        self.reserve(length);
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// The number at `index` and those after it. Reading or writing through the pointer needs that
    /// nobody else writes, or reads what is written, at the same time.
    pub fn at(&self, index: usize) -> *mut T {
        debug_assert!(index <= self.cells.len(), "{index} is outside a buffer of {}", self.cells.len());
        UnsafeCell::raw_get(self.cells.as_ptr().wrapping_add(index))
    }
}
