//! Standard output of a server without a session: every answer is read as the session that asked
//! for it would read it. For tests of untrusted output.

use std::sync::Arc;

use rmcp::model::{JsonRpcMessage, ServerNotification, ServerResult};
use rmcp::service::{RoleClient, RxJsonRpcMessage, ServiceError};

use crate::error::{Error, Result, failure};
use crate::handler::Progress;
use crate::listing::Lists;
use crate::log::Log;
use crate::offer::{ListedTool, MOST_TOOLS, Offer, tell_apart};
use crate::outcome::Outcome;
use crate::prompt::{self, MOST_PROMPTS, ServerPrompt};
use crate::resource::{self, MOST_RESOURCES, ReadFile, ServerResource};
use crate::watched::Watched;

/// Everything that a server wrote, as far as it can be used.
#[derive(Debug, Default)]
pub struct Output {
    /// Tools of all lists, with names that differ.
    pub offers: Vec<Offer>,
    pub prompts: Vec<ServerPrompt>,
    pub resources: Vec<ServerResource>,
    /// Results of calls and texts of prompts.
    pub texts: Vec<String>,
    /// Texts of resources.
    pub files: Vec<String>,
    /// Lines of the log and messages of progress.
    pub lines: Vec<String>,
    /// Reasons why an answer cannot be used, and why the output ended.
    pub errors: Vec<Error>,
}

impl Output {
    /// Reads `bytes`, lines with a message each, of the server `name`. `read` returns the text of
    /// files in resources.
    pub fn of(name: &str, bytes: &[u8], read: ReadFile<'_>) -> Self {
        let log = Log::default();
        let mut output = Self::default();
        output.errors.extend(Watched::new((), log.clone(), Arc::default()).watch(bytes));
        let mut lists = Lists::default();
        for line in bytes.split(|&byte| byte == b'\n') {
            if let Ok(message) = serde_json::from_slice(line) {
                output.add(name, message, &mut lists, &log, read);
            }
        }
        output.offers = lists.tools.iter().map(|tool| Offer::of_server(name, tool)).collect();
        tell_apart(&mut output.offers);
        (output.prompts, output.resources) = (lists.prompts, lists.resources);
        output.lines.extend(log.all());
        output
    }

    fn add(
        &mut self,
        server: &str,
        message: RxJsonRpcMessage<RoleClient>,
        lists: &mut Lists,
        log: &Log,
        read: ReadFile<'_>,
    ) {
        match message {
            JsonRpcMessage::Response(response) => match response.result {
                ServerResult::ListToolsResult(list) => {
                    lists.tools.extend(list.tools.into_iter().filter_map(|tool| ListedTool::of(tool, log)));
                    lists.tools.truncate(MOST_TOOLS);
                }
                ServerResult::ListPromptsResult(list) => {
                    let listed = list.prompts.into_iter();
                    lists.prompts.extend(listed.filter_map(|prompt| ServerPrompt::of(server, prompt)));
                    lists.prompts.truncate(MOST_PROMPTS);
                }
                ServerResult::ListResourcesResult(list) => {
                    let listed = list.resources.into_iter();
                    lists.resources.extend(listed.filter_map(|listed| ServerResource::of(server, listed)));
                    lists.resources.truncate(MOST_RESOURCES);
                }
                ServerResult::ListResourceTemplatesResult(list) => {
                    let listed = list.resource_templates.into_iter();
                    let read = |listed| ServerResource::of_template(server, listed);
                    lists.resources.extend(listed.filter_map(read));
                    lists.resources.truncate(MOST_RESOURCES);
                }
                ServerResult::GetPromptResult(result) => {
                    let text = prompt::text_of("prompt", &result);
                    keep(text, &mut self.texts, &mut self.errors);
                }
                ServerResult::ReadResourceResult(result) => {
                    let text = resource::text_of("resource", &result, read, &|| false);
                    keep(text, &mut self.files, &mut self.errors);
                }
                ServerResult::CallToolResult(result) => self.texts.push(Outcome::of(&result).text),
                _ => {}
            },
            JsonRpcMessage::Notification(notification) => {
                if let ServerNotification::ProgressNotification(progress) = notification.notification {
                    self.lines.push(Progress::from(progress.params).message);
                }
            }
            JsonRpcMessage::Error(error) => {
                self.errors.push(failure(ServiceError::McpError(error.error)));
            }
            JsonRpcMessage::Request(_) => {}
        }
    }
}

fn keep(text: Result<String>, texts: &mut Vec<String>, errors: &mut Vec<Error>) {
    match text {
        Ok(text) => texts.push(text),
        Err(error) => errors.push(error),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_kind_of_answer_is_read_from_lines() {
        let answer = |result: Value| json!({ "jsonrpc": "2.0", "id": 1, "result": result }).to_string();
        let tool = json!({ "name": "read", "inputSchema": { "type": "object" } });
        let progress = json!({ "progressToken": 0, "progress": 0.5, "message": "half" });
        let lines = [
            "Listening".to_owned(),
            answer(json!({ "tools": [tool, tool] })),
            answer(json!({ "prompts": [{ "name": "greet" }] })),
            answer(json!({ "resources": [{ "uri": "note://a", "name": "a" }] })),
            answer(json!({ "resourceTemplates": [{ "uriTemplate": "note://{b}", "name": "b" }] })),
            answer(json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "Hi" } }] })),
            answer(json!({ "contents": [{ "uri": "note://a", "blob": "Zm94" }] })),
            answer(json!({ "content": [{ "type": "text", "text": "one" }] })),
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress }).to_string(),
            json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -1, "message": "no" } }).to_string(),
            "{".to_owned(),
        ];
        let read: ReadFile<'_> = &|bytes| Ok(String::from_utf8_lossy(bytes).into_owned());
        let output = Output::of("s", (lines.join("\n") + "\n").as_bytes(), read);
        let names: Vec<&str> = output.offers.iter().map(|offer| offer.name.as_str()).collect();
        assert_eq!(names, ["s__read", "s__read_2"]);
        let addresses: Vec<&str> = output.resources.iter().map(|listed| listed.uri.as_str()).collect();
        assert_eq!((addresses, output.prompts.len()), (vec!["note://a", "note://{b}"], 1));
        assert_eq!(
            (output.texts, output.files),
            (vec!["Hi".to_owned(), "one".to_owned()], vec!["fox".to_owned()])
        );
        assert_eq!(output.lines, ["half", "Listening"]);
        assert_eq!(output.errors, [Error::Refused("no".to_owned())]);
    }
}
