//! Status of the local server.

pub use foretoken_server::ServerRequest;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Status of the local server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ServerStatus {
    /// Base URL for other programs, "http://127.0.0.1:8642/v1"; `None` while it is stopped.
    pub url: Option<String>,
    /// Error message if it is enabled but could not be started.
    pub problem: Option<String>,
}
