//! Who drafted a token, in a word. What drafters are and do is for `draft` to say.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Who drafted a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum DrafterKind {
    /// A smaller language model.
    Model,
    /// A block that reads the target's hidden states.
    Head,
    /// The suffix automaton over the conversation.
    Ngram,
    /// What the target thought likely after the same token before.
    Recycling,
}
