//! Tools that a model may call, and the forms in which models write calls. Knows nothing of what a
//! tool does.
//!
//! - [`Tool`], [`ToolCall`]: as programs describe them
//! - [`CallForm`]: texts around a call, by which a model's template writes it; `forms` lists them,
//!   `arguments` has the forms of arguments, `mark` the markers that are tokens
//! - [`TemplateTools`]: what a template writes by itself
//! - [`CallParser`]: finds the calls of a reply while it is written
//! - [`Written`]: a reply taken apart
//! - [`for_template`]: conversations with tools as a template can render them

mod arguments;
mod conversation;
mod form;
mod forms;
mod mark;
mod parser;
mod template;
#[cfg(test)]
mod tests;
mod written;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use arguments::{ArgumentForm, Tags, sort_key};
pub use conversation::for_template;
pub use form::{CallForm, ID_LENGTH, ID_PART, Place};
pub(crate) use mark::HEADER;
pub use mark::{MARKS, unmarked};
pub use parser::{CallParser, Piece};
pub use template::TemplateTools;
pub use written::{Written, call_id};

/// Longest name of a tool, in bytes: names of an agent's tools contain those of their servers.
pub const LONGEST_NAME: usize = 128;

/// Description of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub description: Option<String>,
    /// JSON schema of its arguments, an object.
    pub parameters: Value,
}

/// Call of a tool, as part of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Name of the call, unique within its conversation.
    pub id: String,
    pub name: String,
    pub arguments: Map<String, Value>,
}

impl Tool {
    /// Returns whether a tool may have this name: letters, digits, `_` and `-` of ASCII.
    pub fn is_name(name: &str) -> bool {
        let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(valid)
    }

    /// Returns whether an argument is a text: its schema is of type string, or lists only texts.
    pub fn takes_text(&self, argument: &str) -> bool {
        let schema = &self.parameters["properties"][argument];
        let texts = || schema["enum"].as_array().is_some_and(|values| values.iter().all(Value::is_string));
        schema["type"] == "string" || schema["type"].is_null() && texts()
    }

    /// JSON of a tool in templates and in OpenAI's protocol.
    pub fn json(&self) -> Value {
        let mut function = Map::new();
        function.insert("name".to_owned(), self.name.as_str().into());
        if let Some(description) = &self.description {
            function.insert("description".to_owned(), description.as_str().into());
        }
        function.insert("parameters".to_owned(), self.parameters.clone());
        json!({ "type": "function", "function": function })
    }
}

impl ToolCall {
    /// JSON of a call in templates. The arguments are an object, as most templates expect them.
    pub(crate) fn json(&self) -> Value {
        let Self { id, name, arguments } = self;
        json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
    }
}
