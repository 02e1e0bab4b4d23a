//! Heads of keys and values, and the format in which they are cached.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Upper bound of a head's size, far above real models. Tables with an entry per component are
/// allocated from what an untrusted file says.
pub(super) const MAX_HEAD_SIZE: usize = 1 << 13;

/// Largest size of a head whose keys and values can be in 8 bits.
pub const MAX_INT8_HEAD_SIZE: usize = 512;

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

    /// Returns whether keys and values can be in 8 bits.
    pub(super) fn fit_int8(&self) -> bool {
        self.size.is_multiple_of(4) && self.size <= MAX_INT8_HEAD_SIZE
    }
}

/// Format of cached keys and values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KvDtype {
    #[default]
    F16,
    /// 8-bit integers. The key and the value of each head have a scale of their own, in f16.
    Int8,
}

impl KvDtype {
    const NAMES: [(Self, &str); 2] = [(Self::F16, "f16"), (Self::Int8, "int8")];

    /// Bytes that a layer with `keys` caches per token.
    pub fn bytes(self, keys: KeyHeads) -> usize {
        match self {
            Self::F16 => keys.cached() * size_of::<u16>(),
            Self::Int8 => keys.cached() + 2 * keys.count * size_of::<u16>(),
        }
    }
}

impl fmt::Display for KvDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Self::NAMES.iter().filter(|(dtype, _)| dtype == self);
        names.map(|(_, name)| *name).try_for_each(|name| f.write_str(name))
    }
}

impl FromStr for KvDtype {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let named = Self::NAMES.iter().find(|(_, known)| *known == name);
        named.map(|(dtype, _)| *dtype).ok_or_else(|| Error::Setting {
            name: "KV cache dtype",
            expected: "f16 or int8",
            found: name.to_owned(),
        })
    }
}
