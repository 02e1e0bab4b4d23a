//! Tools in the bodies of requests for messages.

use foretoken_engine::session::{ToolChoice, ToolUse};
use foretoken_model::Tool;
use serde::Deserialize;
use serde_json::Value;

use crate::refusal::Refusal;
use crate::tool_use::checked;

/// Tool of a client, or with a `type` of its own one that Anthropic's servers know.
#[derive(Deserialize)]
pub struct ToolBody {
    name: String,
    description: Option<String>,
    input_schema: Option<Value>,
    r#type: Option<String>,
}

#[derive(Deserialize)]
pub struct ToolChoiceBody {
    #[serde(flatten)]
    choice: Choice,
    disable_parallel_tool_use: Option<bool>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Choice {
    Auto,
    Any,
    None,
    Tool { name: String },
}

impl ToolBody {
    /// The tool; `None` for one that only Anthropic's servers know.
    fn tool(self) -> Option<Tool> {
        let Self { name, description, input_schema, r#type } = self;
        let is_known = r#type.as_deref().is_none_or(|kind| kind == "custom");
        let schema = input_schema.filter(|_| is_known);
        if schema.is_none() {
            // The name is a stranger's text of any length.
            tracing::info!("a request offers a tool that only its service has; it is left out");
        }
        schema.map(|parameters| Tool { name, description, parameters })
    }
}

/// Returns the tools of a request; `None` if the model gets none.
///
/// # Errors
/// Those of [`checked`].
pub fn tool_use(
    tools: Option<Vec<ToolBody>>,
    choice: Option<ToolChoiceBody>,
) -> Result<Option<ToolUse>, Refusal> {
    let (choice, single) = choice
        .map_or((None, None), |ToolChoiceBody { choice, disable_parallel_tool_use }| {
            (Some(choice), disable_parallel_tool_use)
        });
    let choice = match choice {
        None | Some(Choice::Auto) => Some(ToolChoice::Auto),
        Some(Choice::Any) => Some(ToolChoice::Required),
        Some(Choice::None) => None,
        Some(Choice::Tool { name }) => Some(ToolChoice::Named(name)),
    };
    let tools = tools.unwrap_or_default().into_iter().filter_map(ToolBody::tool).collect();
    checked(tools, choice.into(), !single.unwrap_or(false))
}
