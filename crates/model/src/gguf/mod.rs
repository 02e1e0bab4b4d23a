//! GGUF files: reads the header once, and locates tensors and checks them against the file's
//! length. A model may be split into several files. Interprets no keys.

mod header;
mod reader;
mod scales;
#[cfg(test)]
mod tests;
mod types;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folder::is_lfs_pointer;
use super::limits::{self, at_most};
use super::tables::assistant::is_order;
use super::tables::outer::TOKEN_TABLE;
use super::tensors::{Meaning, Stored, Tensors, TokenTable};
use super::weight_file::WeightFile;
use crate::error::{DOWNLOAD_AGAIN, DOWNLOAD_PART, Error, Result};
pub(super) use header::{Header, List};
use header::{Values, read_values};
use reader::{Read, Reader};

/// Longest header that is read, in bytes. Headers contain a vocabulary of some megabytes; the limit
/// bounds the time for an untrusted file.
const LARGEST_HEADER: usize = 64 << 20;

/// Bytes of the first read of a header: more than most headers have without their vocabulary.
const FIRST_READ: usize = 1 << 20;

const MAX_DIMENSIONS: u32 = 4;

/// Default of `general.alignment`, in bytes.
const ALIGNMENT: u64 = 32;

const CHOOSE_GGUF: &str = "Choose a .gguf file, or a folder with config.json and safetensors.";
const CHOOSE_ANOTHER: &str = "Choose another file of this model.";

/// Reads the header and locates every tensor. The path may be any part of a split model.
///
/// # Errors
/// `Error::Io`; `Error::Empty`; `Error::Incomplete` if the file ends before its tensors do;
/// `Error::BadModel` for another format, a damaged header, an unsupported tensor type or a missing
/// part.
pub(super) fn open(path: &Path) -> Result<(Header, Tensors)> {
    let mut tensors = Tensors::none(path);
    let header = open_file(path, &mut tensors)?;
    let (header, mut tensors) = match header.integer("split.count")? {
        None | Some(0 | 1) => (header, tensors),
        Some(count) => open_parts(&header, count)?,
    };
    scales::attach(&mut tensors);
    Ok((header, tensors))
}

/// Adds the tensors of one file.
fn open_file(path: &Path, tensors: &mut Tensors) -> Result<Header> {
    let file = WeightFile::open(path)?;
    if file.len() == 0 {
        return Err(Error::Empty(path.to_owned()));
    }
    let (header, Head { infos, end, .. }) = read_header(path, &file)?;
    let data = data_offset(&header, end)?;
    let count = tensors.count() + infos.len();
    at_most(path, "tensors", count, limits::TENSORS)?;
    let mut places = Vec::with_capacity(infos.len());
    for info in infos {
        let Info { name, shape, kind, offset } = info;
        if let Some(width) = types::whole(kind).filter(|_| name == TOKEN_TABLE || is_order(&name)) {
            let bytes = token_table(&header, &name, &shape, width, data.checked_add(offset))?;
            places.push(bytes.clone());
            let table = TokenTable { file: tensors.files.len(), bytes, width, offsets: false };
            let place = if name == TOKEN_TABLE { &mut tensors.token_table } else { &mut tensors.order };
            *place = Some(table);
            continue;
        }
        let format = types::format(kind).map_err(|found| {
            let expected = format!("{name} of a supported type ({})", types::readable());
            bad(path, &expected, found, CHOOSE_ANOTHER)
        })?;
        let bytes = format.size(&shape).and_then(|size| {
            let start = usize::try_from(data.checked_add(offset)?).ok()?;
            Some(start..start.checked_add(size)?)
        });
        let Some(bytes) = bytes else {
            let expected = format!("a shape for {name} that fits its type {}", format.name());
            return Err(header.bad(expected, format!("{shape:?}")));
        };
        places.push(bytes.clone());
        let (file, meaning) = (tensors.files.len(), Meaning::Themselves);
        let stored = Stored { format, shape, file, bytes, meaning, gathered: None, factor: None };
        if tensors.stored.contains_key(&name) {
            return Err(bad(path, "each tensor once", format!("{name} twice"), DOWNLOAD_AGAIN));
        }
        tensors.stored.insert(name, stored);
    }
    places.sort_by_key(|bytes| bytes.start);
    if places.windows(2).any(|pair| pair[0].end > pair[1].start) {
        return Err(bad(path, "tensors that do not overlap", "some that do".into(), DOWNLOAD_AGAIN));
    }
    let end = places.last().map_or(0, |last| last.end);
    if end > file.len() {
        let (expected, found) = (end as u64, file.len() as u64);
        return Err(Error::Incomplete { path: path.to_owned(), expected, found });
    }
    tensors.files.push(Arc::new(file));
    Ok(header)
}

