//! Heads of keys and values.

/// Upper bound of a head's size, far above real models. Tables with an entry per component are
/// allocated from what an untrusted file says.
pub(super) const MAX_HEAD_SIZE: usize = 1 << 13;

/// Key-value heads of one kind of attention.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyHeads {
    /// Number of heads; divides the number of query heads.
    pub count: usize,
    /// Size of a head, even; the same as a query head's.
    pub size: usize,
    /// True if values are the keys before norm and rotation, so that there is no value matrix.
    pub are_values: bool,
    /// Size of the prefix of each cached key that serves as its value (latent attention).
    pub hold_values: Option<usize>,
}

impl KeyHeads {
    /// Cached numbers per token: keys and values.
    pub fn cached(&self) -> usize {
        let halves = if self.hold_values.is_some() { 1 } else { 2 };
        halves * self.count * self.size
    }

    /// Size of a value.
    pub fn value_size(&self) -> usize {
        self.hold_values.unwrap_or(self.size)
    }
}
