//! Files beside a question, as text.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Bytes of text that a file may have: more than the contexts of models hold.
pub const ATTACHMENT_BYTES: usize = 4 << 20;

/// Bytes that a file may have of which the text is taken: a PDF has much in it that is no text.
pub const FILE_BYTES: usize = 64 << 20;

/// Files that may stand beside one question.
pub const ATTACHMENTS: usize = 20;

/// What the text was taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum AttachmentKind {
    Text,
    Pdf,
}

/// A file as its message lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Attachment {
    #[ts(type = "number")]
    pub id: i64,
    pub name: String,
    pub kind: AttachmentKind,
    /// Of its text.
    #[ts(type = "number")]
    pub bytes: i64,
}

/// A file with what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Attached {
    pub name: String,
    pub kind: AttachmentKind,
    pub text: String,
}

/// What a person sends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Sent {
    pub text: String,
    /// Files that are stored already, by their numbers: those of a question that is changed. They come first.
    #[serde(default)]
    #[ts(type = "Array<number>")]
    pub kept: Vec<i64>,
    #[serde(default)]
    pub attached: Vec<Attached>,
}

impl From<&str> for Sent {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }
}

/// The tokens of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct TokenCount {
    pub tokens: u32,
    /// Counted by the tokenizer of the model that replies; estimated otherwise.
    pub exact: bool,
}

/// Tokens in the model's context before the next message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ContextUse {
    /// Everything: system prompt, files and messages.
    pub used: TokenCount,
    pub system_prompt: TokenCount,
    /// Files of the messages that the model sees.
    pub attachments: TokenCount,
}
