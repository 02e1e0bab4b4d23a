//! Parts of a ZIP archive, unpacked within limits.

use std::io::{self, BufReader, Cursor, Read};

use flate2::read::DeflateDecoder;
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use crate::unread::Unread;

/// Unpacked bytes that are read of an archive, of all parts together.
const MAX_UNPACKED: u64 = 256 << 20;

/// An archive, and how much of it may still be unpacked.
pub struct Archive<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    left: u64,
}

impl<'a> Archive<'a> {
    /// Opens an archive.
    ///
    /// # Errors
    /// `Damaged`.
    pub fn open(bytes: &'a [u8]) -> Result<Self, Unread> {
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_| Unread::Damaged)?;
        Ok(Self { archive, left: MAX_UNPACKED })
    }

    /// Returns whether there is a part with this name.
    pub fn has(&self, name: &str) -> bool {
        self.archive.index_for_name(name).is_some()
    }

    /// Opens a part.
    ///
    /// # Errors
    /// `Damaged` if it is missing; `Encrypted`.
    pub fn part(&mut self, name: &str) -> Result<Part<'_>, Unread> {
        let index = self.archive.index_for_name(name).ok_or(Unread::Damaged)?;
        let entry = self.archive.by_index_raw(index).map_err(|error| match error {
            ZipError::InvalidPassword => Unread::Encrypted,
            _ => Unread::Damaged,
        })?;
        if entry.encrypted() {
            return Err(Unread::Encrypted);
        }
        let from: Box<dyn Read + '_> = match entry.compression() {
            CompressionMethod::Stored => Box::new(entry),
            CompressionMethod::DEFLATE => Box::new(DeflateDecoder::new(entry)),
            _ => return Err(Unread::Damaged),
        };
        Ok(BufReader::new(Bounded { from, left: &mut self.left }))
    }

    /// Reads a part as a whole.
    ///
    /// # Errors
    /// As [`Self::part`]; `UnpacksTooLarge`.
    pub fn bytes(&mut self, name: &str) -> Result<Vec<u8>, Unread> {
        let mut bytes = Vec::new();
        self.part(name)?.read_to_end(&mut bytes).map_err(|error| unread(&error))?;
        Ok(bytes)
    }
}

/// A part of an archive.
pub type Part<'a> = BufReader<Bounded<'a>>;

/// A part that is read until nothing of the archive's limit is left.
pub struct Bounded<'a> {
    from: Box<dyn Read + 'a>,
    left: &'a mut u64,
}

impl Read for Bounded<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        *self.left = self.left.checked_sub(read as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(read)
    }
}

/// Reason of an error while a part is read.
pub fn unread(error: &io::Error) -> Unread {
    match error.kind() {
        io::ErrorKind::FileTooLarge => Unread::UnpacksTooLarge,
        _ => Unread::Damaged,
    }
}
