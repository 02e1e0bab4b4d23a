//! Text of documents from strangers: .docx, .pptx, .epub, .html, .xlsx and .ods, which are told
//! apart by content. A child process reads them, with limits on memory, time, unpacked bytes, rows
//! and cells.
//!
//! - [`DocumentReader`]: the parent's side
//! - [`text_of`]: the work, in the process that calls it
//! - [`block`]: a file's text in a prompt
//! - [`Index`]: passages of documents that match a question
//! - [`FileBudget`]: which files a prompt has as a whole; [`excerpts`]: the passages of the others

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod archive;
mod block;
mod book;
mod budget;
mod excerpt;
mod index;
mod kind;
mod page;
mod passage;
mod ranking;
mod reader;
mod relations;
mod sheet;
mod slides;
mod text;
mod unread;
mod vectors;
mod word;
mod words;
mod xml;

#[cfg(test)]
mod tests;

pub use block::block;
pub use budget::{FileBudget, Part};
pub use excerpt::{ADDED, Excerpt, PASSAGES, excerpts, quoted};
pub use index::{Coverage, DocumentKey, Found, Index, IndexError, Query, Unembedded};
pub use reader::{DocumentReader, TASK};
pub use text::MAX_TEXT;
pub use unread::Unread;

use kind::Kind;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Longest file, in bytes.
pub const MAX_BYTES: usize = 32 << 20;

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
