//! Anthropic's messages: `/v1/messages` and `/v1/messages/count_tokens`.
//!
//! - `body`: requests; `block`: blocks of their messages; `tools`: tools in them
//! - `answer`: replies

mod answer;
mod block;
mod body;
mod tools;

pub use answer::MessageFormat;
pub use body::read;
