//! Blocks of messages, and the conversation that they form.

use foretoken_model::{ChatMessage, Role, Tool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// Text between two blocks of text.
const BETWEEN: &str = "\n\n";

/// Begins the result of a call that failed.
const ERROR: &str = "Error: ";

#[derive(Deserialize)]
pub struct Message {
    role: String,
    content: Content,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a string, or a list of blocks of type 'text', 'thinking', 'tool_use' or 'tool_result'"
)]
enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

/// Text, as one string or in blocks.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string, or a list of blocks of type 'text'")]
pub enum Texts {
    One(String),
    Blocks(Vec<TextBlock>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TextBlock {
    Text { text: String },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
    },
    /// Reasoning that only Anthropic's servers can read.
    RedactedThinking {},
    ToolUse {
        id: String,
        name: String,
        input: Map<String, Value>,
    },
    ToolResult {
        tool_use_id: String,
        content: Option<Texts>,
        is_error: Option<bool>,
    },
}

impl Texts {
    /// All texts for which `keeps` returns `true`.
    pub fn joined(self, keeps: impl Fn(&str) -> bool) -> String {
        let texts = match self {
            Self::One(text) => vec![text],
            Self::Blocks(blocks) => blocks.into_iter().map(|TextBlock::Text { text }| text).collect(),
        };
        let kept: Vec<String> = texts.into_iter().filter(|text| keeps(text)).collect();
        kept.join(BETWEEN)
    }
}

/// Returns the conversation of a request, in which each result is a message.
///
/// # Errors
/// Refuses an empty list, roles other than `user` and `assistant`, names that no tool may have, and
/// blocks that the role may not have.
pub fn conversation(system: String, messages: Vec<Message>) -> Result<Vec<ChatMessage>, Refusal> {
    if messages.is_empty() {
        return Err(Refusal::bad_field("messages", "a list with at least one message"));
    }
    let system = (!system.is_empty()).then(|| ChatMessage::new(Role::System, system));
    let mut conversation: Vec<ChatMessage> = system.into_iter().collect();
    for (at, Message { role, content }) in messages.into_iter().enumerate() {
        let role = match role.as_str() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => return Err(Refusal::bad_field(&format!("messages[{at}].role"), "user or assistant")),
        };
        let field = format!("messages[{at}].content");
        match content {
            Content::Text(text) => conversation.push(ChatMessage::new(role, text)),
            Content::Blocks(blocks) => add(blocks, role, &field, &mut conversation)?,
        }
    }
    Ok(conversation)
}

/// Adds the messages of a message's blocks: results first, which answer the calls before them.
fn add(
    blocks: Vec<Block>,
    role: Role,
    field: &str,
    conversation: &mut Vec<ChatMessage>,
) -> Result<(), Refusal> {
    let mut message = ChatMessage::new(role, "");
    let (mut texts, mut thinking) = (Vec::new(), Vec::new());
    let has_results = blocks.iter().any(|block| matches!(block, Block::ToolResult { .. }));
    for block in blocks {
        match (block, role) {
            (Block::Text { text }, _) => texts.push(text),
            (Block::Thinking { thinking: text }, Role::Assistant) => thinking.push(text),
            (Block::RedactedThinking {}, Role::Assistant) => {}
            (Block::ToolUse { id, name, input }, Role::Assistant) => {
                if !Tool::is_name(&name) {
                    return Err(Refusal::bad_name(field));
                }
                message.calls.push(ToolCall { id, name, arguments: input });
            }
            (Block::ToolResult { tool_use_id, content, is_error }, Role::User) => {
                let content = content.map(|texts| texts.joined(|_| true)).unwrap_or_default();
                let error = if is_error.unwrap_or(false) { ERROR } else { "" };
                let result = ChatMessage::new(Role::Tool, [error, &content].concat());
                conversation.push(ChatMessage { call_id: Some(tool_use_id), ..result });
            }
            _ => {
                let expected = "thinking and tool_use of the assistant, tool_result of the user";
                return Err(Refusal::bad_field(field, expected));
            }
        }
    }
    message.content = texts.join(BETWEEN);
    message.thinking = (!thinking.is_empty()).then(|| thinking.join(BETWEEN));
    if !has_results || !message.content.is_empty() {
        conversation.push(message);
    }
    Ok(())
}
