//! The local server, as the page shows it.

pub use foretoken_server::ServerRequest;
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
