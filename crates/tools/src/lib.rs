//! Tools that a model may call. Depends on no engine, window or database: who asks for a call has
//! approved it.
//!
//! - [`Toolbox`]: running servers of the Model Context Protocol (MCP), and calls of their tools and
//!   of built-in ones
//! - [`Offer`]: a tool as a model sees it, with the hash that approvals are bound to
//! - [`McpFile`], [`ServerConfig`]: servers in `mcp.json`; [`other_files`]: those of other programs
//! - [`ServerPrompt`], [`ServerResource`]: texts of servers that a person picks
//! - `connection`: handshake and requests; `listing`: what a server has; `process`: servers that are
//!   child processes; `watched`: what they write; [`Output`]: the same without a session, for tests
//! - [`Outcome`]: the result of a call as text
//! - [`Builtin`]: tools of this program, such as arithmetic; [`BuiltinContext`]: what they need of it

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod builtin;
mod config;
mod connection;
mod error;
mod handler;
mod listing;
mod log;
mod offer;
mod outcome;
mod output;
mod process;
mod prompt;
mod resource;
mod toolbox;
mod watched;

pub use builtin::{AttachedFile, Builtin, BuiltinContext, FoundMessage, SearchEngine, SearchService};
pub use config::{Listed, McpFile, ServerConfig, Transport, other_files};
pub use error::{Error, Result};
pub use handler::Progress;
pub use offer::{Offer, Source, builtin_offers};
pub use outcome::Outcome;
pub use output::Output;
pub use prompt::{PromptArgument, ServerPrompt};
pub use resource::{ReadFile, ResourceText, ServerResource};
pub use toolbox::{ServerState, ServerStatus, Toolbox};

/// Most turns of calls after one question.
pub const MOST_TURNS: usize = 16;

/// Result of a call that a person refused, for the model.
pub const REFUSED: &str = "The person did not allow this call.";
