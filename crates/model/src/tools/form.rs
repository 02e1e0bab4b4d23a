//! Texts around a call.

use serde_json::Value;

use super::ToolCall;
use crate::template::python_json;

/// Texts around the parts of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallForm {
    /// Text that begins a call.
    pub open: &'static str,
    /// Text between `open` and the tool's name.
    pub before_name: &'static str,
    /// Text between the name and the arguments.
    pub before_arguments: &'static str,
    pub arguments: ArgumentForm,
    /// Text after the arguments, which ends the call.
    pub close: &'static str,
    /// Text between two calls; `None` where a reply has one call at most.
    pub between: Option<&'static str>,
    /// `true` where only the beginning of a reply can begin a call.
    pub only_first: bool,
}

/// Form of a call's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentForm {
    /// One JSON object.
    Json,
    /// One after the other between tags, a text as it is and other values as JSON; see
    /// [`Tool::takes_text`](super::Tool::takes_text).
    Tags,
}

/// Texts around an argument between tags, and between its name and value.
pub const TAG_OPEN: &str = "<parameter=";
pub const TAG_NAMED: &str = ">\n";
pub const TAG_CLOSE: &str = "\n</parameter>\n";

impl CallForm {
    /// Form of Hermes, Qwen 2.5 and 3, and Granite 4, and of models whose template knows no tools.
    pub const HERMES: Self = Self {
        open: "<tool_call>",
        before_name: "\n{\"name\": \"",
        before_arguments: "\", \"arguments\": ",
        arguments: ArgumentForm::Json,
        close: "}\n</tool_call>",
        between: Some("\n"),
        only_first: false,
    };

    /// Form of Llama 3.1 and later.
    pub const LLAMA: Self = Self {
        open: "{\"name\": \"",
        before_name: "",
        before_arguments: "\", \"parameters\": ",
        arguments: ArgumentForm::Json,
        close: "}",
        between: None,
        only_first: true,
    };

    /// Form of Qwen3-Coder and Qwen 3.5.
    pub const QWEN_CODER: Self = Self {
        open: "<tool_call>",
        before_name: "\n<function=",
        before_arguments: ">\n",
        arguments: ArgumentForm::Tags,
        close: "</function>\n</tool_call>",
        between: Some("\n"),
        only_first: false,
    };

    /// Known forms.
    pub const ALL: [Self; 3] = [Self::HERMES, Self::LLAMA, Self::QWEN_CODER];

    /// Returns a call as a model writes it.
    pub fn written(&self, call: &ToolCall) -> String {
        let arguments = match self.arguments {
            ArgumentForm::Json => python_json(&call.arguments),
            ArgumentForm::Tags => call.arguments.iter().map(|(name, value)| tagged(name, value)).collect(),
        };
        [self.open, self.before_name, &call.name, self.before_arguments, &arguments, self.close].concat()
    }

    /// Returns calls as a model writes them one after the other.
    pub fn all_written(&self, calls: &[ToolCall]) -> String {
        let calls: Vec<String> = calls.iter().map(|call| self.written(call)).collect();
        calls.join(self.between.unwrap_or_default())
    }
}

/// Argument between tags.
fn tagged(name: &str, value: &Value) -> String {
    let value = value.as_str().map_or_else(|| python_json(value), str::to_owned);
    [TAG_OPEN, name, TAG_NAMED, &value, TAG_CLOSE].concat()
}
