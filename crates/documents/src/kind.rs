//! A document's format, from its content.

use crate::archive::Archive;
use crate::page::is_page;
use crate::unread::Unread;

/// First bytes of the container of Office before 2007, which also holds encrypted documents.
const COMPOUND: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

/// Longest `mimetype` part.
const MIMETYPE: usize = 100;

/// A document's format, with its archive if it is one.
pub enum Kind<'a> {
    Word(Archive<'a>),
    Slides(Archive<'a>),
    Workbook(Archive<'a>),
    OpenSheet(Archive<'a>),
    Book(Archive<'a>),
    Page,
}

impl<'a> Kind<'a> {
    /// Returns the format of a file.
    ///
    /// # Errors
    /// `Unknown`, `Old`, `Encrypted`, `Damaged`.
    pub fn of(bytes: &'a [u8]) -> Result<Self, Unread> {
        if bytes.starts_with(COMPOUND) {
            return Err(if is_encrypted(bytes) { Unread::Encrypted } else { Unread::Old });
        }
        if bytes.starts_with(b"PK\x03\x04") {
            return Self::of_archive(Archive::open(bytes)?);
        }
        if is_page(bytes) { Ok(Self::Page) } else { Err(Unread::Unknown) }
    }

    fn of_archive(mut archive: Archive<'a>) -> Result<Self, Unread> {
        if archive.has("word/document.xml") {
            return Ok(Self::Word(archive));
        }
        if archive.has("ppt/presentation.xml") {
            return Ok(Self::Slides(archive));
        }
        if archive.has("xl/workbook.xml") {
            return Ok(Self::Workbook(archive));
        }
        if !archive.has("mimetype") {
            return Err(Unread::Unknown);
        }
        let mimetype = archive.bytes("mimetype")?;
        match mimetype.get(..mimetype.len().min(MIMETYPE)).unwrap_or_default().trim_ascii() {
            b"application/epub+zip" => Ok(Self::Book(archive)),
            b"application/vnd.oasis.opendocument.spreadsheet" => Ok(Self::OpenSheet(archive)),
            _ => Err(Unread::Unknown),
        }
    }
}

/// Returns whether a container has the stream of an encrypted document, whose name is in UTF-16.
fn is_encrypted(bytes: &[u8]) -> bool {
    let name: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
    bytes.windows(name.len()).any(|part| part == name)
}
