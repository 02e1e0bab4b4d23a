//! Conversations and their messages.

use serde::{Deserialize, Serialize};

use super::Thinking;
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
        let (unfinished, calls) = (Vec::new(), Vec::new());
        Self { role, content: content.into(), thinking: None, unfinished, calls, call_id: None }
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
