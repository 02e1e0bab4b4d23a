//! What crosses between the page and the shell: every type of every command, and nothing else.
//! The TypeScript twins in `ui/src/bindings/` are generated from here.
//!
//! - [`library`]: what the hub offers, downloads, advice on drafts
//! - [`proof`]: checks of replies, the arena

mod library;
mod proof;

use std::collections::BTreeMap;

use foretoken_engine::device::DeviceChoice;
use foretoken_engine::sampling::Sampling;
use foretoken_engine::speculation::Speculation;
use foretoken_engine::trace::{Finish, Round, Summary};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

pub use library::{
    Advice, AdviceState, CatalogueFamily, CatalogueModel, Download, DownloadState, FileDrag, Probe,
    Repository, RepositoryFile, TokenSource,
};
pub use proof::{
    Arena, ArenaEvent, ArenaRequest, ArenaRun, ArenaSetup, Candidate, CheckProgress, ReplyCheck, Setup,
    TextDifference, TraceStorage, Verdict,
};

/// Everything a person can set. Stored as one document; missing fields take their defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct Settings {
    /// Id of the target, see [`ModelEntry::id`].
    pub target: String,
    /// By the target's id, the id of what was chosen to draft for it: a model's, [`DRAFT_NGRAM`] or
    /// [`DRAFT_NONE`]. A target that is not in here is drafted for by what fits it best.
    pub drafts: BTreeMap<String, String>,
    /// What computes for the target.
    pub device: DeviceChoice,
    /// What computes for the draft; `auto` is what computes for the target.
    pub draft_device: DeviceChoice,
    pub speculation: Speculation,
    /// Whether texts of earlier conversations may be repeated by the n-gram drafter.
    pub learn_from_earlier: bool,
    pub sampling: Sampling,
    /// Longest reply in tokens; 0 means as long as the context allows.
    pub max_tokens: u32,
    /// Instructions put before every conversation; empty for none.
    pub system_prompt: String,
    pub appearance: Appearance,
    /// Whether replies keep their traces; without one there is no token view, replay or check later.
    pub keep_traces: bool,
    /// Models a person added by path.
    pub added_models: Vec<String>,
}

/// No draft model: what was said and thought before is repeated.
pub const DRAFT_NGRAM: &str = "ngram";
/// No drafts: plain decoding.
pub const DRAFT_NONE: &str = "none";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct Appearance {
    pub theme: Theme,
    pub reduced_motion: bool,
    /// Percent of the normal size, 80..=160.
    pub text_size: u32,
    pub sidebar_open: bool,
    pub inspector_open: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Theme {
    #[default]
    System,
    Light,
    Dark,
}

/// What the engine is doing, sent whole whenever it changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct EngineStatus {
    pub phase: EnginePhase,
    /// For a person: what is being loaded, or what went wrong and what to do.
    pub message: Option<String>,
    /// The model whose weights are being read.
    pub loading: Option<Loading>,
    /// The loaded target.
    pub target: Option<ModelEntry>,
    /// All models on this computer, usable as target or not, with the reason if not.
    pub targets: Vec<ModelEntry>,
    /// All drafts for the loaded target, the best first, the unusable ones last and with their reason.
    pub drafts: Vec<DraftOption>,
    /// Id of the draft that is in use; empty before there is one.
    pub draft: String,
    pub why: Why,
    /// What computes for the target: "CPU, 2 threads, AVX-512". Empty until the first is loaded.
    pub device: String,
    /// What had been chosen when it was loaded.
    pub device_choice: DeviceChoice,
    /// What computes for the draft model, where there is one.
    pub draft_device: Option<String>,
    /// Sentences that say why something else computes than what was chosen.
    pub device_remarks: Vec<String>,
    /// What there is to choose from, usable or not.
    pub devices: Vec<DeviceOption>,
    pub memory: MemoryUse,
}

/// A choice of what computes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct DeviceOption {
    pub choice: DeviceChoice,
    /// "CUDA, NVIDIA H100, 80 GB".
    pub label: String,
    /// Why it cannot be used here; `None` when it can.
    pub problem: Option<String>,
}

