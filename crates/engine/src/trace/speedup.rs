//! Speed-up of replies over plain decoding.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// How much faster replies were written with drafts than plain decoding would have written them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Speedup {
    /// `plain_ms / elapsed_ms`.
    pub factor: f64,
    /// `plain_ms - elapsed_ms`; negative where drafting cost time.
    pub saved_ms: f64,
    /// Time plain decoding would have taken, in milliseconds.
    pub plain_ms: f64,
    /// Time the counted rounds took, in milliseconds.
    pub elapsed_ms: f64,
    /// Replies that were counted; the parts of a continued reply are one.
    pub replies: u32,
}
