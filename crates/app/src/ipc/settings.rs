//! Settings of the application.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use foretoken_engine::speculation::Speculation;
use foretoken_forward::device::DeviceChoice;
use foretoken_model::sampling::Sampling;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::presets::{Preset, WordBias};
use super::tools::{Builtin, SearchService, ToolMode};

/// All settings. Stored as one document; missing fields take their defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct Settings {
    /// Id of the target, see [`super::ModelEntry::id`].
    pub target: String,
    /// Chosen draft of each target, by the target's id: a model's id, [`DRAFT_MTP`],
    /// [`DRAFT_NGRAM`] or [`DRAFT_NONE`]. Other targets get the best fitting draft.
    pub drafts: BTreeMap<String, String>,
    /// Device of the target.
    pub device: DeviceChoice,
    /// Device of the draft; `auto` is the target's device, or the CPU if that is faster.
    pub draft_device: DeviceChoice,
    pub speculation: Speculation,
    /// Lets the n-gram drafter repeat texts of earlier conversations.
    pub learn_from_earlier: bool,
    pub sampling: Sampling,
    /// Switches the target's reasoning, if its template allows it; `None` for the model's default.
    pub thinking: Option<bool>,
    /// Longest reply in tokens; 0 means as long as the context allows.
    pub max_tokens: u32,
    /// See [`super::PresetValues::stop`].
    pub stop: Vec<String>,
    /// See [`super::PresetValues::word_bias`].
    pub word_bias: Vec<WordBias>,
    /// Behaviour when a conversation no longer fits into the model's context.
    pub context_overflow: ContextOverflow,
    /// Context length of targets in tokens, at least [`MIN_CONTEXT`], by the target's id. Other
    /// targets have the length that they were trained with, which is also the longest.
    pub context_lengths: BTreeMap<String, u32>,
    /// Ids of the targets whose keys and values are cached in 8 bits while they run on a CPU.
    pub int8_kv_caches: Vec<String>,
    /// Memory in MB for contexts of other conversations, which then continue without being read
    /// again; `None` for a quarter of the free memory, 0 for none.
    pub context_memory_mb: Option<u32>,
    /// Disk space in GB for contexts of conversations, which then continue after a restart without
    /// being read again; 0 for none.
    pub context_disk_gb: u32,
    /// Instructions put before every conversation; empty for none.
    pub system_prompt: String,
    /// The user's own presets, in the order of creation.
    pub presets: Vec<Preset>,
    /// Ids of hidden built-in presets.
    pub hidden_presets: Vec<String>,
    /// Preset of new conversations with a target, by the target's id.
    pub model_presets: BTreeMap<String, String>,
    pub appearance: Appearance,
    /// Shows a notification of the system when a long reply or a download ends while the window is
    /// not in use.
    pub notifications: bool,
    /// Starts the window when the person logs in.
    pub start_at_login: bool,
    /// Shows an icon in the desktop's tray.
    pub tray_icon: bool,
    /// Keeps running in the tray when the window is closed; only with an icon that is shown.
    pub keep_in_tray: bool,
    /// Global shortcut that opens the window for a quick question, such as "control+shift+Space";
    /// empty for none.
    pub quick_shortcut: String,
    /// Checks for a new version at the start and once a day.
    pub check_for_updates: bool,
    /// Lets the model title new conversations, if it is large enough.
    pub write_titles: bool,
    /// Keeps traces of replies; without one there is no token view, replay or check later.
    pub keep_traces: bool,
    /// Models added by path.
    pub added_models: Vec<String>,
    pub server: ServerSettings,
    /// Calls of tools in replies.
    pub tools: ToolMode,
    /// Servers of tools that are switched on, by name, each with the hash of its entry in
    /// `mcp.json`.
    pub tool_servers: BTreeMap<String, String>,
    /// Built-in tools that are switched on.
    pub builtin_tools: Vec<Builtin>,
    /// Service that searches the web for a built-in tool; `None` for none. Its key is in the system
    /// keyring.
    pub search_service: Option<SearchService>,
    /// Address of the person's SearXNG server.
    pub searxng_address: String,
    /// Id of the embedding model with which documents are searched, see [`super::ModelEntry::id`];
    /// empty for a search by words alone.
    pub embedding_model: String,
    /// Address of the hub for searches and downloads, such as a mirror; empty for the one in
    /// HF_ENDPOINT, or else the public one.
    pub hub_address: String,
    /// Remote servers added by the user, whose models can be targets.
    pub remote_servers: Vec<RemoteServer>,
}

/// A remote server with OpenAI's protocol. Its key is in the system keyring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct RemoteServer {
    /// Name given by the user, unique and without a slash.
    pub name: String,
    /// Address: "http://192.168.1.5:8000/v1".
    pub address: String,
    /// Models that it listed last.
    #[serde(default)]
    pub models: Vec<RemoteModel>,
}

/// A model on a remote server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct RemoteModel {
    /// Name that the server uses.
    pub id: String,
    /// Context length in tokens; 0 if the server does not report it.
    pub context: u32,
    /// `true` if it sees pictures; `None` if the server does not report it.
    #[serde(default)]
    pub sees: Option<bool>,
}

/// The local server, through which other programs use the loaded models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct ServerSettings {
    /// Runs the server while the window is open.
    pub enabled: bool,
    /// Address to listen on.
    pub host: String,
    /// Port, 1 to 65535.
    pub port: u16,
    /// Key that clients must send; empty for none.
    pub key: String,
}

/// Id of the n-gram drafter, which repeats earlier text and reasoning and needs no model.
pub const DRAFT_NGRAM: &str = "ngram";
/// Id of the draft head in the target's own file.
pub const DRAFT_MTP: &str = "mtp";
/// Id of plain decoding, without drafts.
pub const DRAFT_NONE: &str = "none";

/// Name of the n-gram drafter in replies, which are stored with it.
pub const NGRAM_NAME: &str = "n-gram";
/// Name of the draft head in the target's own file, in replies.
pub const MTP_NAME: &str = "MTP";

/// Shortest context length in tokens.
pub const MIN_CONTEXT: u32 = 256;

/// Text size in percent of the normal one.
pub const TEXT_SIZE: RangeInclusive<u32> = 80..=160;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct Appearance {
    pub theme: Theme,
    pub language: Language,
    pub reduced_motion: bool,
    /// Text size in percent of the normal one: [`TEXT_SIZE`].
    pub text_size: u32,
    /// Lets conversations take more of a wide window.
    pub wide_chat: bool,
    /// Key that sends a message.
    pub send_key: SendKey,
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

/// Behaviour when a conversation no longer fits into the model's context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ContextOverflow {
    /// Drops the oldest turns from the model's context: as few as leave a quarter of it free.
    #[default]
    DropOldest,
    /// Refuses a message that does not fit, and ends a reply where the context does.
    Stop,
}

/// Key that sends a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum SendKey {
    /// Enter sends; Shift+Enter adds a line.
    #[default]
    Enter,
    /// Ctrl+Enter, or Cmd+Enter on a Mac, sends; Enter adds a line.
    CommandEnter,
}

/// Language of the window; replies of models are not affected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Language {
    /// The system's language if it is supported; else English.
    #[default]
    System,
    En,
    De,
}
