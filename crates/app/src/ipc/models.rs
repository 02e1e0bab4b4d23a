//! Models on this computer, as targets and as drafts.

use foretoken_model::recommended::Recommended;
use foretoken_model::{ProblemKind, RopeScaling};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::settings::DRAFT_NONE;

/// A model on this computer, or on a remote server; the size of a remote one is unknown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ModelEntry {
    /// `smollm2`, `starter`, `starter-draft`, the path of a file or folder, or
    /// `remote:SERVER/MODEL`.
    pub id: String,
    /// Label: "SmolLM2 135M Instruct · Q4_1".
    pub label: String,
    /// Details for lists; `None` if the model could not be read.
    pub detail: Option<ModelDetail>,
    pub kind: ModelKind,
    /// Name of the other program that the model belongs to.
    pub program: Option<String>,
    /// Origin: the path below the models folder, `owner/name:file` or `owner/name` of a download, a
    /// remote server's or another program's name for the model, or else the path.
    pub name: String,
    /// Size of the weights on disk, all parts together; 0 if the model could not be read.
    #[ts(type = "number")]
    pub size_bytes: u64,
    /// Memory needed to run it, estimated.
    #[ts(type = "number")]
    pub memory_bytes: u64,
    /// `true` if that much memory was free when the list was made.
    pub fits: bool,
    /// Number of parameters; 0 if the model could not be read.
    #[ts(type = "number")]
    pub parameters: u64,
    /// Context length in tokens; 0 if the model could not be read, or its server does not report
    /// it.
    pub context: u32,
    /// Longest context and what it costs; `None` if the model could not be read, and for a remote
    /// one.
    pub context_window: Option<ContextWindow>,
    /// Sampling settings that its makers recommend; `None` if unknown.
    pub recommended: Option<Recommended>,
    /// `true` if it sees pictures: it has a vision file.
    pub sees: bool,
    /// Licence: "apache-2.0"; `None` if unknown.
    pub licence: Option<String>,
    /// Bytes of weights read per token; 0 if the model could not be read.
    #[serde(skip)]
    #[ts(skip)]
    pub read_bytes: u64,
    /// Speed on this computer; `None` if unknown.
    pub speed: Option<ModelSpeed>,
    /// Reason why it cannot be used as a target; `None` if it can.
    pub problem: Option<Problem>,
}

/// Longest context of a model, and what it costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ContextWindow {
    /// Context length that the model was trained with, in tokens.
    pub trained: u32,
    /// Bytes of keys and values per token.
    #[ts(type = "number")]
    pub token_bytes: u64,
    /// Bytes of an 8-bit KV cache per token; `None` if the model cannot have one.
    #[ts(type = "number | null")]
    pub int8_token_bytes: Option<u64>,
    /// Extension of RoPE that the file asks for; `None` without one.
    pub rope_scaling: Option<RopeScaling>,
}

/// Details of a model for lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum ModelDetail {
    File {
        architecture: Option<String>,
        /// Size of all weights on disk.
        #[ts(type = "number")]
        bytes: u64,
        /// Context length in tokens in the model's file.
        context: Option<u32>,
    },
    /// `host` of the remote server with its port.
    Server { host: String },
}

/// Tokens per second of a model on this computer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ModelSpeed {
    /// Without drafts.
    pub plain: Option<f64>,
    /// With drafts, in the last reply that used them.
    pub drafted: Option<f64>,
    /// `true` if measured in replies; otherwise estimated from this computer's memory bandwidth.
    pub measured: bool,
}

/// Reason why a model cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Problem {
    pub kind: ProblemKind,
    /// Full explanation in English.
    pub reason: String,
}

/// Origin of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ModelKind {
    /// Comes with the program.
    Bundled,
    /// Is in the models folder.
    Local,
    /// Is in the hub's cache, downloaded by this program or another.
    Downloaded,
    /// Added by path: can be taken off the list, and the file stays.
    Added,
    /// Belongs to another program, see [`ModelEntry::program`].
    Program,
    /// On a remote server, see [`super::RemoteServer`].
    Remote,
}

/// A choice in the draft picker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct DraftOption {
    pub id: String,
    /// Name of the drafter in replies: the label of a model, "MTP" or "n-gram"; empty for no draft.
    pub label: String,
    /// Details of a model; `None` for drafters without a model of their own.
    pub detail: Option<ModelDetail>,
    /// Main reason for or against choosing it.
    pub merit: Option<DraftMerit>,
    /// Reason why it cannot draft for the loaded target; `None` if it can.
    pub problem: Option<Problem>,
}

/// Reason for or against choosing a draft.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum DraftMerit {
    /// A draft head made for the target.
    MadeForTarget,
    /// The library knows both as a pair.
    KnownPair,
    /// Speed-up over plain decoding in a trial.
    Tried {
        speedup: f64,
    },
    SameVocabulary,
    NeedsNoModel,
    /// The memory may not hold it beside the target.
    MayNotFit,
    /// No faster than plain decoding in a trial.
    NoFaster,
}

impl DraftOption {
    /// Returns `false` for plain decoding.
    pub fn drafts(&self) -> bool {
        self.id != DRAFT_NONE
    }
}
