//! The local server: OpenAI's protocol for programs on this computer, and with a key for others.
//! Replies come from a [`Writer`]; the crate depends on no window, terminal or file.
//!
//! - [`server`]: the running server, its connections and its shutdown; [`address`]: where it
//!   listens
//! - `routes`: endpoints; `guard`: access control
//! - `body`: request bodies, parsed from JSON; [`order`]: a request as the writer receives it
//! - `tool_body`: tools in request bodies; [`tool_use`]: the calls that a reply may have
//! - [`log`]: the latest requests
//! - `queue`: one reply at a time, and a limited number of waiting requests
//! - [`writer`]: interface to the writer of replies; [`session`]: a writer that uses an engine
//!   session
//! - `answer`: replies as JSON; `stream`: replies as server-sent events
//! - [`refusal`]: errors in the protocol's format
//! - [`fuzzing`]: parser of request bodies, for fuzzing

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod address;
mod answer;
mod body;
pub mod fuzzing;
mod guard;
pub mod log;
pub mod order;
mod queue;
pub mod refusal;
mod routes;
pub mod server;
pub mod session;
mod stream;
mod tool_body;
pub mod tool_use;
pub mod writer;

pub use address::{Address, StartError};
pub use log::ServerRequest;
pub use order::{Defaults, Order, Prompt, SamplingChoices};
pub use refusal::Refusal;
pub use server::Server;
pub use tool_use::{ToolChoice, ToolUse};
pub use writer::{Event, ReplySink, Writer, model_name};
