//! What crosses about models that are not loaded: what the hub offers, downloads, advice on drafts.

use foretoken_engine::trace::Speedup;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Models that share a vocabulary: any of the drafts suits any of the targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CatalogueFamily {
    /// Names the sentence that describes the family: one of `facts.families`.
    pub id: String,
    pub name: String,
    pub uses: Vec<Use>,
    pub targets: Vec<CatalogueModel>,
    pub drafts: Vec<CatalogueModel>,
    /// Draft heads, each for one of the targets.
    pub heads: Vec<CatalogueModel>,
}

/// What models of a family are good at, besides chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Use {
    Code,
    /// Thinking before the answer.
    Reasoning,
    /// Texts in many languages.
    Languages,
}

/// A file, or a folder of safetensors, that can be downloaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CatalogueModel {
    /// `owner/name:file`, or `owner/name` for a folder: the id of its download and, once it is installed, its
    /// [`super::ModelEntry::name`].
    pub id: String,
    pub repository: String,
    pub file: Option<String>,
    /// "Qwen3 8B · Q4_K_M".
    pub label: String,
    #[ts(type = "number")]
    pub size_bytes: u64,
    /// What running it takes, estimated; for a target together with the largest draft of its family.
    #[ts(type = "number")]
    pub memory_bytes: u64,
    /// Whether that much memory is free now, or taken by models that would make way.
    pub fits: bool,
    /// Whether the disk has room for it, or it is here.
    pub has_disk: bool,
    /// Without drafts, on this computer, reckoned; `None` where nothing is known of what computes.
    pub tokens_per_second: Option<f64>,
    #[ts(type = "number")]
    pub parameters: u64,
    /// "unknown" where nobody says it.
    pub licence: String,
    /// Its licence has to be accepted on the hub first, and a token says who asks.
    pub gated: bool,
}

/// A pair that suits this computer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Recommendation {
    pub kind: RecommendationKind,
    /// What running it takes is together with the draft.
    pub target: CatalogueModel,
    pub draft: CatalogueModel,
    /// Tokens per second with drafts over those without, the lowest and the highest that were measured of the pair
    /// on other computers; `None` where it was not.
    pub speedup: Option<[f64; 2]>,
}

/// Why a pair is recommended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum RecommendationKind {
    /// The strongest that fits and is fast enough.
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
    /// Whether its licence has to be accepted on the hub first.
    pub gated: bool,
}

/// What a repository of the hub offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Repository {
    pub id: String,
    pub licence: Option<String>,
    pub gated: bool,
    /// Its GGUF models, and the whole repository where it is a safetensors folder.
    pub files: Vec<RepositoryFile>,
}

/// A model in a repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct RepositoryFile {
    /// `owner/name:file`, or `owner/name` for a safetensors folder; see [`CatalogueModel::id`].
    pub id: String,
    /// `None` for a safetensors folder; of a split GGUF model the first part.
    pub file: Option<String>,
    /// All parts together.
    #[ts(type = "number")]
    pub size_bytes: u64,
    #[ts(type = "number")]
    pub memory_bytes: u64,
    /// Whether that much memory is free now.
    pub fits: bool,
}

/// A model on its way here.
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
    /// Why it failed, or paused by itself.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum DownloadState {
    Queued,
    Running,
    /// Another program downloads the same file; this one goes on when that one ends.
    Waiting,
    /// All of it is here, and is compared with its checksum.
    Verifying,
    /// By a person, or for the `reason`; goes on when it is resumed.
    Paused,
    Done,
    Failed,
}

/// Where the hub's access token comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum TokenSource {
    None,
    /// `HF_TOKEN`.
    Environment,
    /// The system's keyring.
    Keyring,
    /// The file that the hub's own tools write.
    File,
}

/// Files that a person drags over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export)]
pub enum FileDrag {
    Over { kinds: Vec<FileKind> },
    Left,
    Dropped { files: Vec<Dropped> },
}

/// What a file is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum FileKind {
    Model,
    Trace,
    /// Exported by this program or another.
    Conversations,
    /// Anything else: it is attached, if it is text.
    Attachment,
}

/// A file that was let go of over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Dropped {
    pub path: String,
    pub kind: FileKind,
}

/// What a trial of an installed draft for the loaded target has come to; sent again whenever that changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Advice {
    /// See [`super::DraftOption::id`].
    pub id: String,
    pub state: AdviceState,
    pub probe: Option<Probe>,
    /// Failed: the sentence that says why.
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
    /// Labels of the target and the draft, as their replies have them.
    pub target: String,
    pub draft: String,
    pub speedup: Speedup,
}

/// What a short probe of a draft measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Probe {
    /// Accepted of those judged.
    pub acceptance: f64,
    /// The length with the greatest speed; 0 when drafting does not pay.
    pub draft_length: u32,
    /// Predicted, at that length.
    pub tokens_per_second: f64,
    pub plain_tokens_per_second: f64,
    pub speedup: f64,
    /// How many tokens were probed.
    pub tokens: u32,
}
