//! How the window looks, as the page keeps it from one start to the next.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// View choices that are no settings. Stored as one document; missing fields take their defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct ViewState {
    /// View of all replies that have no view of their own.
    pub reply_view: ReplyView,
    /// Whether rejected and unchecked drafts are unfolded in the text.
    pub show_drafts: bool,
    /// Whether the line that explains the marks was dismissed.
    pub key_dismissed: bool,
    /// Whether long lines of code wrap.
    pub wraps_code: bool,
    /// Whether the heatmap is docked below the conversation.
    pub heatmap_docked: bool,
    /// Unfolded sections of the inspector, by name.
    pub unfolded: Vec<String>,
}

/// A text that was typed and not sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Unsent {
    /// `None` for a conversation that is to come.
    #[ts(type = "number | null")]
    pub conversation: Option<i64>,
    pub text: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ReplyView {
    #[default]
    Tokens,
    Text,
}
