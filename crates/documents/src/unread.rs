//! Reasons why the text of a file cannot be read.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

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
