//! The local server: protocols of OpenAI and Anthropic for programs on this computer, and with a
//! key for others. Replies come from a [`Writer`]; the crate depends on no window, terminal or
//! file.
//!
//! - [`server`]: the running server, its connections and its shutdown; [`address`]: where it
//!   listens
//! - `routes`: endpoints; `guard`: access control
//! - `protocol`: the protocols; `completions`, `messages`, `responses`: requests and replies
//! - `embeddings`: requests for embeddings of texts
//! - `fields`, `conversation`, `picture_file`: parts of request bodies in all protocols
//! - [`order`]: a request as the writer receives it; `request`: as the engine does
//! - `tool_use`: checks of the tools that a request offers
//! - [`log`]: the latest requests; [`logprob`]: log probabilities of tokens
//! - `queue`: one reply at a time, and a limited number of waiting requests
//! - [`writer`]: interface to the writer of replies; [`session`]: a writer that uses an engine
//!   session
//! - [`prompt_reader`]: tokens of a prompt; `reply_parser`: reasoning and calls of a reply
//! - `reply`: parts of a reply; `format`: as JSON; `stream`: as server-sent events
//! - [`refusal`]: errors in the protocol's format
//! - [`fuzzing`]: parser of request bodies, for fuzzing

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod address;
mod completions;
mod conversation;
mod embeddings;
mod fields;
mod format;
pub mod fuzzing;
mod guard;
pub mod log;
pub mod logprob;
mod messages;
pub mod order;
mod picture_file;
pub mod prompt_reader;
mod protocol;
mod queue;
pub mod refusal;
mod reply;
mod reply_parser;
mod request;
mod responses;
mod routes;
pub mod server;
pub mod session;
mod stream;
mod tool_use;
pub mod writer;

pub use address::{Address, StartError};
pub use log::ServerRequest;
pub use logprob::Logprob;
pub use order::{Defaults, Order, Prompt, SamplingChoices};
pub use prompt_reader::PromptReader;
pub use refusal::Refusal;
pub use server::Server;
pub use writer::{Event, ReplySink, Writer, model_name};
