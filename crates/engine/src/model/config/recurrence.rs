//! Layers that keep a state of the text in place of keys and values: which these are, and how large it is.

use std::path::Path;

use crate::error::{Error, Result};
use crate::model::family::Mixer;

/// The most rows of any convolution: their products are added up in one go.
const MOST_TAPS: usize = 16;

/// Numbers of a head that are computed at once.
const HEAD_BLOCK: usize = 32;

/// The sizes of a model's recurrent layers, which are all of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Recurrence {
    pub mixer: Mixer,
    /// Rows that a convolution sees, the row itself among them: 2 to 16.
    pub taps: usize,
    /// Numbers of a row that are convolved.
    pub channels: usize,
    /// Heads that have a matrix in the state; none in [`Mixer::ShortConv`], whose state is what was convolved last.
    pub heads: Heads,
    /// A number of each channel is added to what is convolved.
    pub biased: bool,
    /// Between which steps of [`Mixer::Mamba`] lie.
    pub steps: [f32; 2],
}

/// Heads with a matrix each, `[key_size, value_size]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heads {
    /// Heads of queries and keys.
    pub keys: usize,
    /// Heads of values, each with a matrix; a multiple of `keys`.
    pub values: usize,
    pub key_size: usize,
    pub value_size: usize,
    /// The value heads of a key head follow each other, as in Hugging Face files; otherwise they are `keys` apart.
    pub grouped: bool,
}

impl Heads {
    /// The key head of a value head.
    pub fn key_of(&self, value: usize) -> usize {
        if self.grouped { value / (self.values / self.keys) } else { value % self.keys }
    }

    /// Numbers of the keys of all heads.
    pub fn key_width(&self) -> usize {
        self.keys * self.key_size
    }

    /// Numbers of the values of all heads.
    pub fn value_width(&self) -> usize {
        self.values * self.value_size
    }
}

impl Recurrence {
    /// With matrices, without biases or limits.
    pub(super) fn of_heads(mixer: Mixer, taps: usize, heads: Heads) -> Self {
        let channels = 2 * heads.key_width() + heads.value_width();
        Self { mixer, taps, channels, heads, biased: false, steps: [0.0, f32::INFINITY] }
    }

    /// Without matrices.
    pub(super) fn of_channels(taps: usize, channels: usize) -> Self {
        Self { channels, ..Self::of_heads(Mixer::ShortConv, taps, Heads::default()) }
    }

    /// The first of a row's convolved numbers that is of a query.
    pub fn queries(&self) -> usize {
        if self.mixer == Mixer::Mamba { self.heads.value_width() + self.heads.key_width() } else { 0 }
    }

    /// The same of a key.
    pub fn keys(&self) -> usize {
        if self.mixer == Mixer::Mamba { self.heads.value_width() } else { self.heads.key_width() }
    }

    /// The same of a value.
    pub fn values(&self) -> usize {
        if self.mixer == Mixer::Mamba { 0 } else { 2 * self.heads.key_width() }
    }

    /// Numbers of a state: the rows before that a convolution sees, and the matrices.
    pub fn state(&self) -> usize {
        self.tail() + self.heads.values * self.heads.key_size * self.heads.value_size
    }

    /// Numbers of a state that are rows before: `[taps - 1, channels]`.
    pub fn tail(&self) -> usize {
        (self.taps - 1) * self.channels
    }

    /// What has to hold between the numbers.
    pub(super) fn validated(self, path: &Path) -> Result<Self> {
        if !(2..=MOST_TAPS).contains(&self.taps) {
            let expected = format!("a convolution over 2 to {MOST_TAPS} rows");
            return Err(bad(path, expected, self.taps.to_string()));
        }
        let Heads { keys, values, key_size, value_size, .. } = self.heads;
        if self.mixer == Mixer::ShortConv {
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

/// The mixer of every layer, of which `recurrent` says whether it is one of the kind `mixer`.
///
/// # Errors
/// `Error::BadModel` where all of them are, or none is.
pub(super) fn mixers(path: &Path, mixer: Mixer, recurrent: &[bool]) -> Result<Vec<Mixer>> {
    if mixer != Mixer::Attention && recurrent.iter().all(|&recurrent| recurrent) {
        return Err(bad(path, "attention in some of the layers".into(), "recurrent layers alone".into()));
    }
    Ok(recurrent.iter().map(|&recurrent| if recurrent { mixer } else { Mixer::Attention }).collect())
}

fn bad(path: &Path, expected: String, found: String) -> Error {
    Error::BadModel { path: path.to_owned(), expected, found, hint: "Choose another model." }
}
