//! View state of the window across restarts.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Display choices that are not settings. Stored as one document; missing fields take their
/// defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct ViewState {
    /// View of all replies that have no view of their own.
    pub reply_view: ReplyView,
    /// Unfolds rejected and unchecked drafts in the text.
    pub show_drafts: bool,
    /// `true` once the legend of the marks was dismissed.
    pub key_dismissed: bool,
    /// Wraps long lines of code.
    pub wraps_code: bool,
    /// Docks the heatmap below the conversation.
    pub heatmap_docked: bool,
    /// Unfolded sections of the inspector, by name.
    pub unfolded: Vec<String>,
}

/// A text that was typed but not sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Unsent {
    /// `None` for a new conversation.
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
