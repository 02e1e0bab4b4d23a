//! Keys and values of a GGUF header. Values stay encoded until they are read; what a key means is
//! up to `config/` and the tokenizer.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::reader::{Kind, Place, Read, Reader};
use crate::error::{Error, Result};

/// Keys and values of one file.
pub(crate) struct Header {
    path: PathBuf,
    /// Bytes of the header, from the beginning of the file.
    bytes: Vec<u8>,
    values: Values,
}

/// Location of each key's value.
pub(super) type Values = BTreeMap<String, Place>;

/// A list of values of one type.
#[derive(Clone, Copy)]
pub(crate) struct List<'a> {
    kind: Kind,
    len: usize,
    bytes: &'a [u8],
}

impl Header {
    /// Wraps `bytes`, the beginning of a file, in which `values` lie.
    pub(super) fn new(path: &Path, bytes: Vec<u8>, values: Values) -> Self {
        Self { path: path.to_owned(), bytes, values }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    pub fn string(&self, key: &str) -> Result<Option<&str>> {
        self.typed(key, "text", |place, bytes| {
            let single = place.kind == Kind::Text && place.elements.is_none();
            single.then(|| std::str::from_utf8(Reader::new(bytes).text().ok()?).ok()).flatten()
        })
    }

    pub fn integer(&self, key: &str) -> Result<Option<u64>> {
        self.typed(key, "a whole number", |place, bytes| {
            let integer = place.elements.is_none().then(|| integer(place.kind, bytes)).flatten()?;
            u64::try_from(integer).ok()
        })
    }

    /// Returns a whole number that may be negative, within the range of `i128`.
    pub fn signed(&self, key: &str) -> Result<Option<i128>> {
        self.typed(key, "a whole number", |place, bytes| {
            place.elements.is_none().then(|| integer(place.kind, bytes)).flatten()
        })
    }

    /// Returns the source of the chat template; an empty one counts as none, as in Python.
    pub fn chat_template(&self) -> Result<Option<&str>> {
        Ok(self.string("tokenizer.chat_template")?.filter(|text| !text.is_empty()))
    }

    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a number", |place, bytes| match place.elements {
            None => number(place.kind, bytes),
            Some(_) => None,
        })
    }

    pub fn boolean(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "true or false", |place, bytes| match (place.kind, place.elements, bytes) {
            (Kind::Bool, None, [0]) => Some(false),
            (Kind::Bool, None, [1]) => Some(true),
            _ => None,
        })
    }

    pub fn list(&self, key: &str) -> Result<Option<List<'_>>> {
        self.typed(key, "a list", |place, bytes| Some(List { kind: place.kind, len: place.elements?, bytes }))
    }

    /// Returns an error for a damaged or unusable header.
    pub fn bad(&self, expected: String, found: String) -> Error {
        Error::BadModel { path: self.path.clone(), expected, found, hint: "Choose another file." }
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&Place, &'a [u8]) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(place) = self.values.get(key) else { return Ok(None) };
        match read(place, &self.bytes[place.bytes.clone()]) {
            Some(read) => Ok(Some(read)),
            None => {
                let found = match place.elements {
                    None => format!("{:?}", place.kind),
                    Some(count) => format!("a list of {count} {:?}", place.kind),
                };
                Err(self.bad(format!("{expected} for {key}"), found))
            }
        }
    }
}

/// Locates `count` values.
pub(super) fn read_values(reader: &mut Reader<'_>, count: u64) -> Read<Values> {
    let mut values = Values::new();
    for _ in 0..count {
        let key = String::from_utf8_lossy(reader.text()?).into_owned();
        let place = reader.value().map_err(|damage| format!("{damage} (key '{key}')"))?;
        if values.contains_key(&key) {
            return Err(format!("the key '{key}' twice"));
        }
        values.insert(key, place);
    }
    Ok(values)
}

impl<'a> List<'a> {
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the texts, with U+FFFD for bytes that are not UTF-8; `None` for other elements.
    pub fn texts(&self) -> Option<Vec<Cow<'a, str>>> {
        self.read(Kind::Text, |reader| Some(String::from_utf8_lossy(reader.text().ok()?)))
    }

    /// Returns the integers; `None` for other elements.
    pub fn integers(&self) -> Option<Vec<i64>> {
        let size = self.kind.size().unwrap_or(0);
        self.read(self.kind, |reader| i64::try_from(integer(self.kind, reader.take(size).ok()?)?).ok())
    }

    /// Returns the floating-point numbers; `None` for other elements.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        let size = self.kind.size().unwrap_or(0);
        self.read(self.kind, |reader| number(self.kind, reader.take(size).ok()?))
    }

    /// Returns the booleans; `None` for other elements.
    pub fn booleans(&self) -> Option<Vec<bool>> {
        self.read(Kind::Bool, |reader| match reader.take(1).ok()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        })
    }

    /// Reads elements of type `kind`. An empty list has any type, because writers must declare one.
    fn read<T>(&self, kind: Kind, read: impl Fn(&mut Reader<'a>) -> Option<T>) -> Option<Vec<T>> {
        if self.len > 0 && self.kind != kind {
            return None;
        }
        let mut reader = Reader::new(self.bytes);
        (0..self.len).map(|_| read(&mut reader)).collect()
    }
}

/// Decodes an integer of any width.
fn integer(kind: Kind, bytes: &[u8]) -> Option<i128> {
    let signed = match kind {
        Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 => false,
        Kind::I8 | Kind::I16 | Kind::I32 | Kind::I64 => true,
        _ => return None,
    };
    let negative = signed && bytes.last().is_some_and(|&last| last >= 0x80);
    let mut wide = [if negative { 0xFF } else { 0 }; 16];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i128::from_le_bytes(wide))
}

fn number(kind: Kind, bytes: &[u8]) -> Option<f64> {
    match kind {
        Kind::F32 => Some(f32::from_le_bytes(bytes.try_into().ok()?).into()),
        Kind::F64 => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}
