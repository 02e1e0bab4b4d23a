//! Types for models that are not loaded: the hub's models, downloads, advice on drafts.

use foretoken_engine::trace::Speedup;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Models that share a vocabulary: each draft fits each target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CatalogueFamily {
    /// Id that selects the family's description, one of `facts.families`.
    pub id: String,
    pub name: String,
    pub uses: Vec<Use>,
    pub targets: Vec<CatalogueModel>,
    pub drafts: Vec<CatalogueModel>,
    /// Draft heads, each for one of the targets.
    pub heads: Vec<CatalogueModel>,
}

/// Strengths of a family's models besides chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Use {
    Code,
    /// Reasoning before the answer.
    Reasoning,
    /// Texts in many languages.
    Languages,
    /// Pictures, with the vision file that is downloaded with the model.
    Pictures,
}

/// A file, or a folder of safetensors, that can be downloaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CatalogueModel {
    /// `owner/name:file`, or `owner/name` for a folder: the id of its download and, once installed,
    /// its [`super::ModelEntry::name`].
    pub id: String,
    pub repository: String,
    pub file: Option<String>,
    /// Label: "Qwen3 8B · Q4_K_M".
    pub label: String,
    #[ts(type = "number")]
    pub size_bytes: u64,
    /// Memory needed to run it, estimated; for a target together with the largest draft of its
    /// family.
    #[ts(type = "number")]
    pub memory_bytes: u64,
    /// `true` if that much memory is free, or used by models that would be unloaded.
    pub fits: bool,
    /// `true` if the disk has space for it, or it is installed.
    pub has_disk: bool,
    /// Estimated tokens per second without drafts on this computer; `None` if its speed is unknown.
    pub tokens_per_second: Option<f64>,
    #[ts(type = "number")]
    pub parameters: u64,
    /// Licence, "unknown" if the makers name none.
    pub licence: String,
    /// `true` if its licence must be accepted on the hub first, which requires a token.
    pub gated: bool,
    /// `true` if Foretoken's authors ran these weights, and not only its architecture.
    pub ran: bool,
}

/// A recommended model for this computer, with its drafter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Recommendation {
    pub kind: RecommendationKind,
    /// The target; its memory includes the draft.
    pub target: CatalogueModel,
    /// Draft model or draft head; `None` if the target's file contains a head, or if only n-grams
    /// draft for it.
    pub draft: Option<CatalogueModel>,
    /// Lowest and highest speed-up over plain decoding measured with this pair on other computers;
    /// `None` if it was not measured.
    pub speedup: Option<[f64; 2]>,
}

/// Reason for a recommendation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum RecommendationKind {
    /// The strongest pair that fits and is fast enough.
    Best,
    /// At least twice as fast.
    Faster,
    Code,
}

/// A repository of the hub that a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct FoundRepository {
    /// `owner/name`
    pub id: String,
    /// Downloads in the last 30 days.
    #[ts(type = "number")]
    pub downloads: u64,
    pub licence: Option<String>,
    /// `true` if its licence must be accepted on the hub first.
    pub gated: bool,
    /// Number of parameters; `None` if the hub does not report it.
    #[ts(type = "number | null")]
    pub parameters: Option<u64>,
    /// Quantisations by the names of the files: "Q8_0", "Q4_K_M".
    pub quantisations: Vec<String>,
    /// Estimates for one of the quantisations; `None` if the size is unknown.
    pub estimate: Option<Estimate>,
    pub heads: Vec<HeadOffer>,
    /// Architecture that Foretoken does not run; `None` for others, or if it is unknown.
    pub unsupported: Option<String>,
}

/// Estimates for a model before its files are known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Estimate {
    pub quantisation: String,
    #[ts(type = "number")]
    pub size_bytes: u64,
    #[ts(type = "number")]
    pub memory_bytes: u64,
    /// `true` if that much memory is free now.
    pub fits: bool,
    /// Tokens per second without drafts on this computer; `None` if its speed is unknown.
    pub tokens_per_second: Option<f64>,
}

