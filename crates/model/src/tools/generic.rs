//! Conversations with tools for templates that know none: the tools are part of the first system
//! message, calls are text of the model, and results are messages of the user.

use super::{CallForm, Tool};
use crate::template::{ChatMessage, Conversation, Role, python_json};

/// Returns the messages of `conversation` without tools, calls and results.
pub fn as_text(conversation: &Conversation<'_>) -> Vec<ChatMessage> {
    let mut written: Vec<ChatMessage> = Vec::new();
    let mut after_result = false;
    for message in conversation.messages {
        let is_result = message.role == Role::Tool;
        match (message.role, written.last_mut()) {
            // Templates expect one message of the user at a time.
            (Role::Tool, Some(last)) if after_result => {
                last.content.push('\n');
                last.content.push_str(&result(&message.content));
            }
            (Role::Tool, _) => written.push(ChatMessage::new(Role::User, result(&message.content))),
            _ => written.push(ChatMessage {
                content: with_calls(message),
                calls: Vec::new(),
                ..message.clone()
            }),
        }
        after_result = is_result;
    }
    if !conversation.tools.is_empty() {
        let explained = explained(conversation.tools);
        match written.first_mut().filter(|first| first.role == Role::System) {
            Some(system) => system.content = [&system.content, "\n\n", &explained].concat(),
            None => written.insert(0, ChatMessage::new(Role::System, explained)),
        }
    }
    written
}

fn result(content: &str) -> String {
    ["<tool_response>\n", content, "\n</tool_response>"].concat()
}

fn with_calls(message: &ChatMessage) -> String {
    let between = if message.content.is_empty() || message.calls.is_empty() { "" } else { "\n" };
    [&message.content, between, &CallForm::HERMES.all_written(&message.calls)].concat()
}

/// Text that explains `tools` and how to call them.
fn explained(tools: &[Tool]) -> String {
    let list: Vec<String> = tools.iter().map(|tool| python_json(&tool.json())).collect();
    format!(
        "You can call these tools, one JSON object per line:\n{}\n\nTo call a tool, write its name and its \
         arguments like this, and wait for the result:\n<tool_call>\n{{\"name\": \"NAME\", \"arguments\": \
         {{ARGUMENTS}}}}\n</tool_call>\nIf no tool helps, answer without one.",
        list.join("\n")
    )
}
