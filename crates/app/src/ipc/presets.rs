//! Presets, and a conversation's own settings.

use std::ops::RangeInclusive;

use foretoken_engine::speculation::Speculation;
use foretoken_model::sampling::Sampling;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::tools::ToolMode;

/// Length of a preset's name in characters.
pub const PRESET_NAME: RangeInclusive<u32> = 1..=60;

/// Most texts that end a reply, and bytes of each.
pub const STOP_WORDS: u32 = 16;
pub const STOP_WORD_BYTES: usize = 256;

/// Most words with a bias, and bytes of each.
pub const BIASED_WORDS: u32 = 64;
pub const BIASED_WORD_BYTES: usize = 64;

/// A word that is made more or less likely.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct WordBias {
    /// The tokens that are this word, with and without a space before it.
    pub word: String,
    /// Amount that is added to their logits, -100 to 100.
    pub bias: f32,
}

/// Settings of replies, independent of the model.
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
    /// Texts that end a reply and are no part of it, at most [`STOP_WORDS`].
    pub stop: Vec<String>,
    /// Words that are made more or less likely, at most [`BIASED_WORDS`].
    pub word_bias: Vec<WordBias>,
    /// Calls of tools in replies.
    pub tools: ToolMode,
}

/// Named values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct Preset {
    /// Permanent id; for a built-in preset a word such as `precise`.
    pub id: String,
    /// Name given by the user, of [`PRESET_NAME`] characters. The page names built-in presets.
    pub name: String,
    pub values: PresetValues,
}

/// Settings of a conversation, or of a new one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct ConversationSetup {
    /// Id of the target that wrote the last reply, see [`super::ModelEntry::id`]; `None` before the
    /// first.
    pub target: Option<String>,
    /// Id of the draft of that reply.
    pub draft: Option<String>,
    /// `true` if the values were chosen for this conversation; otherwise they follow the settings.
    pub own: bool,
    /// Id of the preset whose values these still are; the preset may have been deleted.
    pub preset: Option<String>,
    pub values: PresetValues,
}
