//! View state of the window across restarts.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::attachments::Attached;

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
    /// Folded folders of conversations.
    #[ts(type = "Array<number>")]
    pub folded_folders: Vec<i64>,
    /// Conversations beside each other; `None` if the window shows one.
    pub side_by_side: Option<SideBySide>,
    /// Width of the first of two conversations, in percent; 0 for half.
    pub split_percent: u32,
}

/// Two conversations beside each other; `None` is a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct SideBySide {
    #[ts(type = "number | null")]
    pub first: Option<i64>,
    #[ts(type = "number | null")]
    pub second: Option<i64>,
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

/// A file that was attached but not sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct UnsentFile {
    #[ts(type = "number")]
    pub id: i64,
    pub file: Attached,
}

/// A stored question as a person changed it, before it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct UnsentEdit {
    /// The question's id.
    #[ts(type = "number")]
    pub message: i64,
    pub text: String,
    /// Ids of the attachments to keep.
    #[ts(type = "Array<number>")]
    pub kept: Vec<i64>,
}

/// A trace file that the page imported and the window keeps for a reloaded page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ImportedTrace {
    pub id: u32,
    /// Name of the file.
    pub name: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ReplyView {
    #[default]
    Tokens,
    Text,
}
