//! Items of a request's input, and the conversation that they form.

use foretoken_model::{Role, Tool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::tools::{custom_call, offered};
use crate::conversation::{BETWEEN, Builder, Input};
use crate::fields::{arguments_in, refused};
use crate::picture_file::{DetailBody, in_data_url};
use crate::refusal::Refusal;

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string or a list of items")]
pub enum InputBody {
    Text(String),
    Items(Vec<Map<String, Value>>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item {
    Message { role: String, content: Content },
    FunctionCall { call_id: String, name: String, arguments: String, namespace: Option<String> },
    FunctionCallOutput { call_id: String, output: Texts },
    CustomToolCall { call_id: String, name: String, input: String, namespace: Option<String> },
    CustomToolCallOutput { call_id: String, output: Texts },
    Reasoning { summary: Option<Vec<Text>>, content: Option<Vec<Text>> },
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a string, or a list of parts of type 'input_text', 'input_image' or 'output_text'"
)]
enum Content {
    One(String),
    Parts(Vec<Part>),
}

/// Part of a message.
#[derive(Deserialize)]
#[serde(untagged)]
enum Part {
    Text(Text),
    Image(Image),
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Image {
    #[serde(rename = "input_image")]
    Input { image_url: String, detail: Option<DetailBody> },
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

impl Text {
    fn text(self) -> String {
        match self {
            Self::Input { text }
            | Self::Output { text }
            | Self::Summary { text }
            | Self::Reasoning { text }
            | Self::Refusal { refusal: text } => text,
        }
    }
}

fn joined(parts: Vec<Text>) -> String {
    parts.into_iter().map(Text::text).collect::<Vec<String>>().join(BETWEEN)
}

/// Returns the conversation of a request.
///
/// # Errors
/// Refuses an input without messages, unknown items and roles, names that no tool may have, and
/// arguments that are no JSON object.
pub fn conversation(instructions: Option<&str>, input: Option<InputBody>) -> Result<Input, Refusal> {
    let mut builder = Builder::default();
    if let Some(instructions) = instructions.filter(|text| !text.is_empty()) {
        builder.text(Role::System, instructions);
    }
    match input {
        Some(InputBody::Text(text)) => builder.text(Role::User, &text),
        Some(InputBody::Items(items)) => {
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
        Item::Message { role, content } => message(role_of(&role, field)?, content, field, builder)?,
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

/// Adds a message. Only the user shows pictures.
fn message(role: Role, content: Content, field: &str, builder: &mut Builder) -> Result<(), Refusal> {
    let parts = match content {
        Content::One(text) => {
            builder.text(role, &text);
            return Ok(());
        }
        Content::Parts(parts) => parts,
    };
    builder.text(role, "");
    for part in parts {
        match part {
            Part::Text(text) => builder.text(role, &text.text()),
            Part::Image(Image::Input { image_url, detail }) if role == Role::User => {
                builder.picture(in_data_url(&image_url, field)?, detail.unwrap_or_default().into());
            }
            Part::Image(_) => return Err(Refusal::bad_field(field, "pictures in messages of the user")),
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
