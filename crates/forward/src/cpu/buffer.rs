//! Buffers that several threads write to at once, each to a part of its own, and buffers that
//! several caches hold.

use std::cell::UnsafeCell;
use std::collections::TryReserveError;
use std::slice;
use std::sync::Arc;

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

impl<T> Buffer<T> {
    /// All numbers.
    ///
    /// # Safety
    /// Nothing may write to them while the slice lives.
    unsafe fn numbers(&self) -> &[T] {
        // SAFETY: an `UnsafeCell` has the layout of its content, and the caller excludes writes.
        unsafe { slice::from_raw_parts(self.cells.as_ptr().cast(), self.cells.len()) }
    }
}

impl<T> From<Vec<T>> for SharedBuffer<T> {
    fn from(numbers: Vec<T>) -> Self {
        Self(Arc::new(Buffer { cells: numbers.into_iter().map(UnsafeCell::new).collect() }))
    }
}

/// Buffer that several caches may hold. It is written only by a cache that [owns](Self::try_own)
/// it.
#[derive(Debug, Default, Clone)]
pub struct SharedBuffer<T>(Arc<Buffer<T>>);

impl<T: Copy + Default> SharedBuffer<T> {
    /// Allocates `length` zeros.
    ///
    /// # Errors
    /// Fails if the system cannot allocate.
    pub fn try_zeros(length: usize) -> Result<Self, TryReserveError> {
        let mut buffer = Buffer::default();
        buffer.try_reserve(length)?;
        Ok(Self(Arc::new(buffer)))
    }

    pub fn len(&self) -> usize {
        self.0.cells.len()
    }

    /// Pointer as that of [`Buffer::at`]. Only the owner may write through it.
    pub fn at(&self, index: usize) -> *mut T {
        self.0.at(index)
    }

    /// Returns true if another cache holds the buffer.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Address that tells shared buffers from others.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// All numbers.
    pub fn numbers(&mut self) -> &[T] {
        // SAFETY: only the one owner of a buffer writes to it, and here that owner is borrowed.
        unsafe { self.0.numbers() }
    }

    /// Replaces a shared buffer by one of this cache alone: a copy, or zeros without `content`.
    ///
    /// # Errors
    /// Fails if the system cannot allocate; the buffer stays shared.
    pub fn try_own(&mut self, content: bool) -> Result<(), TryReserveError> {
        if Arc::get_mut(&mut self.0).is_some() {
            return Ok(());
        }
        let mut own = Self::try_zeros(self.len())?;
        if let Some(buffer) = Arc::get_mut(&mut own.0).filter(|_| content) {
            // SAFETY: a buffer is written by its only owner, and this one has several.
            let shared = unsafe { self.0.numbers() };
            buffer.cells.iter_mut().zip(shared).for_each(|(cell, &number)| *cell.get_mut() = number);
        }
        *self = own;
        Ok(())
    }
}
