//! Errors of tools: what happened and what to do.

use std::time::Duration;

use rmcp::service::ServiceError;

use crate::log::printable;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of a server or of a call. Texts of servers in it are untrusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("mcp.json cannot be read: {0}.")]
    File(String),

    #[error("The command {0} was not found. Install it, or write its full path into mcp.json.")]
    NoCommand(String),

    #[error("{command} could not be started: {reason}.")]
    NotStarted { command: String, reason: String },

    #[error("The server did not become ready within {} seconds.", .0.as_secs())]
    Unready(Duration),

    #[error("The server ended.{}", said(.0))]
    Ended(String),

    #[error("The server sent more than {} MB in one message, so it was stopped.", .0 >> 20)]
    TooLarge(usize),

    #[error(
        "The server writes text to its standard output that is not part of the protocol, so it was stopped. \
         First line: {0}"
    )]
    Noise(String),

    #[error("The server does not speak the Model Context Protocol as expected: {0}.")]
    Protocol(String),

    #[error("The server could not be reached: {0}. Check its address and the network.")]
    Unreachable(String),

    #[error("The server requires a key. Add an Authorization header in mcp.json.")]
    Key,

    #[error("The server {0} is not running. Switch it on in Settings > Tools.")]
    NotRunning(String),

    #[error("There is no tool {0}.")]
    NoTool(String),

    #[error("There is no prompt {0}.")]
    NoPrompt(String),

    #[error("The prompt {prompt} has no argument {name}.")]
    UnknownArgument { prompt: String, name: String },

    #[error("A value for {0} is missing.")]
    MissingArgument(String),

    #[error("{name} cannot be used as text: {reason}.")]
    NoText { name: String, reason: String },

    #[error("There was no answer within {} seconds.", .0.as_secs())]
    TimedOut(Duration),

    #[error("The call was stopped.")]
    Stopped,

    #[error("The server refused the call: {0}")]
    Refused(String),

    #[error("The server asks a person for more, which this program does not support.")]
    AsksMore,

    #[error("{0}")]
    Builtin(String),
}

/// Returns the error of a request that failed.
pub(crate) fn failure(error: ServiceError) -> Error {
    if error.is_authorization_required() {
        return Error::Key;
    }
    match error {
        ServiceError::McpError(refusal) => Error::Refused(printable(&refusal.message)),
        ServiceError::TransportClosed => Error::Ended(String::new()),
        error => Error::Protocol(printable(&error.to_string())),
    }
}

/// Last line of a server, in words.
fn said(line: &str) -> String {
    if line.is_empty() { String::new() } else { format!(" Its last line: {line}") }
}
