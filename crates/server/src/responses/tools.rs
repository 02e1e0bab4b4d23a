//! Tools in the bodies of requests for responses, and the names under which the model gets them.

use foretoken_engine::session::{ToolChoice, ToolUse};
use foretoken_model::{Tool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::refusal::Refusal;
use crate::tool_use::{Choice, Word, checked, no_parameters};

/// Text between the names of a namespace and of a tool in it.
const BETWEEN: &str = "__";

/// Argument of a custom tool, whose input is one text.
const INPUT: &str = "input";

/// Tool of a client, or one that only OpenAI's servers have.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolBody {
    Function {
        name: String,
        description: Option<String>,
        parameters: Option<Value>,
    },
    /// Tool whose input is text, perhaps of a grammar.
    Custom {
        name: String,
        description: Option<String>,
        format: Option<CustomFormat>,
    },
    Namespace {
        name: String,
        tools: Vec<ToolBody>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CustomFormat {
    Text,
    Grammar { syntax: Syntax, definition: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Syntax {
    Lark,
    Regex,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected none, auto, required, a function's or custom tool's name, or allowed tools"
)]
pub enum ToolChoiceBody {
    Word(Word),
    Named(Named),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Named {
    Function {
        name: String,
        namespace: Option<String>,
    },
    Custom {
        name: String,
        namespace: Option<String>,
    },
    /// Some of the tools, and whether one has to be called.
    AllowedTools {
        mode: Word,
        tools: Vec<AllowedTool>,
    },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AllowedTool {
    Function {
        name: String,
        namespace: Option<String>,
    },
    Custom {
        name: String,
        namespace: Option<String>,
    },
    /// Tool that only OpenAI's servers have.
    #[serde(other)]
    Other,
}

impl AllowedTool {
    /// Name under which the model gets the tool; `None` for one that it does not get.
    fn offered(self) -> Option<String> {
        match self {
            Self::Function { name, namespace } | Self::Custom { name, namespace } => {
                Some(offered(namespace.as_deref(), &name))
            }
            Self::Other => None,
        }
    }
}

/// Tool by the name that the model gets, and as its client knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTool {
    offered: String,
    pub name: String,
    pub namespace: Option<String>,
    pub is_custom: bool,
}

/// Tools of a request as its client knows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownTools(Vec<KnownTool>);

impl KnownTools {
    /// The tool that the model called by this name.
    pub fn get(&self, offered: &str) -> Option<&KnownTool> {
        self.0.iter().find(|tool| tool.offered == offered)
    }
}

/// Returns the tools of a request, `None` if the model gets none, and how its client knows them.
///
/// # Errors
/// Those of [`checked`].
pub fn tool_use(
    tools: Option<Vec<ToolBody>>,
    choice: Option<ToolChoiceBody>,
    parallel: bool,
) -> Result<(Option<ToolUse>, KnownTools), Refusal> {
    let (mut list, mut known) = (Vec::new(), KnownTools::default());
    for tool in tools.unwrap_or_default() {
        match tool {
            ToolBody::Namespace { name, tools } => {
                tools.into_iter().for_each(|tool| add(tool, Some(&name), &mut list, &mut known));
            }
            tool => add(tool, None, &mut list, &mut known),
        }
    }
    let choice = match choice {
        None => Some(ToolChoice::Auto).into(),
        Some(ToolChoiceBody::Word(word)) => word.choice().into(),
        Some(ToolChoiceBody::Named(Named::AllowedTools { mode, tools })) => {
            let names = tools.into_iter().filter_map(AllowedTool::offered);
            Choice { choice: mode.choice(), allowed: Some(names.collect()) }
        }
        Some(ToolChoiceBody::Named(
            Named::Function { name, namespace } | Named::Custom { name, namespace },
        )) => Some(ToolChoice::Named(offered(namespace.as_deref(), &name))).into(),
    };
    Ok((checked(list, choice, parallel)?, known))
}

/// Adds a tool, unless only OpenAI's servers have it.
fn add(tool: ToolBody, namespace: Option<&String>, list: &mut Vec<Tool>, known: &mut KnownTools) {
    let (name, description, parameters, is_custom) = match tool {
        ToolBody::Function { name, description, parameters } => {
            (name, description, parameters.unwrap_or_else(no_parameters), false)
        }
        ToolBody::Custom { name, description, format } => {
            let (description, parameters) = custom(description.unwrap_or_default(), format);
            (name, Some(description), parameters, true)
        }
        ToolBody::Namespace { .. } | ToolBody::Other => {
            tracing::info!("a request offers a tool that only its service has; it is left out");
            return;
        }
    };
    let offered = offered(namespace.map(String::as_str), &name);
    known.0.push(KnownTool { offered: offered.clone(), name, namespace: namespace.cloned(), is_custom });
    list.push(Tool { name: offered, description, parameters });
}

/// Description and parameters of a custom tool. A regular expression is kept to; a grammar is part
/// of the description.
fn custom(mut description: String, format: Option<CustomFormat>) -> (String, Value) {
    let mut input = json!({ "type": "string" });
    match format {
        Some(CustomFormat::Grammar { syntax: Syntax::Regex, definition }) => {
            input["pattern"] = format!("^(?:{definition})$").into();
        }
        Some(CustomFormat::Grammar { syntax: Syntax::Lark, definition }) => {
            description.push_str("\n\nThe input follows this Lark grammar:\n");
            description.push_str(&definition);
        }
        Some(CustomFormat::Text) | None => {}
    }
    let parameters = json!({
        "type": "object",
        "properties": { INPUT: input },
        "required": [INPUT],
        "additionalProperties": false,
    });
    (description, parameters)
}

/// Name under which the model gets a tool.
pub fn offered(namespace: Option<&str>, name: &str) -> String {
    namespace.map_or_else(|| name.to_owned(), |namespace| [namespace, BETWEEN, name].concat())
}

/// Call of a custom tool, as the model wrote it.
pub fn custom_call(id: String, name: String, input: String) -> ToolCall {
    let arguments = Map::from_iter([(INPUT.to_owned(), input.into())]);
    ToolCall { id, name, arguments }
}

/// Input in the arguments of a custom tool; empty if they were cut.
pub fn custom_input(arguments: &str) -> String {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    arguments[INPUT].as_str().unwrap_or_default().to_owned()
}
