//! Items of a request's input, and the conversation that they form.

use foretoken_model::{ChatMessage, Role, Tool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::tools::{custom_call, offered};
use crate::conversation::{BETWEEN, Builder};
use crate::fields::{arguments_in, refused};
use crate::refusal::Refusal;

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string or a list of items")]
pub enum Input {
    Text(String),
    Items(Vec<Map<String, Value>>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item {
    Message { role: String, content: Texts },
    FunctionCall { call_id: String, name: String, arguments: String, namespace: Option<String> },
    FunctionCallOutput { call_id: String, output: Texts },
    CustomToolCall { call_id: String, name: String, input: String, namespace: Option<String> },
    CustomToolCallOutput { call_id: String, output: Texts },
    Reasoning { summary: Option<Vec<Text>>, content: Option<Vec<Text>> },
}

/// Text, as one string or in parts.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string, or a list of parts of type 'input_text' or 'output_text'")]
enum Texts {
    One(String),
    Parts(Vec<Text>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Text {
    #[serde(rename = "input_text")]
    Input {
        text: String,
    },
    #[serde(rename = "output_text")]
    Output {
        text: String,
    },
    #[serde(rename = "summary_text")]
    Summary {
        text: String,
    },
    #[serde(rename = "reasoning_text")]
    Reasoning {
        text: String,
    },
    Refusal {
        refusal: String,
    },
}

impl Texts {
    fn joined(self) -> String {
        match self {
            Self::One(text) => text,
            Self::Parts(parts) => joined(parts),
        }
    }
}

fn joined(parts: Vec<Text>) -> String {
    let text = |part| match part {
        Text::Input { text }
        | Text::Output { text }
        | Text::Summary { text }
        | Text::Reasoning { text }
        | Text::Refusal { refusal: text } => text,
    };
    parts.into_iter().map(text).collect::<Vec<String>>().join(BETWEEN)
}

/// Returns the conversation of a request.
///
/// # Errors
/// Refuses an input without messages, unknown items and roles, names that no tool may have, and
/// arguments that are no JSON object.
pub fn conversation(instructions: Option<&str>, input: Option<Input>) -> Result<Vec<ChatMessage>, Refusal> {
    let mut builder = Builder::default();
    if let Some(instructions) = instructions.filter(|text| !text.is_empty()) {
        builder.text(Role::System, instructions);
    }
    match input {
        Some(Input::Text(text)) => builder.text(Role::User, &text),
        Some(Input::Items(items)) => {
            for (at, item) in items.into_iter().enumerate() {
                add(item, &format!("input[{at}]"), &mut builder)?;
            }
        }
        None => {}
    }
    builder.finish("input")
}

/// Adds an item; one without a type is a message.
fn add(mut item: Map<String, Value>, field: &str, builder: &mut Builder) -> Result<(), Refusal> {
    item.entry("type").or_insert_with(|| "message".into());
    let item = serde_json::from_value(item.into()).map_err(|error| refused(&format!("{field}: {error}")))?;
    let name_of = |namespace: Option<String>, name: &str| {
        let name = offered(namespace.as_deref(), name);
        if Tool::is_name(&name) { Ok(name) } else { Err(Refusal::bad_name(field)) }
    };
    match item {
        Item::Message { role, content } => builder.text(role_of(&role, field)?, &content.joined()),
        Item::FunctionCall { call_id: id, name, arguments, namespace } => {
            let name = name_of(namespace, &name)?;
            builder.call(ToolCall { id, name, arguments: arguments_in(&arguments, field)? });
        }
        Item::CustomToolCall { call_id, name, input, namespace } => {
            builder.call(custom_call(call_id, name_of(namespace, &name)?, input));
        }
        Item::FunctionCallOutput { call_id, output } | Item::CustomToolCallOutput { call_id, output } => {
            builder.result(call_id, output.joined());
        }
        Item::Reasoning { summary, content } => {
            let text = joined(content.filter(|parts| !parts.is_empty()).or(summary).unwrap_or_default());
            if !text.is_empty() {
                builder.thinking(&text);
            }
        }
    }
    Ok(())
}

fn role_of(role: &str, field: &str) -> Result<Role, Refusal> {
    match role {
        "system" | "developer" => Ok(Role::System),
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        _ => {
            let expected = "system, developer, user or assistant";
            Err(Refusal::bad_field(&format!("{field}.role"), expected))
        }
    }
}
