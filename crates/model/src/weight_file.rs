//! A weight file open for reading. It is not mapped into memory: if another program truncates the
//! file or its disk disappears, the next read returns an error instead of raising a signal.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{DOWNLOAD_AGAIN, Error, Result};

/// Bytes per read. The buffer grows as it is filled, so that little memory is cleared in vain.
const PIECE: usize = 1 << 20;

/// An open file, with its length and modification time when it was opened.
#[derive(Debug)]
pub(super) struct WeightFile {
    path: PathBuf,
    file: File,
    length: u64,
    modified: Option<SystemTime>,
    /// See [`Self::version`].
    version: String,
}

impl WeightFile {
    /// Opens a regular file.
    ///
    /// # Errors
    /// `Error::Io` if the file cannot be opened or is not regular; a pipe would block.
    pub fn open(path: &Path) -> Result<Self> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            return Err(io(io::Error::new(io::ErrorKind::InvalidInput, "this is not a file")));
        }
        let file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        let modified = metadata.modified().ok();
        let version = version(&metadata);
        Ok(Self { path: path.to_owned(), file, length: metadata.len(), modified, version })
    }

    /// Returns the path, length and modification time, which identify a version of a file.
    pub fn identity(&self) -> (PathBuf, u64, Option<SystemTime>) {
        (self.path.clone(), self.length, self.modified)
    }

    /// Text that is another one for every other content of a file on this computer.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Length in bytes when the file was opened.
    pub fn len(&self) -> usize {
        usize::try_from(self.length).unwrap_or(usize::MAX)
    }

    /// Reads a range of bytes.
    ///
    /// # Errors
    /// `Error::Io` if the range cannot be read or memory is short; `Error::BadModel` if the file
    /// has changed since it was opened.
    pub fn read(&self, range: Range<usize>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_on(&mut bytes, range)?;
        Ok(bytes)
    }

    /// Reads a range of bytes and appends them to `bytes`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_on(&self, bytes: &mut Vec<u8>, range: Range<usize>) -> Result<()> {
        let read = self.fill(bytes, range);
        // A failed read may be due to a change of the file, which is the better error.
        self.check_unchanged()?;
        read.map_err(|source| Error::Io { path: self.path.clone(), source })
    }

    /// Reads a range of bytes to the start of `buffer`, which grows if it is too short. A buffer
    /// that is reused is neither allocated nor cleared again.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_over<'a>(&self, buffer: &'a mut Vec<u8>, range: Range<usize>) -> Result<&'a [u8]> {
        let read = self.overwrite(buffer, &range);
        self.check_unchanged()?;
        read.map_err(|source| Error::Io { path: self.path.clone(), source })?;
        Ok(&buffer[..range.len()])
    }

    fn overwrite(&self, buffer: &mut Vec<u8>, range: &Range<usize>) -> io::Result<()> {
        if let Some(more) = range.len().checked_sub(buffer.len()) {
            buffer.try_reserve_exact(more)?;
            buffer.resize(range.len(), 0);
        }
        read_exact_at(&self.file, &mut buffer[..range.len()], range.start as u64)
    }

    fn fill(&self, bytes: &mut Vec<u8>, range: Range<usize>) -> io::Result<()> {
        bytes.try_reserve_exact(range.len())?;
        let mut at = range.start;
        while at < range.end {
            let filled = bytes.len();
            bytes.resize(filled + PIECE.min(range.end - at), 0);
            read_exact_at(&self.file, &mut bytes[filled..], at as u64)?;
            at += bytes.len() - filled;
        }
        Ok(())
    }

    /// Checks that length and modification time are those of the opened file.
    fn check_unchanged(&self) -> Result<()> {
        let metadata = self.file.metadata();
        let metadata = metadata.map_err(|source| Error::Io { path: self.path.clone(), source })?;
        if metadata.len() == self.length && metadata.modified().ok() == self.modified {
            return Ok(());
        }
        Err(Error::BadModel {
            path: self.path.clone(),
            expected: "a file that stays as it is while it is read".into(),
            found: format!("a change: it has {} bytes now and had {}", metadata.len(), self.length),
            hint: DOWNLOAD_AGAIN,
        })
    }
}

