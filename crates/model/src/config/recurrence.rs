//! Recurrent layers, which keep a state instead of keys and values: their positions and sizes.

use std::path::Path;

use crate::error::{Error, Result};
use crate::family::RecurrentKind;

/// Largest kernel size of a convolution; its products are summed in one step.
const MOST_TAPS: usize = 16;

/// Granularity of a head's size in the kernels.
const HEAD_BLOCK: usize = 32;

/// Sizes of a model's recurrent layers, all of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Recurrence {
    pub kind: RecurrentKind,
    /// Kernel size of the convolution, the current row included: 2 to 16.
    pub taps: usize,
    /// Channels of the convolution.
    pub channels: usize,
    /// Heads with a matrix in the state; none in [`RecurrentKind::ShortConv`], which keeps inputs.
    pub heads: Heads,
    /// True if the convolution has a bias for each channel.
    pub biased: bool,
    /// Smallest and largest time step of [`RecurrentKind::Mamba`].
    pub steps: [f32; 2],
}

/// Heads with a state matrix `[key_size, value_size]` each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heads {
    /// Number of query and key heads.
    pub keys: usize,
    /// Number of value heads, one matrix each; a multiple of `keys`.
    pub values: usize,
    pub key_size: usize,
    pub value_size: usize,
    /// True if the value heads of one key head are adjacent, as in Hugging Face files; otherwise
    /// they are `keys` apart.
    pub grouped: bool,
}

impl Heads {
    /// Returns the key head of value head `value`.
    pub fn key_of(&self, value: usize) -> usize {
        if self.grouped { value / (self.values / self.keys) } else { value % self.keys }
    }

    /// Width of the keys of all heads.
    pub fn key_width(&self) -> usize {
        self.keys * self.key_size
    }

    /// Width of the values of all heads.
    pub fn value_width(&self) -> usize {
        self.values * self.value_size
    }
}

impl Recurrence {
    /// Sizes of layers with state matrices, without biases or limits of the time step.
    pub(super) fn of_heads(kind: RecurrentKind, taps: usize, heads: Heads) -> Self {
        let channels = 2 * heads.key_width() + heads.value_width();
        Self { kind, taps, channels, heads, biased: false, steps: [0.0, f32::INFINITY] }
    }

    /// Sizes of layers without state matrices.
    pub(super) fn of_channels(taps: usize, channels: usize) -> Self {
        Self { channels, ..Self::of_heads(RecurrentKind::ShortConv, taps, Heads::default()) }
    }

    /// Offset of the queries in a convolved row.
    pub fn queries(&self) -> usize {
        if self.kind == RecurrentKind::Mamba { self.heads.value_width() + self.heads.key_width() } else { 0 }
    }

    /// Offset of the keys in a convolved row.
    pub fn keys(&self) -> usize {
        if self.kind == RecurrentKind::Mamba { self.heads.value_width() } else { self.heads.key_width() }
    }

    /// Offset of the values in a convolved row.
    pub fn values(&self) -> usize {
        if self.kind == RecurrentKind::Mamba { 0 } else { 2 * self.heads.key_width() }
    }

    /// Size of a state: the previous inputs of the convolution, and the matrices.
    pub fn state(&self) -> usize {
        self.tail() + self.heads.values * self.heads.key_size * self.heads.value_size
    }

    /// Size of the previous inputs of the convolution, `[taps - 1, channels]`.
    pub fn tail(&self) -> usize {
        (self.taps - 1) * self.channels
    }

    /// Checks conditions between sizes that hold for every file format.
    pub(super) fn validated(self, path: &Path) -> Result<Self> {
        if !(2..=MOST_TAPS).contains(&self.taps) {
            let expected = format!("a convolution over 2 to {MOST_TAPS} rows");
            return Err(bad(path, expected, self.taps.to_string()));
        }
        let Heads { keys, values, key_size, value_size, .. } = self.heads;
        if self.kind == RecurrentKind::ShortConv {
            return Ok(self);
        }
        if keys == 0 || !values.is_multiple_of(keys) {
            let found = format!("{values} value heads and {keys} key heads");
            return Err(bad(
                path,
                "key heads of recurrent layers that divide their value heads".into(),
                found,
            ));
        }
        for found in [key_size, value_size] {
            if found == 0 || !found.is_multiple_of(HEAD_BLOCK) {
                let expected = format!("heads of recurrent layers of a multiple of {HEAD_BLOCK}");
                return Err(bad(path, expected, found.to_string()));
            }
        }
        let [least, most] = self.steps;
        if !(least >= 0.0 && least <= most) {
            let expected = "steps of recurrent layers between two limits that ascend";
            return Err(bad(path, expected.into(), format!("{least} and {most}")));
        }
        Ok(self)
    }
}

fn bad(path: &Path, expected: String, found: String) -> Error {
    Error::BadModel { path: path.to_owned(), expected, found, hint: "Choose another model." }
}
