//! The local server, as the page shows it.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Whether the local server runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ServerStatus {
    /// Where other programs find it, "http://127.0.0.1:8642/v1"; `None` while it does not run.
    pub url: Option<String>,
    /// Why it does not run although it shall, in a sentence.
    pub problem: Option<String>,
}

/// A request to the local server. Has no text of its prompt or reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ServerRequest {
    /// Counts from 0 since the server started.
    #[ts(type = "number")]
    pub number: u64,
    /// Milliseconds since 1970.
    #[ts(type = "number")]
    pub started_at: u64,
    /// "POST".
    pub method: String,
    /// "/v1/chat/completions".
    pub path: String,
    /// Name of the model that replies; `None` for requests without a reply.
    pub model: Option<String>,
    /// HTTP status; `None` until the response begins, and of a request whose client left before that.
    pub status: Option<u16>,
    /// Tokens of the prompt; `None` without a finished reply.
    pub prompt_tokens: Option<u32>,
    /// Tokens of the reply; `None` without a finished reply.
    pub tokens: Option<u32>,
    /// Decoding speed after the first round; `None` without a finished reply, or one of a single round.
    pub tokens_per_second: Option<f64>,
    /// Milliseconds until the response was complete or its client left; `None` before that.
    pub elapsed_ms: Option<f64>,
}
