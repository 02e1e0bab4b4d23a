//! OpenAI's chat completions and completions: `/v1/chat/completions` and `/v1/completions`.
//!
//! - `body`: requests; `tools`: tools and calls in them
//! - `answer`: replies

mod answer;
mod body;
mod tools;

pub use answer::CompletionFormat;
pub use body::read;

/// Kind of a request: for the next message of a conversation, or for the continuation of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Chat,
    Text,
}
