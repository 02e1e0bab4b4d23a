//! Client for remote servers with OpenAI's protocol: vLLM, SGLang, llama-server, our own. The
//! caller keeps the keys and settings.
//!
//! - [`address`]: server addresses, parsed leniently
//! - [`client`]: requests, their time limits and how to cancel them
//! - `body`: request bodies; `piece`: chunks of a reply; `calls`: its calls of tools
//! - `events`: parser of server-sent events
//! - [`reply_event`]: events of a reply; [`reply`]: its result
//! - [`usage`]: token counts that the server reports, checked for plausibility
//! - [`error`]: errors, each in a sentence; `refusal`: the error that a response means

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod address;
mod body;
mod calls;
pub mod client;
pub mod error;
mod events;
mod piece;
mod refusal;
pub mod reply;
pub mod reply_event;
pub mod usage;

pub use address::Address;
pub use body::Question;
pub use client::{Client, Model, Timeouts};
pub use error::{Error, Result};
pub use reply::Reply;
pub use reply_event::ReplyEvent;
pub use usage::{Drafts, Usage};
