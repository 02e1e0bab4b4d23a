//! Models on this computer, as targets and as drafts.

use foretoken_engine::recommended::Recommended;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::settings::DRAFT_NONE;

/// A model on this computer, or on a server elsewhere, where nothing is known of its size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ModelEntry {
    /// `smollm2`, `starter`, `starter-draft`, the path of a file or folder, or `remote:SERVER/MODEL`.
    pub id: String,
    /// "SmolLM2 135M Instruct · Q4_1".
    pub label: String,
    /// One line: architecture, size on disk, context.
    pub detail: String,
    pub kind: ModelKind,
    /// Where it is from: below the models folder its path there, for a download `owner/name:file` or
    /// `owner/name`, of a remote one what its server calls it, else its path.
    pub name: String,
    /// Weights on disk, all parts together; 0 when the model could not be read.
    #[ts(type = "number")]
    pub size_bytes: u64,
    /// What running it takes, estimated.
    #[ts(type = "number")]
    pub memory_bytes: u64,
    /// Whether that much memory was free when the list was made.
    pub fits: bool,
    /// 0 when the model could not be read.
    #[ts(type = "number")]
    pub parameters: u64,
    /// Context length in tokens; 0 when the model could not be read, or its server does not say.
    pub context: u32,
    /// How its makers say that tokens are best chosen; `None` where nobody knows.
    pub recommended: Option<Recommended>,
    /// "apache-2.0"; `None` where nobody says it.
    pub licence: Option<String>,
    /// Bytes of weights that a token reads; 0 when the model could not be read.
    #[serde(skip)]
    #[ts(skip)]
    pub read_bytes: u64,
    /// `None` where nothing is known of how fast it is on this computer.
    pub speed: Option<ModelSpeed>,
    /// Why it cannot be used as a target; `None` when it can.
    pub problem: Option<Problem>,
}

/// Tokens per second of a model on this computer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ModelSpeed {
    /// Without drafts.
    pub plain: Option<f64>,
    /// With drafts, in the last reply that had them.
    pub drafted: Option<f64>,
    /// In replies; else reckoned from how fast this computer reads weights.
    pub measured: bool,
}

/// Why a model cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Problem {
    /// In a few words: "other vocabulary".
    pub short: String,
    /// In full.
    pub reason: String,
}

/// Where a model came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ModelKind {
    /// It comes with the program.
    Bundled,
    /// Put into the models folder.
    Local,
    /// In the hub's cache, by this program or another.
    Downloaded,
    /// Added by path: can be taken off the list, and the file stays.
    Added,
    /// On a server elsewhere, see [`super::RemoteServer`].
    Remote,
}

/// A choice in the draft picker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct DraftOption {
    pub id: String,
    pub label: String,
    pub detail: String,
    /// What speaks for it, in a word or two: "last used", "known pair".
    pub merit: Option<String>,
    /// Why it cannot draft for the loaded target; `None` when it can.
    pub problem: Option<Problem>,
}

impl DraftOption {
    /// Whether anything is drafted with it.
    pub fn drafts(&self) -> bool {
        self.id != DRAFT_NONE
    }
}
