//! What a person can set.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use foretoken_engine::device::DeviceChoice;
use foretoken_engine::sampling::Sampling;
use foretoken_engine::speculation::Speculation;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::presets::Preset;

/// Everything a person can set. Stored as one document; missing fields take their defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct Settings {
    /// Id of the target, see [`super::ModelEntry::id`].
    pub target: String,
    /// By the target's id, the id of what was chosen to draft for it: a model's, [`DRAFT_MTP`], [`DRAFT_NGRAM`] or
    /// [`DRAFT_NONE`]. A target that is not in here is drafted for by what fits it best.
    pub drafts: BTreeMap<String, String>,
    /// What computes for the target.
    pub device: DeviceChoice,
    /// What computes for the draft; `auto` is what computes for the target, or the CPU where that is faster.
    pub draft_device: DeviceChoice,
    pub speculation: Speculation,
    /// Whether texts of earlier conversations may be repeated by the n-gram drafter.
    pub learn_from_earlier: bool,
    pub sampling: Sampling,
    /// Whether the target shall think before it answers, where its template has a switch for that; `None` as its
    /// makers have it.
    pub thinking: Option<bool>,
    /// Longest reply in tokens; 0 means as long as the context allows.
    pub max_tokens: u32,
    /// How a conversation continues that no longer fits into the model's context.
    pub context_overflow: ContextOverflow,
    /// Instructions put before every conversation; empty for none.
    pub system_prompt: String,
    /// Of the person's own, in the order in which they were made.
    pub presets: Vec<Preset>,
    /// Ids of the presets that come with the program and are not to be listed.
    pub hidden_presets: Vec<String>,
    /// By a target's id, that of the preset which new conversations with it begin with.
    pub model_presets: BTreeMap<String, String>,
    pub appearance: Appearance,
    /// Whether the model names new conversations, where it is large enough to.
    pub write_titles: bool,
    /// Whether replies keep their traces; without one there is no token view, replay or check later.
    pub keep_traces: bool,
    /// Models a person added by path.
    pub added_models: Vec<String>,
    pub server: ServerSettings,
    /// Servers elsewhere that a person added, whose models can be targets.
    pub remote_servers: Vec<RemoteServer>,
}

/// A server elsewhere that speaks OpenAI's protocol. Its key is in the system's keyring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct RemoteServer {
    /// What the person calls it; no two have the same name, and none has a slash.
    pub name: String,
    /// "http://192.168.1.5:8000/v1".
    pub address: String,
    /// Those that it had when it was last asked.
    #[serde(default)]
    pub models: Vec<RemoteModel>,
}

/// A model on such a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct RemoteModel {
    /// What the server calls it.
    pub id: String,
    /// Tokens that prompt and reply may have together; 0 where the server does not say.
    pub context: u32,
}

/// The local server, by which other programs use the loaded models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct ServerSettings {
    /// Whether it runs while the window does.
    pub enabled: bool,
    /// The address that it listens on.
    pub host: String,
    /// 1 to 65535.
    pub port: u16,
    /// What clients must know; empty for nothing.
    pub key: String,
}

/// No draft model: what was said and thought before is repeated.
pub const DRAFT_NGRAM: &str = "ngram";
/// The draft head in the target's own file.
pub const DRAFT_MTP: &str = "mtp";
/// No drafts: plain decoding.
pub const DRAFT_NONE: &str = "none";

/// Percent of the normal size that text may have.
pub const TEXT_SIZE: RangeInclusive<u32> = 80..=160;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct Appearance {
    pub theme: Theme,
    pub language: Language,
    pub reduced_motion: bool,
    /// Percent of the normal size: [`TEXT_SIZE`].
    pub text_size: u32,
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

/// How a conversation continues that no longer fits into the model's context window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ContextOverflow {
    /// The model no longer sees the oldest turns, as few as leave a quarter of the context free.
    #[default]
    DropOldest,
    /// A message that does not fit is refused, and a reply ends where the context does.
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

/// What the window is written in; what models write is not touched by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Language {
    /// The system's, where there are messages in it; else English.
    #[default]
    System,
    En,
    De,
}
