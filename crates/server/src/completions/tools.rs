//! Tools and calls in the bodies of chat completions.

use foretoken_engine::session::{ToolChoice, ToolUse};
use foretoken_model::{Tool, ToolCall};
use serde::Deserialize;
use serde_json::Value;

use crate::fields::arguments_in;
use crate::refusal::Refusal;
use crate::tool_use::{Choice, Word, checked, no_parameters};

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolBody {
    Function { function: Function },
}

#[derive(Deserialize)]
pub struct Function {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected none, auto, required, a function's name, or allowed tools")]
pub enum ToolChoiceBody {
    Word(Word),
    Function { function: Named },
    Allowed { allowed_tools: Allowed },
}

/// Some of the tools, and whether one has to be called.
#[derive(Deserialize)]
pub struct Allowed {
    mode: Word,
    tools: Vec<AllowedTool>,
}

#[derive(Deserialize)]
struct AllowedTool {
    function: Named,
}

#[derive(Deserialize)]
pub struct Named {
    name: String,
}

/// Call in a message of the assistant; its arguments are JSON in a string.
#[derive(Deserialize)]
pub struct ToolCallBody {
    id: String,
    function: CalledFunction,
}

#[derive(Deserialize)]
struct CalledFunction {
    name: String,
    arguments: String,
}

impl ToolCallBody {
    /// # Errors
    /// Refuses names that no tool may have, and arguments that are no JSON object. `field` is part
    /// of the message.
    pub fn call(self, field: &str) -> Result<ToolCall, Refusal> {
        let Self { id, function: CalledFunction { name, arguments } } = self;
        if !Tool::is_name(&name) {
            return Err(Refusal::bad_name(field));
        }
        Ok(ToolCall { id, name, arguments: arguments_in(&arguments, field)? })
    }
}

/// Returns the tools of a request; `None` if the model gets none.
///
/// # Errors
/// Those of [`checked`].
pub fn tool_use(
    tools: Option<Vec<ToolBody>>,
    choice: Option<ToolChoiceBody>,
    parallel: Option<bool>,
) -> Result<Option<ToolUse>, Refusal> {
    let tool = |ToolBody::Function { function: Function { name, description, parameters } }| Tool {
        name,
        description,
        parameters: parameters.unwrap_or_else(no_parameters),
    };
    let choice = match choice {
        None => Some(ToolChoice::Auto).into(),
        Some(ToolChoiceBody::Word(word)) => word.choice().into(),
        Some(ToolChoiceBody::Function { function: Named { name } }) => Some(ToolChoice::Named(name)).into(),
        Some(ToolChoiceBody::Allowed { allowed_tools: Allowed { mode, tools } }) => {
            let names = tools.into_iter().map(|tool| tool.function.name);
            Choice { choice: mode.choice(), allowed: Some(names.collect()) }
        }
    };
    let tools = tools.unwrap_or_default().into_iter().map(tool).collect();
    checked(tools, choice, parallel.unwrap_or(true))
}
