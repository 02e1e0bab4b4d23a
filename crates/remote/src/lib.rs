//! Replies by a server elsewhere that speaks OpenAI's protocol: vLLM, SGLang, llama-server, our own. Knows neither who
//! asks nor where keys are kept.
//!
//! - [`address`]: where a server is, read forgivingly
//! - [`client`]: what is asked of it, how long it has, and how a person stops it
//! - `body`: a question in the protocol's form; `piece`: a piece of a reply
//! - `events`: server-sent events out of bytes
//! - [`reply`]: a reply while it comes, and its numbers; [`usage`]: those that the server reports, where they can be true
//! - [`error`]: what went wrong, each in a sentence; `refusal`: which of them an answer means

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod address;
mod body;
pub mod client;
pub mod error;
mod events;
mod piece;
mod refusal;
pub mod reply;
pub mod usage;

pub use address::Address;
pub use body::Question;
pub use client::{Client, Model, Patience};
pub use error::{Error, Result};
pub use reply::{Heard, Reply};
pub use usage::{Drafts, Usage};
