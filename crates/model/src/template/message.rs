//! Conversations and their messages.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Thinking;
use crate::picture::{Detail, Picture};
use crate::tools::{Tool, ToolCall};

/// Conversation that a template renders.
#[derive(Debug, Clone, Copy)]
pub struct Conversation<'a> {
    pub messages: &'a [ChatMessage],
    /// Tools that the model may call.
    pub tools: &'a [Tool],
    /// Reasoning on or off, if the template has a switch for it; `None` for its default. See
    /// [`super::ChatTemplate::thinks`].
    pub thinking: Option<bool>,
}

impl<'a> Conversation<'a> {
    /// Conversation without tools.
    pub fn of(messages: &'a [ChatMessage], thinking: Option<bool>) -> Self {
        Self { messages, tools: &[], thinking }
    }

    /// Pictures of all messages, in order.
    pub fn pictures(&self) -> impl Iterator<Item = &'a PlacedPicture> {
        self.messages.iter().flat_map(|message| &message.pictures)
    }

    /// Returns whether it has tools, calls or results.
    pub fn has_calls(&self) -> bool {
        let has = |message: &ChatMessage| message.role == Role::Tool || !message.calls.is_empty();
        !self.tools.is_empty() || self.messages.iter().any(has)
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    pub role: Role,
    pub content: String,
    /// Pictures in `content`, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<PlacedPicture>,
    /// Reasoning before `content`, without tags, where it is known apart from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// Bytes of a character that a partial reply began after `content`, at most three.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<u8>,
    /// Calls of tools after `content`, in a message of the assistant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// [`ToolCall::id`] of the call whose result a message of a tool is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
}

impl ChatMessage {
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            pictures: Vec::new(),
            thinking: None,
            unfinished: Vec::new(),
            calls: Vec::new(),
            call_id: None,
        }
    }

    /// Message with `picture` at the end of the content so far.
    #[must_use]
    pub fn with_picture(mut self, picture: &Arc<Picture>, detail: Detail) -> Self {
        let (at, picture) = (self.content.len(), Arc::clone(picture));
        self.pictures.push(PlacedPicture { at, picture, detail });
        self
    }

    /// Parts of the content in order: texts, and `None` for each picture.
    pub(super) fn parts(&self) -> Vec<Option<&str>> {
        let mut parts = Vec::new();
        let mut start = 0;
        for picture in &self.pictures {
            let text = self.content.get(start..picture.at).unwrap_or_default();
            parts.extend((!text.is_empty()).then_some(Some(text)));
            parts.push(None);
            start = start.max(picture.at);
        }
        let text = self.content.get(start..).unwrap_or_default();
        parts.extend((!text.is_empty() || parts.is_empty()).then_some(Some(text)));
        parts
    }

    /// Message with its [`Self::thinking`] in `tags` before the content, as a model writes it;
    /// without tags, the reasoning is left out.
    #[must_use]
    pub fn with_tags(mut self, tags: Option<Thinking>) -> Self {
        if let (Some(Thinking { open, close }), Some(thinking)) = (tags, self.thinking.take()) {
            self.content = format!("{open}\n{}\n{close}\n\n{}", thinking.trim(), self.content);
        }
        self
    }

    /// Message whose reasoning in `tags` at the beginning of the content is apart from it.
    #[must_use]
    pub fn without_tags(mut self, tags: Option<Thinking>) -> Self {
        let split = tags.filter(|_| self.thinking.is_none()).and_then(|Thinking { open, close }| {
            self.content.trim_start().strip_prefix(open)?.split_once(close)
        });
        if let Some((thinking, content)) = split {
            self.thinking = Some(thinking.trim().to_owned());
            self.content = content.trim_start().to_owned();
        }
        self
    }
}

/// A picture in a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedPicture {
    /// Place in the content, in bytes.
    pub at: usize,
    /// Unknown to templates, which write a placeholder.
    #[serde(skip)]
    pub picture: Arc<Picture>,
    #[serde(skip)]
    pub detail: Detail,
}

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    System,
    User,
    Assistant,
    /// A tool, whose result is the content.
    Tool,
}

impl Role {
    /// Returns the role's name in templates.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}
