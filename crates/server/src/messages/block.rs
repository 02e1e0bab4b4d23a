//! Blocks of messages, and the conversation that they form.

use foretoken_model::{Detail, Role, Tool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::conversation::{BETWEEN, Builder, Input};
use crate::picture_file::in_base64;
use crate::refusal::Refusal;

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
    expecting = "expected a string, or a list of blocks of type 'text', 'image', 'thinking', 'tool_use' or \
                 'tool_result'"
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
    Image {
        source: Source,
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

/// Place of a picture; addresses and files are refused.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source {
    Base64 { data: String },
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
pub fn conversation(system: &str, messages: Vec<Message>) -> Result<Input, Refusal> {
    let mut builder = Builder::default();
    if !system.is_empty() {
        builder.text(Role::System, system);
    }
    for (at, Message { role, content }) in messages.into_iter().enumerate() {
        let role = match role.as_str() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => return Err(Refusal::bad_field(&format!("messages[{at}].role"), "user or assistant")),
        };
        match content {
            Content::Text(text) => builder.text(role, &text),
            Content::Blocks(blocks) => {
                let field = format!("messages[{at}].content");
                blocks.into_iter().try_for_each(|block| add(block, role, &field, &mut builder))?;
            }
        }
    }
    builder.finish("messages")
}

fn add(block: Block, role: Role, field: &str, builder: &mut Builder) -> Result<(), Refusal> {
    match (block, role) {
        (Block::Text { text }, _) => builder.text(role, &text),
        (Block::Image { source: Source::Base64 { data } }, Role::User) => {
            builder.picture(in_base64(&data, field)?, Detail::default());
        }
        (Block::Thinking { thinking }, Role::Assistant) => builder.thinking(&thinking),
        (Block::RedactedThinking {}, Role::Assistant) => {}
        (Block::ToolUse { id, name, input }, Role::Assistant) => {
            if !Tool::is_name(&name) {
                return Err(Refusal::bad_name(field));
            }
            builder.call(ToolCall { id, name, arguments: input });
        }
        (Block::ToolResult { tool_use_id, content, is_error }, Role::User) => {
            let content = content.map(|texts| texts.joined(|_| true)).unwrap_or_default();
            let error = if is_error.unwrap_or(false) { ERROR } else { "" };
            builder.result(tool_use_id, [error, &content].concat());
        }
        _ => {
            let expected = "thinking and tool_use of the assistant, image and tool_result of the user";
            return Err(Refusal::bad_field(field, expected));
        }
    }
    Ok(())
}
