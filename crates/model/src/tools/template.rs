//! Tools, calls and results as a chat template writes them by itself.

use serde_json::json;

use super::{CallForm, Tool, ToolCall};
use crate::error::Result;
use crate::template::{ChatMessage, Conversation, Role};

/// Form of a model's calls, and what its template writes. The rest has to be text in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateTools {
    pub form: CallForm,
    /// `true` if the template lists the tools.
    pub lists: bool,
    /// `true` if it writes calls.
    pub calls: bool,
    /// `true` if it has a place for results.
    pub results: bool,
}

impl TemplateTools {
    /// A template that knows no tools.
    pub const NONE: Self = Self { form: CallForm::HERMES, lists: false, calls: false, results: false };

    /// Tries a template with this source on a made-up call, which `render` renders.
    pub(crate) fn of(source: &str, render: impl Fn(&Conversation<'_>) -> Result<String>) -> Self {
        if !source.contains("tool") {
            return Self::NONE;
        }
        let rendered = |has_call: bool, has_result: bool| {
            let tools = [tool()];
            let messages = conversation(has_call, has_result);
            render(&Conversation { messages: &messages, tools: &tools, thinking: None }).ok()
        };
        let whole = rendered(true, true);
        let written = whole.as_deref().and_then(|text| {
            let call = call();
            CallForm::ALL.into_iter().find(|form| text.contains(&form.in_template(&call)))
        });
        let Some(form) = written.or_else(|| CallForm::hinted(source)) else { return Self::NONE };
        let has = |text: &Option<String>, part| text.as_ref().is_some_and(|text| text.contains(part));
        Self {
            form,
            lists: has(&rendered(false, false), DESCRIPTION),
            calls: written.is_some(),
            results: has(&whole, RESULT) || has(&rendered(false, true), RESULT),
        }
    }

    /// Returns whether the template writes tools, calls and results.
    pub fn is_complete(&self) -> bool {
        self.lists && self.calls && self.results
    }
}

const DESCRIPTION: &str = "Tells the height of a hill.";
const RESULT: &str = "7421 metres";

fn tool() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": { "hill": { "type": "string" } },
        "required": ["hill"]
    });
    Tool { name: "height_of".to_owned(), description: Some(DESCRIPTION.to_owned()), parameters }
}

fn call() -> ToolCall {
    let arguments = json!({ "hill": "Fox" }).as_object().cloned().unwrap_or_default();
    ToolCall { id: "a1b2c3d4e".to_owned(), name: "height_of".to_owned(), arguments }
}

fn conversation(has_call: bool, has_result: bool) -> Vec<ChatMessage> {
    let mut messages = vec![ChatMessage::new(Role::User, "How high is it?")];
    if has_call {
        messages.push(ChatMessage { calls: vec![call()], ..ChatMessage::new(Role::Assistant, "") });
    }
    if has_result {
        let call_id = Some(call().id);
        messages.push(ChatMessage { call_id, ..ChatMessage::new(Role::Tool, RESULT) });
    }
    messages
}
