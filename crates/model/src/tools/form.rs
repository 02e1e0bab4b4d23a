//! Texts around a call.

use super::ToolCall;
use crate::template::python_json;

/// Texts around the parts of a call, whose arguments are one JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallForm {
    /// Text that begins a call.
    pub open: &'static str,
    /// Text between `open` and the tool's name.
    pub before_name: &'static str,
    /// Text between the name and the arguments.
    pub before_arguments: &'static str,
    /// Text after the arguments, which ends the call.
    pub close: &'static str,
    /// Text between two calls; `None` where a reply has one call at most.
    pub between: Option<&'static str>,
    /// `true` where only the beginning of a reply can begin a call.
    pub only_first: bool,
}

impl CallForm {
    /// Form of Hermes, Qwen 2.5 and 3, and Granite 4, and of models whose template knows no tools.
    pub const HERMES: Self = Self {
        open: "<tool_call>",
        before_name: "\n{\"name\": \"",
        before_arguments: "\", \"arguments\": ",
        close: "}\n</tool_call>",
        between: Some("\n"),
        only_first: false,
    };

    /// Form of Llama 3.1 and later.
    pub const LLAMA: Self = Self {
        open: "{\"name\": \"",
        before_name: "",
        before_arguments: "\", \"parameters\": ",
        close: "}",
        between: None,
        only_first: true,
    };

    /// Known forms.
    pub const ALL: [Self; 2] = [Self::HERMES, Self::LLAMA];

    /// Returns a call as a model writes it.
    pub fn written(&self, call: &ToolCall) -> String {
        let arguments = python_json(&call.arguments);
        [self.open, self.before_name, &call.name, self.before_arguments, &arguments, self.close].concat()
    }

    /// Returns calls as a model writes them one after the other.
    pub fn all_written(&self, calls: &[ToolCall]) -> String {
        let calls: Vec<String> = calls.iter().map(|call| self.written(call)).collect();
        calls.join(self.between.unwrap_or_default())
    }
}
