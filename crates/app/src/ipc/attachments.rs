//! Attachments of questions, as text; pictures as data URLs.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Most bytes of an attachment's text: more than the contexts of models hold.
pub const ATTACHMENT_BYTES: usize = foretoken_documents::MAX_TEXT;

/// Most bytes of a file from which text is extracted: much of a PDF is not text.
pub const FILE_BYTES: usize = 64 << 20;

/// Most bytes of a document from which the child process extracts text.
pub const DOCUMENT_BYTES: usize = foretoken_documents::MAX_BYTES;

/// Most bytes of a picture's file.
pub const PICTURE_BYTES: usize = foretoken_senses::picture::MAX_BYTES;

/// Most attachments of one question.
pub const ATTACHMENTS: usize = 20;

/// Kind of file that the text was extracted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum AttachmentKind {
    Text,
    Pdf,
    /// A picture, whose text is the file as a data URL.
    Picture,
}

/// An attachment as its message lists it, without the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Attachment {
    #[ts(type = "number")]
    pub id: i64,
    pub name: String,
    pub kind: AttachmentKind,
    /// Size of the text in bytes.
    #[ts(type = "number")]
    pub bytes: i64,
}

/// An attachment with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Attached {
    pub name: String,
    pub kind: AttachmentKind,
    pub text: String,
}

/// A message that a person sends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Sent {
    pub text: String,
    /// Ids of stored attachments to keep: those of an edited question. They come first.
    #[serde(default)]
    #[ts(type = "Array<number>")]
    pub kept: Vec<i64>,
    #[serde(default)]
    pub attached: Vec<Attached>,
    /// Folder of a new conversation.
    #[serde(default)]
    #[ts(optional, type = "number")]
    pub folder: Option<i64>,
}

impl From<&str> for Sent {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }
}

/// Token count of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct TokenCount {
    pub tokens: u32,
    /// `true` if the tokenizer of the model that replies counted; otherwise an estimate.
    pub exact: bool,
}

/// Tokens in the model's context before the next message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ContextUse {
    /// All tokens: system prompt, attachments and messages.
    pub used: TokenCount,
    pub system_prompt: TokenCount,
    /// Attachments of the messages in the context.
    pub attachments: TokenCount,
    /// Tokens that further attachments may have; longer ones are searched. `None` without a limit.
    pub whole_files: Option<u32>,
}

/// State of the search in documents that are too long for the context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct DocumentSearchStatus {
    /// Passages of all documents that can be searched.
    pub passages: u32,
    /// Passages that can be found by their meaning.
    pub embedded: u32,
    /// Why the chosen embedding model cannot be used, in English.
    pub problem: Option<String>,
}
