//! A GGUF file: its header read once, its tensors located and checked against the file's length.
//! Interprets no key; that is for `config.rs` and the tokenizer.

use std::collections::{BTreeMap, HashMap};
use std::io::Cursor;
use std::path::{Path, PathBuf};

use candle_core::quantized::gguf_file::{Content, Value};
use memmap2::Mmap;

use super::mapped::{Stored, Tensors, map, stored_size};
use crate::error::{Error, Result};

/// Headers hold a vocabulary, some megabytes. Reading no further bounds what a hostile header can
/// make the reader allocate, whatever the file's size.
const LARGEST_HEADER: usize = 64 << 20;

/// Lists within lists; the reader goes no deeper either.
const DEEPEST_LIST: usize = 65;

const DOWNLOAD_AGAIN: &str = "Download it again, or choose another file.";
const CHOOSE_GGUF: &str = "Choose a .gguf file, or a folder with config.json and safetensors.";

/// The keys and values at the head of a GGUF file.
pub(super) struct Header {
    path: PathBuf,
    values: HashMap<String, Value>,
}

/// Reads the header and locates every tensor.
///
/// # Errors
/// `Error::Io`; `Error::BadModel` when the file is no GGUF, has a damaged header, or ends before its
/// tensors do.
pub(super) fn open(path: &Path) -> Result<(Header, Tensors)> {
    let file = map(path)?;
    let content = read_header(path, &file)?;
    let header = Header { path: path.to_owned(), values: content.metadata };
    if let Some(parts) = header.integer("split.count")?.filter(|&n| n > 1) {
        let found = format!("the first or another of {parts} parts");
        return Err(header.bad("a whole model in one file".into(), found));
    }
    let mut stored = BTreeMap::new();
    let mut end = 0;
    for (name, info) in content.tensor_infos {
        let shape = info.shape.into_dims();
        let bytes = stored_size(info.ggml_dtype, &shape).and_then(|size| {
            let start = content.tensor_data_offset.checked_add(info.offset)?;
            let start = usize::try_from(start).ok()?;
            Some(start..start.checked_add(size)?)
        });
        let Some(bytes) = bytes else {
            let expected = format!("a shape for {name} that its type {:?} can hold", info.ggml_dtype);
            return Err(header.bad(expected, format!("{shape:?}")));
        };
        end = end.max(bytes.end);
        stored.insert(name, Stored { dtype: info.ggml_dtype, shape, file: 0, bytes, above_one: false });
    }
    if end > file.len() {
        return Err(Error::BadModel {
            path: path.to_owned(),
            expected: format!("{end} bytes"),
            found: format!("{}: the file is cut short", file.len()),
            hint: DOWNLOAD_AGAIN,
        });
    }
    Ok((header, Tensors { path: path.to_owned(), files: vec![file], stored }))
}

fn read_header(path: &Path, file: &Mmap) -> Result<Content> {
    let bad = |expected: &str, found: String, hint| Error::BadModel {
        path: path.to_owned(),
        expected: expected.into(),
        found,
        hint,
    };
    let expected = "a GGUF file of version 2 or 3";
    match (file.get(..4), file.get(4..8)) {
        (Some(b"GGUF"), Some([2 | 3, 0, 0, 0])) => {}
        (Some(b"GGUF"), Some(&[a, b, c, d])) => {
            let version = u32::from_le_bytes([a, b, c, d]);
            return Err(bad(expected, format!("version {version}"), CHOOSE_GGUF));
        }
        (Some(b"GGUF"), _) => {
            return Err(bad(expected, format!("{} bytes", file.len()), DOWNLOAD_AGAIN));
        }
        _ => return Err(bad(expected, "a file of another kind".into(), CHOOSE_GGUF)),
    }
    let head = &file[..file.len().min(LARGEST_HEADER)];
    if aligns_to_nothing(head) {
        return Err(bad("an alignment above 0", "0".into(), DOWNLOAD_AGAIN));
    }
    Content::read(&mut Cursor::new(head)).map_err(|error| {
        let found = match &error {
            candle_core::Error::Io(_) => "one that ends in the middle".into(),
            // A captured backtrace follows the first line.
            other => other.to_string().lines().next().unwrap_or("damage").to_owned(),
        };
        bad("a complete GGUF header", found, DOWNLOAD_AGAIN)
    })
}

/// Whether a header sets `general.alignment` to 0, by which the reader would divide. Walks the keys;
/// where a damaged header ends the walk, the reader ends with an error too.
fn aligns_to_nothing(head: &[u8]) -> bool {
    let mut walk = Walk(head);
    let mut zero = false;
    let mut visit = || -> Option<()> {
        walk.take(16)?;
        for _ in 0..walk.u64()? {
            let key = walk.string()?;
            let kind = walk.u32()?;
            let value = walk.value(kind, 0)?;
            // The reader ignores zero bytes at the end of a key.
            let named = key.strip_prefix(b"general.alignment");
            if named.is_some_and(|rest| rest.iter().all(|&byte| byte == 0)) {
                zero |= kind <= 5 && value.iter().all(|&byte| byte == 0);
            }
        }
        Some(())
    };
    visit();
    zero
}

/// The bytes of a header that are still ahead.
struct Walk<'a>(&'a [u8]);

impl<'a> Walk<'a> {
    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.u64()?;
        self.take(length)
    }

    /// The bytes of a value of GGUF's type number `kind`; of a list, none.
    fn value(&mut self, kind: u32, depth: usize) -> Option<&'a [u8]> {
        match kind {
            0 | 1 | 7 => self.take(1),
            2 | 3 => self.take(2),
            4..=6 => self.take(4),
            10..=12 => self.take(8),
            8 => self.string(),
            9 if depth < DEEPEST_LIST => {
                let kind = self.u32()?;
                for _ in 0..self.u64()? {
                    self.value(kind, depth + 1)?;
                }
                Some(&[])
            }
            _ => None,
        }
    }
}

impl Header {
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn string(&self, key: &str) -> Result<Option<&str>> {
        self.typed(key, "text", |value| match value {
            Value::String(text) => Some(text.as_str()),
            _ => None,
        })
    }

    pub fn integer(&self, key: &str) -> Result<Option<u64>> {
        self.typed(key, "a whole number", |value| match *value {
            Value::U8(n) => Some(n.into()),
            Value::U16(n) => Some(n.into()),
            Value::U32(n) => Some(n.into()),
            Value::U64(n) => Some(n),
            Value::I8(n) => n.try_into().ok(),
            Value::I16(n) => n.try_into().ok(),
            Value::I32(n) => n.try_into().ok(),
            Value::I64(n) => n.try_into().ok(),
            _ => None,
        })
    }

    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a number", |value| match *value {
            Value::F32(x) => Some(x.into()),
            Value::F64(x) => Some(x),
            _ => None,
        })
    }

    pub fn boolean(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "true or false", |value| match *value {
            Value::Bool(b) => Some(b),
            _ => None,
        })
    }

    pub fn array(&self, key: &str) -> Result<Option<&[Value]>> {
        self.typed(key, "a list", |value| match value {
            Value::Array(values) => Some(values.as_slice()),
            _ => None,
        })
    }

    /// A damaged or unusable header.
    pub fn bad(&self, expected: String, found: String) -> Error {
        Error::BadModel { path: self.path.clone(), expected, found, hint: "Choose another file." }
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.values.get(key) else { return Ok(None) };
        match read(value) {
            Some(read) => Ok(Some(read)),
            None => Err(self
                .bad(format!("{expected} for {key}"), format!("a value of type {:?}", value.value_type()))),
        }
    }
}
