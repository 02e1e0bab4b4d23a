//! Tools and calls in request bodies.

use foretoken_model::{Tool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::refusal::Refusal;
use crate::tool_use::{ToolChoice, ToolUse};

/// Most tools of a request; agents with several servers of tools send some hundreds.
const MOST: usize = 1024;

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
#[serde(untagged, expecting = "expected none, auto, required, or a function's name")]
pub enum ToolChoiceBody {
    Word(Word),
    Function { function: Named },
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    None,
    Auto,
    Required,
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
            return Err(bad_name(field));
        }
        let arguments = if arguments.trim().is_empty() {
            Map::new()
        } else {
            let parsed: Result<Map<String, Value>, _> = serde_json::from_str(&arguments);
            parsed.map_err(|_| Refusal::bad_field(field, "arguments that are a JSON object in a string"))?
        };
        Ok(ToolCall { id, name, arguments })
    }
}

/// Returns the tools of a request; `None` if the model gets none.
///
/// # Errors
/// Refuses invalid and repeated names, too many tools, and a choice that is no tool.
pub fn tool_use(
    tools: Option<Vec<ToolBody>>,
    choice: Option<ToolChoiceBody>,
    parallel: Option<bool>,
) -> Result<Option<ToolUse>, Refusal> {
    let tools = tools.unwrap_or_default();
    if tools.len() > MOST {
        return Err(Refusal::bad_field("tools", &format!("at most {MOST} tools")));
    }
    let mut list: Vec<Tool> = Vec::with_capacity(tools.len());
    for ToolBody::Function { function: Function { name, description, parameters } } in tools {
        if !Tool::is_name(&name) {
            return Err(bad_name("tools"));
        }
        if list.iter().any(|other| other.name == name) {
            return Err(Refusal::bad_field("tools", "tools of different names"));
        }
        let parameters = parameters.unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
        if !parameters.is_object() {
            return Err(Refusal::bad_field("tools", "parameters that are a JSON schema"));
        }
        list.push(Tool { name, description, parameters });
    }
    let choice = match choice {
        Some(ToolChoiceBody::Word(Word::None)) => return Ok(None),
        None | Some(ToolChoiceBody::Word(Word::Auto)) => ToolChoice::Auto,
        Some(ToolChoiceBody::Word(Word::Required)) => ToolChoice::Required,
        Some(ToolChoiceBody::Function { function: Named { name } }) => ToolChoice::Named(name),
    };
    let known = |name: &String| list.iter().any(|tool| tool.name == *name);
    match &choice {
        ToolChoice::Named(name) if !known(name) => {
            Err(Refusal::bad_field("tool_choice", "the name of one of the tools"))
        }
        ToolChoice::Required if list.is_empty() => Err(Refusal::bad_field("tools", "at least one tool")),
        _ if list.is_empty() => Ok(None),
        _ => Ok(Some(ToolUse { tools: list, choice, parallel: parallel.unwrap_or(true) })),
    }
}

fn bad_name(field: &str) -> Refusal {
    Refusal::bad_field(field, "names of 1 to 64 letters, digits, '_' and '-'")
}
