//! Conversions of stored rows to the page's types.

use foretoken_store as store;
use serde::de::DeserializeOwned;

use crate::error::Result;
use crate::ipc::{
    Attached, Attachment, AttachmentKind, CommandError, Conversation, ConversationFolder, Message, Role,
    SearchHit,
};

impl From<store::Conversation> for Conversation {
    fn from(row: store::Conversation) -> Self {
        Self {
            id: row.id,
            title: row.title,
            pinned: row.pinned,
            updated_at: row.updated_at,
            seen_from: row.seen_from,
            folder: row.folder,
        }
    }
}

impl From<store::Folder> for ConversationFolder {
    fn from(store::Folder { id, name }: store::Folder) -> Self {
        Self { id, name }
    }
}

impl From<store::Hit> for SearchHit {
    fn from(hit: store::Hit) -> Self {
        Self { conversation: hit.conversation.into(), message: hit.message, excerpt: hit.excerpt }
    }
}

impl From<store::Role> for Role {
    fn from(role: store::Role) -> Self {
        match role {
            store::Role::User => Self::User,
            store::Role::Assistant => Self::Assistant,
        }
    }
}

impl From<store::AttachmentKind> for AttachmentKind {
    fn from(kind: store::AttachmentKind) -> Self {
        match kind {
            store::AttachmentKind::Text => Self::Text,
            store::AttachmentKind::Pdf => Self::Pdf,
            store::AttachmentKind::Picture => Self::Picture,
        }
    }
}

impl From<AttachmentKind> for store::AttachmentKind {
    fn from(kind: AttachmentKind) -> Self {
        match kind {
            AttachmentKind::Text => Self::Text,
            AttachmentKind::Pdf => Self::Pdf,
            AttachmentKind::Picture => Self::Picture,
        }
    }
}

impl From<store::Attachment> for Attachment {
    fn from(row: store::Attachment) -> Self {
        Self { id: row.id, name: row.name, kind: row.kind.into(), bytes: row.bytes }
    }
}

impl From<store::Attached> for Attached {
    fn from(row: store::Attached) -> Self {
        Self { name: row.name, kind: row.kind.into(), text: row.text }
    }
}

impl From<Attached> for store::Attached {
    fn from(Attached { name, kind, text }: Attached) -> Self {
        Self { name, kind: kind.into(), text }
    }
}

impl TryFrom<store::Message> for Message {
    type Error = CommandError;

    fn try_from(row: store::Message) -> Result<Self> {
        let start = row.calls.first().and_then(|call| row.text.get(..call.call.text_start as usize));
        Ok(Self {
            id: row.id,
            conversation: row.conversation,
            role: row.role.into(),
            calls_start: start.map(utf16_length),
            calls: row.calls.into_iter().map(Into::into).collect(),
            text: row.text,
            created_at: row.created_at,
            finish: row.finish.map(|word| parse(&format!("\"{word}\""))).transpose()?,
            summary: row.summary.as_deref().map(parse).transpose()?,
            target: row.target,
            draft: row.draft,
            problem: row.problem,
            parent: row.parent,
            siblings: row.siblings,
            attachments: row.attachments.into_iter().map(Into::into).collect(),
            excerpts: row.excerpts.as_deref().map_or_else(|| Ok(Vec::new()), parse)?,
            unstored: None,
            speedup: None,
        })
    }
}

/// Returns the length of a text in UTF-16 code units, as the page counts.
pub(crate) fn utf16_length(text: &str) -> u32 {
    text.encode_utf16().count() as u32
}

fn parse<T: DeserializeOwned>(json: &str) -> Result<T> {
    Ok(serde_json::from_str(json)?)
}
