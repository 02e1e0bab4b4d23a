//! Checks of the tools that a request offers.

use foretoken_engine::session::{ToolChoice, ToolUse};
use foretoken_model::Tool;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::refusal::Refusal;

/// Most tools of a request; agents with several servers of tools send some hundreds.
const MOST: usize = 1024;

/// Choice of a tool in one word, as OpenAI's protocols have it.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    None,
    Auto,
    Required,
}

impl Word {
    /// Returns the choice; `None` if the model gets no tools.
    pub fn choice(self) -> Option<ToolChoice> {
        match self {
            Self::None => None,
            Self::Auto => Some(ToolChoice::Auto),
            Self::Required => Some(ToolChoice::Required),
        }
    }
}

/// Choice of a request.
pub struct Choice {
    /// `None` if the model gets no tools.
    pub choice: Option<ToolChoice>,
    /// Names of the tools that may be called; `None` for all.
    pub allowed: Option<Vec<String>>,
}

impl From<Option<ToolChoice>> for Choice {
    fn from(choice: Option<ToolChoice>) -> Self {
        Self { choice, allowed: None }
    }
}

/// Schema of a tool that declares no parameters.
pub fn no_parameters() -> Value {
    json!({ "type": "object", "properties": {} })
}

/// Returns the tools of a request; `None` if the model gets none.
///
/// # Errors
/// Refuses invalid and repeated names, too many tools, and choices that are no tools.
pub fn checked(
    tools: Vec<Tool>,
    Choice { choice, allowed }: Choice,
    parallel: bool,
) -> Result<Option<ToolUse>, Refusal> {
    if tools.len() > MOST {
        return Err(Refusal::bad_field("tools", &format!("at most {MOST} tools")));
    }
    for (at, tool) in tools.iter().enumerate() {
        if !Tool::is_name(&tool.name) {
            return Err(Refusal::bad_name("tools"));
        }
        if tools[..at].iter().any(|other| other.name == tool.name) {
            return Err(Refusal::bad_field("tools", "tools of different names"));
        }
        if !tool.parameters.is_object() {
            return Err(Refusal::bad_field("tools", "parameters that are a JSON schema"));
        }
    }
    let known = |name: &String| tools.iter().any(|tool| tool.name == *name);
    if allowed.as_ref().is_some_and(|allowed| allowed.is_empty() || !allowed.iter().all(known)) {
        return Err(Refusal::bad_field("tool_choice", "the names of some of the tools"));
    }
    match choice {
        None => Ok(None),
        Some(ToolChoice::Named(name)) if !known(&name) => {
            Err(Refusal::bad_field("tool_choice", "the name of one of the tools"))
        }
        Some(ToolChoice::Required) if tools.is_empty() => {
            Err(Refusal::bad_field("tools", "at least one tool"))
        }
        Some(_) if tools.is_empty() => Ok(None),
        Some(choice) => Ok(Some(ToolUse { tools, choice, parallel, allowed })),
    }
}
