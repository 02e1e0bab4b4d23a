//! The heads of keys and values.

/// No real model has heads nearly as large: a table with an entry for each component is made of what a file says.
pub(super) const MAX_HEAD_SIZE: usize = 1 << 13;

/// The heads of keys and values of a kind of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHeads {
    /// Divides how many heads of queries there are.
    pub count: usize,
    /// Numbers of a head, as many as a query's has. Even.
    pub size: usize,
    /// Values are what keys are before they are normed and turned.
    pub are_values: bool,
    /// Values are the first so many numbers of the keys, as these are cached.
    pub hold_values: Option<usize>,
}

impl KeyHeads {
    /// Numbers of a token's keys and values.
    pub fn cached(&self) -> usize {
        let halves = if self.hold_values.is_some() { 1 } else { 2 };
        halves * self.count * self.size
    }

    /// Numbers of a value.
    pub fn value_size(&self) -> usize {
        self.hold_values.unwrap_or(self.size)
    }
}
