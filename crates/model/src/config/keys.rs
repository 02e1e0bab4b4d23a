//! Settings of a model under GGUF's key names, whichever file format they come from.

use std::path::Path;

use super::{bad, size};
use crate::error::{Error, Result};
use crate::family::Family;

/// Source of settings: a GGUF header, or a config.json whose keys were renamed. Keys are GGUF's,
/// without the prefix of the architecture. Two groups have no name in GGUF files, which say the
/// same by their tensors: `expert_selection_bias`, `ssm.conv_bias`, `attention.values_are_keys` and
/// the lists of rotary divisors.
pub(super) trait Source {
    fn path(&self) -> &Path;

    /// Returns true for the conventions of GGUF files: 0 for a number that is not set, and the
    /// order in which llama.cpp's converter stores rotated components and recurrent heads.
    fn is_gguf(&self) -> bool;

    /// Returns the name of `key` in this file, for messages.
    fn name(&self, key: &str) -> String;

    fn integer(&self, key: &str) -> Result<Option<u64>>;

    fn number(&self, key: &str) -> Result<Option<f64>>;

    fn boolean(&self, key: &str) -> Result<Option<bool>>;

    fn text(&self, key: &str) -> Result<Option<&str>>;

    /// Returns the list in `key`; `None` if the key is missing or has a single value.
    fn list(&self, key: &str) -> Result<Option<List>>;
}

/// A list of settings.
pub(super) enum List {
    Booleans(Vec<bool>),
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
    /// A list of something else.
    Other,
}

impl List {
    /// Returns the booleans of a list with one for each of `layers` layers.
    pub fn flags(self, layers: usize) -> Option<Vec<bool>> {
        match self {
            Self::Booleans(flags) => Some(flags).filter(|flags| flags.len() == layers),
            _ => None,
        }
    }
}

/// Typed access to the settings of one family.
#[derive(Clone, Copy)]
pub(super) struct Keys<'a> {
    pub family: &'static Family,
    pub source: &'a dyn Source,
}

impl Keys<'_> {
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    pub fn name(&self, key: &str) -> String {
        self.source.name(key)
    }

    pub fn bad(&self, expected: String, found: String) -> Error {
        bad(self.path(), expected, found)
    }

    pub fn integer(&self, key: &str) -> Result<Option<u64>> {
        self.source.integer(key)
    }

    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        self.source.number(key)
    }

    pub fn boolean(&self, key: &str) -> Result<Option<bool>> {
        self.source.boolean(key)
    }

    /// Returns a factor; `None` if it is missing, or 0 in a GGUF file.
    pub fn factor(&self, key: &str) -> Result<Option<f64>> {
        Ok(self.number(key)?.filter(|&number| number != 0.0 || !self.source.is_gguf()))
    }

    /// Returns the size in a required key.
    pub fn size(&self, key: &str) -> Result<usize> {
        self.size_or(key, 0)
    }

    /// Returns the size in a key, or `default` if the key is missing; a `default` of 0 makes the
    /// key required.
    pub fn size_or(&self, key: &str, default: usize) -> Result<usize> {
        let found = self.integer(key)?;
        size(self.path(), &self.name(key), found.unwrap_or(default as u64))
    }

    /// Returns the size in a key; `None` if it is missing or 0.
    pub fn optional_size(&self, key: &str) -> Result<Option<usize>> {
        let found = self.integer(key)?.filter(|&found| found > 0);
        found.map(|found| size(self.path(), &self.name(key), found)).transpose()
    }

    /// Returns a size for each layer, from a key with a list or with one value for all layers. A
    /// `default` of 0 makes the key required.
    pub fn each(&self, key: &str, layers: usize, default: usize) -> Result<Vec<usize>> {
        let name = self.name(key);
        let listed = match self.source.list(key)? {
            None => return Ok(vec![self.size_or(key, default)?; layers]),
            Some(List::Integers(listed)) if listed.len() == layers => listed,
            Some(_) => {
                return Err(
                    self.bad(format!("a number for each of {layers} layers in {name}"), "others".into())
                );
            }
        };
        let size = |found: i64| size(self.path(), &name, u64::try_from(found).unwrap_or_default());
        listed.into_iter().map(size).collect()
    }

    /// Rejects a key whose value is neither missing nor the head size.
    pub fn must_equal(&self, key: &str, head_size: usize) -> Result<()> {
        match self.integer(key)? {
            Some(found) if found != head_size as u64 => {
                let expected = format!("{} equal to the head size {head_size}", self.name(key));
                Err(self.bad(expected, found.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Rejects a key whose value is neither missing nor 0.
    pub fn refuse(&self, key: &str, expected: &str) -> Result<()> {
        match self.number(key)? {
            Some(found) if found != 0.0 => {
                Err(self.bad(expected.into(), format!("{} = {found}", self.name(key))))
            }
            _ => Ok(()),
        }
    }
}