/// Returns the byte range of a list of tokens that begins at `start`, with `width` bytes per token.
fn token_table(
    header: &Header,
    name: &str,
    shape: &[usize],
    width: usize,
    start: Option<u64>,
) -> Result<Range<usize>> {
    let place = || {
        let [tokens] = shape else { return None };
        let start = usize::try_from(start?).ok()?;
        Some(start..start.checked_add(tokens.checked_mul(width)?)?)
    };
    place().ok_or_else(|| header.bad(format!("{name} as a list"), format!("{shape:?}")))
}

/// Opens all parts of a split model; `any` is the header of one of them.
fn open_parts(any: &Header, count: u64) -> Result<(Header, Tensors)> {
    let path = any.path();
    let expected = format!("a name that ends in -00001-of-{count:05}.gguf for one of {count} parts");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = stem_of_part(&name, count).ok_or_else(|| {
        bad(path, &expected, format!("'{name}'"), "Restore the original names of the parts.")
    })?;
    at_most(path, "parts", usize::try_from(count).unwrap_or(usize::MAX), limits::FILES)?;
    let mut tensors = Tensors::none(path);
    let mut first = None;
    for number in 0..count {
        let part = part_path(path, stem, number, count);
        if !part.is_file() {
            let missing = part.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let expected = format!("all {count} parts of the model in one folder");
            return Err(bad(path, &expected, format!("no {missing}"), DOWNLOAD_PART));
        }
        let header = open_file(&part, &mut tensors)?;
        let place = (header.integer("split.no")?, header.integer("split.count")?);
        if place != (Some(number), Some(count)) {
            let of = |n: Option<u64>| n.map_or_else(|| "none".to_owned(), |n| n.to_string());
            let found = format!("split.no {} and split.count {}", of(place.0), of(place.1));
            let expected = format!("part {number} of {count}, counted from 0");
            return Err(bad(&part, &expected, found, DOWNLOAD_AGAIN));
        }
        first.get_or_insert(header);
    }
    let header = first.ok_or_else(|| bad(path, &expected, "none".into(), CHOOSE_GGUF))?;
    let (found, promised) = (tensors.stored.len() as u64, header.integer("split.tensors.count")?);
    match promised.filter(|&promised| promised != found) {
        Some(promised) => {
            let expected = format!("{promised} tensors in {count} parts");
            Err(bad(path, &expected, found.to_string(), DOWNLOAD_AGAIN))
        }
        None => Ok((header, tensors)),
    }
}

/// Returns the part of a name before `-00002-of-00003.gguf`.
fn stem_of_part(name: &str, count: u64) -> Option<&str> {
    let numbered = name.strip_suffix(&format!("-of-{count:05}.gguf"))?;
    let (stem, number) = numbered.rsplit_once('-')?;
    number.parse::<u64>().ok().filter(|number| (1..=count).contains(number))?;
    Some(stem)
}

fn part_path(path: &Path, stem: &str, number: u64, count: u64) -> PathBuf {
    path.with_file_name(format!("{stem}-{:05}-of-{count:05}.gguf", number + 1))
}

