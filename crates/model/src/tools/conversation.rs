//! Conversations with tools as a template can render them. What it does not write by itself is
//! text: the tools are part of the first system message, calls are text of the model, and results
//! are messages of the user.

use std::collections::HashMap;

use super::{CallForm, TemplateTools, Tool, ToolCall, call_id};
use crate::template::{ChatMessage, Conversation, Role, python_json};

/// Returns the tools and messages of `conversation` for a template. Calls have ids that every
/// template accepts. Where a message has one call at most, further ones are messages of their own.
pub fn for_template(
    conversation: &Conversation<'_>,
    template: &TemplateTools,
) -> (Vec<Tool>, Vec<ChatMessage>) {
    let mut messages = with_short_ids(conversation.messages);
    if template.form.between.is_none() {
        messages = with_single_calls(&messages);
    }
    if !template.calls {
        messages.iter_mut().for_each(|message| write_calls(message, &template.form));
    }
    if !template.results {
        messages = with_results_as_text(messages);
    }
    if template.lists || conversation.tools.is_empty() {
        return (conversation.tools.to_vec(), messages);
    }
    let explained = explained(conversation.tools, &template.form);
    match messages.first_mut().filter(|first| first.role == Role::System) {
        Some(system) => system.content = [&system.content, "\n\n", &explained].concat(),
        None => messages.insert(0, ChatMessage::new(Role::System, explained)),
    }
    (Vec::new(), messages)
}

/// Numbers the calls: Mistral's templates refuse ids that do not have nine letters and digits.
fn with_short_ids(messages: &[ChatMessage]) -> Vec<ChatMessage> {
    let mut messages = messages.to_vec();
    let mut ids: HashMap<String, String> = HashMap::new();
    let mut made = 0;
    for message in &mut messages {
        for call in &mut message.calls {
            let short = call_id(made);
            made += 1;
            ids.insert(std::mem::replace(&mut call.id, short.clone()), short);
        }
        if let Some(id) = &mut message.call_id {
            // A result without a call has no number of its own.
            *id = ids.get(id).cloned().unwrap_or_else(|| call_id(made));
        }
    }
    messages
}

/// Splits messages with several calls; each call is followed by its result.
fn with_single_calls(messages: &[ChatMessage]) -> Vec<ChatMessage> {
    let mut split: Vec<ChatMessage> = Vec::with_capacity(messages.len());
    let mut rest = messages;
    while let Some((message, after)) = rest.split_first() {
        let results = after.iter().take_while(|next| next.role == Role::Tool).count();
        let (results, after) = after.split_at(results);
        if message.calls.len() < 2 {
            split.push(message.clone());
            split.extend(results.iter().cloned());
            rest = after;
            continue;
        }
        for (number, call) in message.calls.iter().enumerate() {
            let first = ChatMessage { calls: vec![call.clone()], ..message.clone() };
            let later = ChatMessage { content: String::new(), thinking: None, ..first.clone() };
            split.push(if number == 0 { first } else { later });
            split.extend(results.iter().filter(|result| result.call_id.as_ref() == Some(&call.id)).cloned());
        }
        let is_of_none = |result: &&ChatMessage| {
            message.calls.iter().all(|call| result.call_id.as_ref() != Some(&call.id))
        };
        split.extend(results.iter().filter(is_of_none).cloned());
        rest = after;
    }
    split
}

fn write_calls(message: &mut ChatMessage, form: &CallForm) {
    let calls: Vec<ToolCall> = std::mem::take(&mut message.calls);
    if !calls.is_empty() {
        let between = if message.content.is_empty() { "" } else { "\n" };
        message.content = [&message.content, between, &form.all_written(&calls)].concat();
    }
}

/// Makes results messages of the user. Templates expect one of these at a time.
fn with_results_as_text(messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
    let mut written: Vec<ChatMessage> = Vec::with_capacity(messages.len());
    let mut after_result = false;
    for message in messages {
        let is_result = message.role == Role::Tool;
        match written.last_mut() {
            Some(last) if is_result && after_result => {
                last.content.push('\n');
                last.content.push_str(&result(&message.content));
            }
            _ if is_result => written.push(ChatMessage::new(Role::User, result(&message.content))),
            _ => written.push(message),
        }
        after_result = is_result;
    }
    written
}

fn result(content: &str) -> String {
    ["<tool_response>\n", content, "\n</tool_response>"].concat()
}

/// Text that explains `tools` and how to call them.
fn explained(tools: &[Tool], form: &CallForm) -> String {
    let list: Vec<String> = tools.iter().map(|tool| python_json(&tool.json())).collect();
    let before = [form.begin, form.open, form.before_name, "NAME", form.before_arguments].concat();
    let call = [&before, "{ARGUMENTS}", form.close, form.end].concat();
    format!(
        "You can call these tools, one JSON object per line:\n{}\n\nTo call a tool, write its name and its \
         arguments like this, and wait for the result:\n{}\nIf no tool helps, answer without one.",
        list.join("\n"),
        call
    )
}
