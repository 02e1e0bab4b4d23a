//! Tools: servers, calls in replies, and what a person decides about them.

use std::collections::BTreeMap;

pub use foretoken_store::{CallState, CallTokens};
pub use foretoken_tools::{Builtin, SearchService};
use foretoken_tools::{ServerPrompt, ServerResource};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Calls of tools in replies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ToolMode {
    #[default]
    Off,
    /// The model decides whether it calls a tool.
    Auto,
    /// The first reply to a question begins with a call, for models that forget their tools.
    First,
}

/// A call of a tool in a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Call {
    #[ts(type = "number")]
    pub id: i64,
    /// The reply.
    #[ts(type = "number")]
    pub message: i64,
    /// Server of the tool; `None` for a built-in one.
    pub server: Option<String>,
    pub tool: String,
    /// JSON object.
    pub arguments: String,
    pub state: CallState,
    /// Result, or why there is none: text from outside, never markup.
    pub result: String,
    /// `true` if the tool reports an error.
    pub is_error: bool,
    #[ts(type = "number | null")]
    pub took_ms: Option<i64>,
    /// `None` if they were not counted.
    pub tokens: Option<CallTokens>,
}

/// Decision of a person about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum CallDecision {
    Once,
    /// This and later calls of the tool in this conversation.
    Conversation,
    /// This and later calls of the tool.
    Always,
    /// Not this call.
    Refuse,
    /// The model gets the tool no more.
    Never,
}

/// Rule for the calls of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ToolRule {
    #[default]
    Ask,
    Always,
    Never,
}

/// State of a server of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ToolServerState {
    Off,
    /// Its entry has changed since it was switched on.
    Changed,
    /// Switched on, and started with the first message that may use it.
    Waiting,
    Starting,
    Ready,
    Failed,
}

/// A server of `mcp.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ToolServer {
    pub name: String,
    /// Command line or address.
    pub line: String,
    /// Names of the environment variables or headers that it gets.
    pub variables: Vec<String>,
    pub state: ToolServerState,
    /// Why it failed, or why its entry cannot be used.
    pub problem: Option<String>,
    /// Latest lines, the oldest first.
    pub log: Vec<String>,
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct OfferedTool {
    /// Server of the tool; `None` for a built-in one.
    pub server: Option<String>,
    pub name: String,
    pub description: String,
    /// Hash that the rule is bound to.
    pub digest: String,
    pub rule: ToolRule,
}

/// Servers of another program that can be imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ImportableServers {
    pub program: String,
    /// Names of its servers that are not here yet.
    pub names: Vec<String>,
}

/// All that the settings and the composer show of tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ToolsStatus {
    pub servers: Vec<ToolServer>,
    /// Tools of ready servers and those built in that are switched on.
    pub tools: Vec<OfferedTool>,
    /// `true` if the chosen search service has a key.
    pub has_search_key: bool,
    /// Why `mcp.json` cannot be read.
    pub problem: Option<String>,
}

/// Prompts and resources that a person can pick. All words are those of servers, untrusted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ServerContents {
    pub prompts: Vec<ServerPrompt>,
    pub resources: Vec<ServerResource>,
    /// `true` if a server is starting, so that more may follow.
    pub is_starting: bool,
    /// Why servers have failed, a sentence each.
    pub problems: Vec<String>,
}

/// Value of a prompt's argument, or of a variable in a resource's address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct FilledArgument {
    pub name: String,
    pub value: String,
}

impl FilledArgument {
    pub(crate) fn by_name(arguments: Vec<Self>) -> BTreeMap<String, String> {
        arguments.into_iter().map(|argument| (argument.name, argument.value)).collect()
    }
}
