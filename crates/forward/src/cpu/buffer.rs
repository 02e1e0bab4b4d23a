//! Buffers that several threads write to at once, each to a part of its own.

use std::cell::UnsafeCell;
use std::collections::TryReserveError;

/// Numbers behind raw pointers. The phases of a pass guarantee that accesses do not overlap.
#[derive(Debug, Default)]
pub struct Buffer<T> {
    cells: Vec<UnsafeCell<T>>,
}

// SAFETY: numbers are accessed through `at` alone, whose callers guarantee that they do not race.
unsafe impl<T: Send> Sync for Buffer<T> {}

impl<T: Copy + Default> Buffer<T> {
    /// Grows to at least `length` numbers; the contents may be lost.
    pub fn reserve(&mut self, length: usize) {
        if self.cells.len() < length {
            self.cells.clear();
            self.cells.resize_with(length, UnsafeCell::default);
        }
    }

    /// Grows as [`Self::reserve`] does, where memory may be short.
    ///
    /// # Errors
    /// Fails if the system cannot allocate; the contents stay.
    pub fn try_reserve(&mut self, length: usize) -> Result<(), TryReserveError> {
        self.cells.try_reserve_exact(length.saturating_sub(self.cells.len()))?;
        self.reserve(length);
        Ok(())
    }

    /// Pointer to the number at `index` and those after it. Accesses through the pointer must not
    /// race with writes of other threads.
    pub fn at(&self, index: usize) -> *mut T {
        debug_assert!(index <= self.cells.len(), "{index} is outside a buffer of {}", self.cells.len());
        UnsafeCell::raw_get(self.cells.as_ptr().wrapping_add(index))
    }
}