/// A draft head that exists on the hub for a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct HeadOffer {
    /// Kind: "EAGLE-3".
    pub kind: String,
    /// `owner/name`
    pub repository: String,
}

/// Contents of a repository of the hub.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Repository {
    pub id: String,
    pub licence: Option<String>,
    pub gated: bool,
    /// GGUF models, and the whole repository if it is a safetensors folder.
    pub files: Vec<RepositoryFile>,
    /// Size of the vision file that is downloaded with each GGUF model; `None` without one.
    #[ts(type = "number | null")]
    pub vision_bytes: Option<u64>,
    pub heads: Vec<HeadOffer>,
}

/// A model in a repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct RepositoryFile {
    /// `owner/name:file`, or `owner/name` for a safetensors folder; see [`CatalogueModel::id`].
    pub id: String,
    /// `None` for a safetensors folder; for a split GGUF model the first part.
    pub file: Option<String>,
    /// Size of all parts together.
    #[ts(type = "number")]
    pub size_bytes: u64,
    #[ts(type = "number")]
    pub memory_bytes: u64,
    /// `true` if that much memory is free now.
    pub fits: bool,
    /// Estimated tokens per second without drafts on this computer; `None` if its speed is unknown.
    pub tokens_per_second: Option<f64>,
}

/// Download of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Download {
    /// `owner/name:file`, or `owner/name` for a safetensors folder.
    pub id: String,
    pub repository: String,
    pub file: Option<String>,
    #[ts(type = "number")]
    pub done_bytes: u64,
    #[ts(type = "number")]
    pub total_bytes: u64,
    pub bytes_per_second: f64,
    pub state: DownloadState,
    /// Reason why it failed, or paused by itself.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum DownloadState {
    Queued,
    Running,
    /// Another program downloads the same file; this download continues when that one ends.
    Waiting,
    /// All bytes are downloaded and are compared with the checksum.
    Verifying,
    /// Paused by the user, or for the `reason`; continues when it is resumed.
    Paused,
    Done,
    Failed,
}

/// Origin of the hub's access token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum TokenSource {
    None,
    /// `HF_TOKEN`.
    Environment,
    /// The system keyring.
    Keyring,
    /// The file that the hub's own tools write.
    File,
}

/// Files that the user drags over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export)]
pub enum FileDrag {
    Over { kinds: Vec<FileKind> },
    Left,
    Dropped { files: Vec<Dropped> },
}

/// Use of a dropped file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum FileKind {
    Model,
    Trace,
    /// Exported conversations of this program or another.
    Conversations,
    /// Any other file: attached if it is text.
    Attachment,
}

/// A file dropped on the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Dropped {
    pub path: String,
    pub kind: FileKind,
}

/// State of a trial of an installed draft for the loaded target; sent again at every change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Advice {
    /// See [`super::DraftOption::id`].
    pub id: String,
    pub state: AdviceState,
    pub probe: Option<Probe>,
    /// Failed: the error message.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum AdviceState {
    Waiting,
    Probing,
    Done,
    Failed,
}

/// Speed-up over plain decoding of all replies that a pair of models wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct PairSpeedup {
    /// Labels of the target and the draft, as stored with their replies.
    pub target: String,
    pub draft: String,
    pub speedup: Speedup,
}

/// Result of a short probe of a draft.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Probe {
    /// Accepted drafted tokens over all judged ones.
    pub acceptance: f64,
    /// Draft length with the greatest speed; 0 if drafting is slower than plain decoding.
    pub draft_length: u32,
    /// Predicted tokens per second at that length.
    pub tokens_per_second: f64,
    pub plain_tokens_per_second: f64,
    pub speedup: f64,
    /// Number of probed tokens.
    pub tokens: u32,
}
