//! Buffers of weights, a megabyte each for a large vocabulary. Freed ones are used again by the
//! same thread, because new memory costs more than the sums over it.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Maximum number of free buffers per thread: the rows of a long draft and of its verification.
const MAX_FREE: usize = 16;

thread_local! {
    static FREE: RefCell<Vec<Vec<f64>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer of weights.
#[derive(Debug)]
pub struct Buffer(Vec<f64>);

impl Buffer {
    /// Buffer with `length` weights of any value.
    pub fn of_length(length: usize) -> Self {
        let mut buffer = Self::any();
        buffer.0.resize(length, 0.0);
        buffer
    }

    /// Buffer with any number of weights of any value.
    pub fn any() -> Self {
        Self(FREE.with_borrow_mut(Vec::pop).unwrap_or_default())
    }

    pub fn as_vec(&mut self) -> &mut Vec<f64> {
        &mut self.0
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.0);
        // A thread that ends may have dropped the list.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < MAX_FREE {
                free.push(buffer);
            }
        });
    }
}

impl Deref for Buffer {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.0
    }
}