/// Version of a file: on Unix its inode and the time of its last change, which programs cannot set.
#[cfg(unix)]
fn version(metadata: &Metadata) -> String {
    use std::os::unix::fs::MetadataExt;

    let (seconds, nanoseconds) = (metadata.ctime(), metadata.ctime_nsec());
    format!("{} {} {seconds}.{nanoseconds:09}", metadata.ino(), metadata.len())
}

/// Version of a file: its length and the times of its creation and last modification.
#[cfg(not(unix))]
fn version(metadata: &Metadata) -> String {
    format!("{} {:?} {:?}", metadata.len(), metadata.created().ok(), metadata.modified().ok())
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        (bytes, at) = (&mut bytes[read..], at + read as u64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn numbered(folder: &Path) -> PathBuf {
        let path = folder.join("weights");
        fs::write(&path, (0..3 * PIECE).map(|at| (at / 1000) as u8).collect::<Vec<_>>()).unwrap();
        path
    }

    #[test]
    fn a_range_is_read_over_several_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let path = numbered(folder.path());
        let file = WeightFile::open(&path).unwrap();
        let whole = fs::read(&path).unwrap();
        for range in [0..0, 5..6, 7..PIECE + 9, PIECE..3 * PIECE, 0..3 * PIECE] {
            assert_eq!(file.read(range.clone()).unwrap(), whole[range]);
        }
    }

    #[test]
    fn a_buffer_is_reused_for_ranges_of_any_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = numbered(folder.path());
        let file = WeightFile::open(&path).unwrap();
        let whole = fs::read(&path).unwrap();
        let mut buffer = Vec::new();
        for range in [5..6, 0..2 * PIECE, 7..PIECE + 9, 3..3] {
            assert_eq!(file.read_over(&mut buffer, range.clone()).unwrap(), &whole[range]);
        }
        assert_eq!(buffer.len(), 2 * PIECE);
        for range in [0..isize::MAX as usize, 2 * PIECE..4 * PIECE] {
            assert!(matches!(file.read_over(&mut Vec::new(), range), Err(Error::Io { .. })));
        }
    }

    #[test]
    fn a_file_that_becomes_shorter_or_other_is_refused_in_a_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let path = numbered(folder.path());
        let changes: [fn(&File); 2] = [
            |file| file.set_len(PIECE as u64).unwrap(),
            |file| file.set_modified(SystemTime::UNIX_EPOCH).unwrap(),
        ];
        for change in changes {
            let open = WeightFile::open(&path).unwrap();
            change(&File::options().write(true).open(&path).unwrap());
            let error = open.read(0..2 * PIECE).unwrap_err().to_string();
            assert!(error.contains("stays as it is") && error.ends_with("another model."), "{error}");
        }
    }

    #[test]
    fn more_than_there_is_memory_for_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = WeightFile::open(&numbered(folder.path())).unwrap();
        let error = file.read(0..isize::MAX as usize).unwrap_err();
        let Error::Io { source, .. } = &error else { panic!("{error}") };
        assert_eq!(source.kind(), io::ErrorKind::OutOfMemory, "{error}");
    }

    #[test]
    fn a_file_that_was_replaced_is_still_the_one_that_was_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = numbered(folder.path());
        let file = WeightFile::open(&path).unwrap();
        let newer = folder.path().join("newer");
        fs::write(&newer, "another model").unwrap();
        if cfg!(unix) {
            fs::rename(&newer, &path).unwrap();
        }
        assert_eq!(file.read(1000..1002).unwrap(), [1, 1]);
    }

    #[test]
    fn what_is_no_file_is_refused_before_it_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let null = Path::new("/dev/null");
        for other in [folder.path()].into_iter().chain(null.exists().then_some(null)) {
            let error = WeightFile::open(other).unwrap_err();
            assert!(matches!(&error, Error::Io { .. }), "{error}");
        }
    }

    #[test]
    fn a_file_of_another_length_is_refused_though_it_says_that_it_is_as_old() {
        let folder = tempfile::tempdir().unwrap();
        let path = numbered(folder.path());
        for length in [PIECE, 4 * PIECE] {
            let open = WeightFile::open(&path).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            let before = file.metadata().unwrap().modified().unwrap();
            file.set_len(length as u64).unwrap();
            file.set_modified(before).unwrap();
            let error = open.read(0..10).unwrap_err().to_string();
            assert!(error.contains(&format!("it has {length} bytes now")), "{error}");
        }
    }
}
