//! Types that cross between the page and the shell: every type of every command, and nothing else.
//! The TypeScript types in `ui/src/bindings/` are generated from here.
//!
//! - [`settings`], [`presets`], [`engine`], [`models`], [`conversations`]: as named
//! - [`attachments`]: attachments of questions
//! - [`library`]: the hub's models, downloads, advice on drafts
//! - [`proof`]: checks of replies, the arena; [`server`]: the local server; [`view`]: view state of
//!   the window; [`tools`]: servers of tools, and calls; [`desktop`]: the tray icon; [`updates`]:
//!   updates of the program

mod attachments;
mod conversations;
mod desktop;
mod engine;
mod library;
mod models;
mod presets;
mod proof;
mod server;
mod settings;
mod tools;
mod updates;
mod view;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

pub use attachments::{
    ATTACHMENT_BYTES, ATTACHMENTS, Attached, Attachment, AttachmentKind, ContextUse, DOCUMENT_BYTES,
    DocumentSearchStatus, FILE_BYTES, PICTURE_BYTES, Sent, TokenCount,
};
pub use conversations::{
    Conversation, ConversationFolder, Export, ExportForm, FOLDER_NAME, ImportProgress, Imported, LeftOut,
    Message, Reply, ReplyEvent, Role, SearchHit,
};
pub use desktop::{Desktop, ShortcutProblem, TrayWords};
pub use engine::{
    DeviceOption, DraftRemark, EngineChange, EngineMessage, EnginePhase, EngineStatus, Loading, MemoryUse,
    OffReason, ReadContext, Speculating, Why,
};
pub use library::{
    Advice, AdviceState, CatalogueFamily, CatalogueModel, Download, DownloadState, Dropped, Estimate,
    FileDrag, FileKind, FoundRepository, HeadOffer, PairSpeedup, Probe, Recommendation, RecommendationKind,
    Repository, RepositoryFile, TokenSource, Use,
};
pub use models::{
    ContextWindow, DraftMerit, DraftOption, ModelDetail, ModelEntry, ModelKind, ModelSpeed, Problem,
};
pub use presets::{
    BIASED_WORD_BYTES, BIASED_WORDS, ConversationSetup, PRESET_NAME, Preset, PresetValues, STOP_WORD_BYTES,
    STOP_WORDS, WordBias,
};
pub use proof::{
    ARENA_PAIRS, ARENA_TOKENS, Arena, ArenaEvent, ArenaRequest, ArenaRun, ArenaSetup, Candidate,
    CheckProgress, ReplyCheck, Setup, TextDifference, TraceStorage, Verdict,
};
pub use server::{ServerRequest, ServerStatus};
pub use settings::{
    Appearance, ContextOverflow, DRAFT_MTP, DRAFT_NGRAM, DRAFT_NONE, Language, MIN_CONTEXT, MTP_NAME,
    NGRAM_NAME, RemoteModel, RemoteServer, SendKey, ServerSettings, Settings, TEXT_SIZE, Theme,
};
pub use tools::{
    Builtin, Call, CallDecision, CallState, CallTokens, FilledArgument, ImportableServers, OfferedTool,
    SearchService, ServerContents, ToolMode, ToolRule, ToolServer, ToolServerState, ToolsStatus,
};
pub use updates::{FoundUpdate, UpdatePhase, UpdateProblem, UpdateStatus, UpdateSupport};
pub use view::{ImportedTrace, ReplyView, SideBySide, Unsent, UnsentEdit, UnsentFile, ViewState};

/// Facts for the about line and the settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct AppInfo {
    pub version: String,
    pub data_folder: String,
    /// Folder of downloaded models, inside the data folder.
    pub models_folder: String,
}

/// A folder that can be shown in the system's file manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Folder {
    /// Conversations, traces, settings and logs.
    Data,
    /// Downloaded models.
    Models,
}

/// Error of a command. The page branches on `code` and shows `message`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct CommandError {
    pub code: ErrorCode,
    pub message: String,
    /// Length of the prompt, if it is too long and was counted.
    #[serde(default)]
    pub prompt: Option<PromptSize>,
}

/// Length of a prompt, and the context available to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct PromptSize {
    /// Tokens of the whole prompt, including the system prompt.
    pub tokens: usize,
    /// Context length: tokens that prompt and reply may have together.
    pub context: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ErrorCode {
    /// A reply is being written.
    Busy,
    /// No target is loaded.
    NoTarget,
    EmptyPrompt,
    /// Conversation and message together do not fit into the context.
    PromptTooLong,
    /// The message does not fit into the context by itself.
    MessageTooLong,
    BadModel,
    /// The hub requires a token, or another one.
    NeedsToken,
    BadSetting,
    /// A folder's name is empty or taken.
    BadName,
    /// A file of conversations cannot be imported.
    BadFile,
    /// An attachment is too long, not text, or one too many.
    BadAttachment,
    /// Something else was chosen meanwhile.
    Cancelled,
    NotFound,
    /// The hub could not be reached.
    Offline,
    /// Error of a remote server, see [`Settings::remote_servers`].
    Remote,
    Internal,
}