/// Memory on this computer, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct MemoryUse {
    /// What the loaded models take with room for a conversation, estimated; 0 without one, and for one in a
    /// GPU's own memory.
    #[ts(type = "number")]
    pub target_bytes: u64,
    #[ts(type = "number")]
    pub draft_bytes: u64,
    /// What this program takes in all.
    #[ts(type = "number")]
    pub process_bytes: u64,
    #[ts(type = "number")]
    pub free_bytes: u64,
    /// Memory of the GPU that computes, and how much of it is free; 0 without one.
    #[ts(type = "number")]
    pub gpu_bytes: u64,
    #[ts(type = "number")]
    pub gpu_free_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum EnginePhase {
    Loading,
    Ready,
    Replying,
    /// No target could be loaded; `message` says why.
    Failed,
}

/// How far loading a model has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Loading {
    /// [`ModelEntry::label`].
    pub label: String,
    /// Of its bytes, 0..=100.
    pub percent: u32,
    /// It is the draft; else the target.
    pub draft: bool,
}

/// A model on this computer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ModelEntry {
    /// `smollm2`, `starter`, `starter-draft`, or the path of a file or folder.
    pub id: String,
    /// "SmolLM2 135M Instruct · Q4_1".
    pub label: String,
    /// One line: architecture, size on disk, context.
    pub detail: String,
    pub kind: ModelKind,
    /// Where it is from: below the models folder its path there, for a download `owner/name:file` or
    /// `owner/name`, else its path.
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
    /// Context length in tokens; 0 when the model could not be read.
    pub context: u32,
    /// Why it cannot be used as a target; `None` when it can.
    pub problem: Option<Problem>,
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

/// The why line: whether replies are drafted, and the reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Why {
    pub state: Speculating,
    /// "speculating, K = 5, about 2.1x, drafted by n-gram" / "paused: drafting would cost 8 %" / "off: no draft is
    /// chosen".
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Speculating {
    On,
    Paused,
    Off,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Conversation {
    #[ts(type = "number")]
    pub id: i64,
    pub title: String,
    pub pinned: bool,
    /// Milliseconds since 1970.
    #[ts(type = "number")]
    pub updated_at: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Role {
    User,
    Assistant,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Message {
    #[ts(type = "number")]
    pub id: i64,
    #[ts(type = "number")]
    pub conversation: i64,
    pub role: Role,
    pub text: String,
    /// Milliseconds since 1970.
    #[ts(type = "number")]
    pub created_at: i64,
    /// Replies: how it ended; `None` for one that failed or was under way when the program was killed.
    pub finish: Option<Finish>,
    /// Replies: its numbers.
    pub summary: Option<Summary>,
    /// Replies: labels of the target and the draft that wrote it.
    pub target: Option<String>,
    pub draft: Option<String>,
    /// Replies that failed: the sentence that says why.
    pub problem: Option<String>,
}

/// A message that contains the searched words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct SearchHit {
    pub conversation: Conversation,
    #[ts(type = "number")]
    pub message: i64,
    /// Text around the hit; the hit itself stands between U+0002 and U+0003.
    pub excerpt: String,
}

/// Sent on the channel of `send` and `regenerate`, one message per round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export)]
#[allow(clippy::large_enum_variant, reason = "sent and gone; nobody keeps many")]
pub enum ReplyEvent {
    /// The question is stored and the reply begins. `user` is `None` when regenerating.
    Started {
        conversation: Conversation,
        user: Option<Message>,
        reply: Message,
    },
    /// Prompt tokens processed so far.
    Prompt {
        done: u32,
        total: u32,
    },
    Round {
        round: Round,
    },
}

/// What `send` and `regenerate` return: the stored reply, which replaces the streamed preview.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Reply {
    pub conversation: Conversation,
    pub reply: Message,
}

/// Facts for the about line and the settings panel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct AppInfo {
    pub version: String,
    pub data_folder: String,
}

/// Why a command failed. The page branches on `code` and shows `message`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CommandError {
    pub code: ErrorCode,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ErrorCode {
    /// A reply is under way.
    Busy,
    /// No target is loaded.
    NoTarget,
    EmptyPrompt,
    PromptTooLong,
    BadModel,
    /// The hub wants a token, or another one.
    NeedsToken,
    BadSetting,
    /// Something else was chosen meanwhile.
    Cancelled,
    NotFound,
    Internal,
}
