//! Text of documents from strangers: .docx, .pptx, .epub, .html, .xlsx and .ods, which are told
//! apart by content. A child process reads them, with limits on memory, time, unpacked bytes, rows
//! and cells.
//!
//! - [`DocumentReader`]: the parent's side
//! - [`text_of`]: the work, in the process that calls it
//! - [`block`]: a file's text in a prompt

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod archive;
mod block;
mod book;
mod kind;
mod page;
mod reader;
mod relations;
mod sheet;
mod slides;
mod text;
mod word;
mod xml;

#[cfg(test)]
mod tests;

pub use block::block;
pub use reader::{DocumentReader, TASK};

use kind::Kind;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Longest file, in bytes.
pub const MAX_BYTES: usize = 32 << 20;

/// Longest text of a file, in bytes: more than the contexts of models hold.
pub const MAX_TEXT: usize = 4 << 20;

/// Reason why a file's text cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Unread {
    /// No document of a known format.
    Unknown,
    /// Protected with a password.
    Encrypted,
    /// Damaged or cut short.
    Damaged,
    /// Binary format of Office before 2007.
    Old,
    /// Without text.
    Empty,
    /// Text, rows or cells beyond the limits.
    TooLong,
    /// Unpacks to more than is read, or takes too much memory.
    UnpacksTooLarge,
    /// Reading takes too long.
    Slow,
}

impl Unread {
    /// The reason as the end of a sentence about a file.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Unknown => "it is neither text nor a .docx, .pptx, .epub, .html, .xlsx or .ods file",
            Self::Encrypted => "it is protected with a password",
            Self::Damaged => "it is damaged or cut short",
            Self::Old => "it has the format of old versions of Office; save it as .docx, .pptx or .xlsx",
            Self::Empty => "it has no text",
            Self::TooLong => "it has more text, rows or cells than are read",
            Self::UnpacksTooLarge => "it unpacks to more than is read",
            Self::Slow => "reading it takes too long",
        }
    }
}

/// Text of a file, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum DocumentText {
    Text(String),
    Unread(Unread),
}

impl From<Result<String, Unread>> for DocumentText {
    fn from(read: Result<String, Unread>) -> Self {
        read.map_or_else(Self::Unread, Self::Text)
    }
}

/// Extracts a document's text. Headings, slides and sheets begin with `#`, rows with their number.
///
/// # Errors
/// Every [`Unread`] but `Slow`, which the parent measures.
pub fn text_of(bytes: &[u8]) -> Result<String, Unread> {
    let text = match Kind::of(bytes)? {
        Kind::Word(mut archive) => word::text_of(&mut archive),
        Kind::Slides(mut archive) => slides::text_of(&mut archive),
        Kind::Book(mut archive) => book::text_of(&mut archive),
        Kind::Workbook(mut archive) => sheet::xlsx::text_of(&mut archive),
        Kind::OpenSheet(mut archive) => sheet::ods::text_of(&mut archive),
        Kind::Page => page::text_of(bytes),
    }?;
    let text = text.trim();
    if text.is_empty() { Err(Unread::Empty) } else { Ok(text.to_owned()) }
}
