//! Kinds of drafters. The drafters themselves are in `draft`.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Kind of drafter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum DrafterKind {
    /// A smaller language model.
    Model,
    /// A draft head, which reads the target's hidden states.
    Head,
    /// The suffix automaton over the conversation.
    Ngram,
    /// Token recycling: the target's likely next tokens after an earlier occurrence of the token.
    Recycling,
    /// The constraint, where it allows a single token.
    Forced,
}
