//! Presets, and what a conversation is written with.

use std::ops::RangeInclusive;

use foretoken_engine::sampling::Sampling;
use foretoken_engine::speculation::Speculation;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Letters that the name of a preset may have.
pub const PRESET_NAME: RangeInclusive<u32> = 1..=60;

/// What replies are written with, whoever writes them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct PresetValues {
    /// Instructions put before the conversation; empty for none.
    pub system_prompt: String,
    pub sampling: Sampling,
    pub speculation: Speculation,
    /// Longest reply in tokens; 0 means as long as the context allows.
    pub max_tokens: u32,
}

/// Such values under a name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct Preset {
    /// Its own for good; of one that comes with the program a word such as `precise`.
    pub id: String,
    /// What the person calls it: [`PRESET_NAME`] letters. Those that come with the program are called by the page.
    pub name: String,
    pub values: PresetValues,
}

/// What a conversation is written with, or a new one would be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct ConversationSetup {
    /// Id of the target that wrote the last reply, see [`super::ModelEntry::id`]; `None` before there was one.
    pub target: Option<String>,
    /// Id of what drafted for it.
    pub draft: Option<String>,
    /// Whether the values were chosen for it; where not, they are the settings', and follow them.
    pub own: bool,
    /// Id of the preset that the values are from and still are as it had them; it may be gone.
    pub preset: Option<String>,
    pub values: PresetValues,
}
