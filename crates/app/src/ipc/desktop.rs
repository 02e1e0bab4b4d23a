//! Abilities of the desktop: a tray with an icon, and global shortcuts.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Words of the tray icon's menu, in the page's language.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct TrayWords {
    pub open: String,
    /// State of a running server; "{url}" stands for its address.
    pub running: String,
    pub stopped: String,
    /// State of a server that could not be started.
    pub failed: String,
    pub start: String,
    pub stop: String,
    /// Opens the window for a quick question.
    pub quick: String,
    pub quit: String,
}

/// Abilities of the desktop that the page depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Desktop {
    /// True while it shows tray icons.
    pub tray: bool,
    /// Why the shortcut of the quick question does not work; `None` if it does or none is chosen.
    pub shortcut: Option<ShortcutProblem>,
    /// True on systems with a dialog in which a person takes a screenshot for a program.
    pub screenshots: bool,
}

/// Why a global shortcut does not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ShortcutProblem {
    /// The system or another program uses the combination, or it is none.
    Taken,
    /// Programs under Wayland have no global shortcuts.
    Wayland,
}