fn check_magic(path: &Path, file: &[u8]) -> Result<()> {
    let refuse = |found: String, hint| Err(bad(path, "a GGUF file of version 2 or 3", found, hint));
    match (file.get(..4), file.get(4..8)) {
        (Some(b"GGUF"), Some([2 | 3, 0, 0, 0])) => Ok(()),
        (Some(b"GGUF"), Some([0, 0, 0, version])) => refuse(
            format!("version {version} in big-endian byte order"),
            "Choose a little-endian file of this model.",
        ),
        (Some(b"GGUF"), Some([1, 0, 0, 0])) => {
            refuse("version 1, which is obsolete".into(), "Choose a newer file of this model.")
        }
        (Some(b"GGUF"), Some(&[a, b, c, d])) => {
            refuse(format!("version {}", u32::from_le_bytes([a, b, c, d])), CHOOSE_GGUF)
        }
        (Some(b"GGUF"), _) => refuse(format!("{} bytes", file.len()), DOWNLOAD_AGAIN),
        _ if is_lfs_pointer(file) => Err(Error::LfsPointer(path.to_owned())),
        _ => refuse("a different kind of file".into(), CHOOSE_GGUF),
    }
}

/// A tensor's entry in the header.
struct Info {
    name: String,
    /// Outermost dimension first.
    shape: Vec<usize>,
    /// GGML's number of its type.
    kind: u32,
    /// Offset from the start of the tensor data.
    offset: u64,
}

/// Contents of a header.
struct Head {
    values: Values,
    infos: Vec<Info>,
    /// Length in bytes.
    end: usize,
}

/// Reads as much of a file as its header needs.
fn read_header(path: &Path, file: &WeightFile) -> Result<(Header, Head)> {
    let most = file.len().min(LARGEST_HEADER);
    let mut bytes = file.read(0..most.min(FIRST_READ))?;
    check_magic(path, &bytes)?;
    loop {
        let mut reader = Reader::new(&bytes);
        let damage = match read_head(&mut reader) {
            Ok(mut head) => {
                bytes.truncate(head.end);
                bytes.shrink_to_fit();
                let values = std::mem::take(&mut head.values);
                return Ok((Header::new(path, bytes, values), head));
            }
            Err(damage) => damage,
        };
        match reader.missed().filter(|&missed| missed <= most) {
            Some(missed) => {
                let enough = missed.max(2 * bytes.len()).min(most);
                let read = bytes.len();
                file.read_on(&mut bytes, read..enough)?;
            }
            None => return Err(bad(path, "a complete GGUF header", damage, DOWNLOAD_AGAIN)),
        }
    }
}

fn read_head(reader: &mut Reader<'_>) -> Read<Head> {
    // Magic and version.
    reader.take(8)?;
    let (tensors, values) = (reader.u64()?, reader.u64()?);
    if tensors > limits::TENSORS as u64 || values > limits::KEYS {
        return Err(format!("one with {values} keys and {tensors} tensors"));
    }
    let values = read_values(reader, values)?;
    let mut infos = Vec::new();
    for _ in 0..tensors {
        infos.push(read_info(reader)?);
    }
    Ok(Head { values, infos, end: reader.position() })
}

fn read_info(reader: &mut Reader<'_>) -> Read<Info> {
    let name = String::from_utf8_lossy(reader.text()?).into_owned();
    let dimensions = reader.u32()?;
    if dimensions > MAX_DIMENSIONS {
        return Err(format!("{name} with {dimensions} dimensions, more than {MAX_DIMENSIONS}"));
    }
    let absurd = |size: u64| usize::try_from(size).map_err(|_| format!("{name} of size {size}"));
    let mut shape = Vec::new();
    for _ in 0..dimensions {
        shape.push(absurd(reader.u64()?)?);
    }
    shape.reverse();
    let (kind, offset) = (reader.u32()?, reader.u64()?);
    Ok(Info { name, shape, kind, offset })
}

/// Returns the offset of the tensor data in a file whose header ends at `end`.
fn data_offset(header: &Header, end: usize) -> Result<u64> {
    let alignment = header.integer("general.alignment")?.unwrap_or(ALIGNMENT);
    if alignment == 0 {
        return Err(bad(header.path(), "an alignment above 0", "0".into(), DOWNLOAD_AGAIN));
    }
    let offset = (end as u64).checked_next_multiple_of(alignment);
    offset.ok_or_else(|| header.bad("an alignment that fits the file".into(), alignment.to_string()))
}

fn bad(path: &Path, expected: &str, found: String, hint: &'static str) -> Error {
    Error::BadModel { path: path.to_owned(), expected: expected.into(), found, hint }
}
