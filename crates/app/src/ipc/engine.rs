//! What the engine is doing, and whether it speculates.

use foretoken_engine::device::DeviceChoice;
use foretoken_engine::sampling::ModelPenalties;
use foretoken_engine::trace::LengthReason;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::models::{DraftOption, ModelEntry};

/// What the engine is doing. Sent whole at first, then [what changed](EngineStatus::changes).
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
    /// Whether the target thinks before it answers when nothing is said about it; `None` where its template has no
    /// switch for that.
    pub thinks: Option<bool>,
    /// Penalties of replies with automatic penalties by the loaded target.
    pub penalties: ModelPenalties,
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
    /// Sentences that say what was measured of devices, and which one follows from it.
    pub device_notes: Vec<String>,
    /// What there is to choose from, usable or not, as far as anybody looked.
    pub devices: Vec<DeviceOption>,
    pub memory: MemoryUse,
    /// Tokens of a prompt that the target reads per second, measured on the last long one; `None` before that.
    pub reading_rate: Option<f64>,
    /// Number of the settings that were taken up last; the page is shown the choices of later ones.
    #[serde(skip)]
    #[ts(skip)]
    pub revision: u64,
}

/// Some fields of an [`EngineStatus`], by their names.
pub type EngineChange = serde_json::Map<String, serde_json::Value>;

/// Puts those fields into a change that differ; all of them without a status before.
macro_rules! changes {
    ($now:expr, $before:expr, $($field:ident),*) => {{
        // Names them all, so that none is forgotten.
        let EngineStatus { $($field),*, revision: _ } = $now;
        let mut change = EngineChange::new();
        $(if $before.is_none_or(|before: &EngineStatus| before.$field != *$field) {
            let value = serde_json::to_value($field).unwrap_or_default();
            change.insert(stringify!($field).to_owned(), value);
        })*
        change
    }};
}

impl EngineStatus {
    /// What is different from `before`; everything without it. So a percent of loading does not carry the lists of
    /// models.
    pub fn changes(&self, before: Option<&Self>) -> EngineChange {
        changes!(
            self,
            before,
            phase,
            message,
            loading,
            target,
            thinks,
            penalties,
            targets,
            drafts,
            draft,
            why,
            device,
            device_choice,
            draft_device,
            device_remarks,
            device_notes,
            devices,
            memory,
            reading_rate
        )
    }
}

/// A choice of what computes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct DeviceOption {
    pub choice: DeviceChoice,
    /// "CPU", "AMD Radeon 780M".
    pub name: String,
    /// "8 threads", "AVX-512"; "Vulkan", "bit-identical to the CPU".
    pub details: Vec<String>,
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
    /// [`super::ModelEntry::label`].
    pub label: String,
    /// Of its bytes, 0..=100.
    pub percent: u32,
    /// It is the draft; else the target.
    pub draft: bool,
}

/// The why line: whether replies are drafted, and the reason. The page puts it into words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Why {
    pub state: Speculating,
    /// On: the label of what drafts.
    pub drafter: Option<String>,
    /// On: the draft length K; `None` while the governor has yet to choose it.
    pub length: Option<u32>,
    /// Paused: why.
    pub reason: Option<LengthReason>,
    /// Paused: expected speed with the best draft length over that of plain decoding.
    pub expected: Option<f32>,
    /// Off: why. Else what differs from the settings; empty where nothing does. Without a full stop at its end.
    pub text: String,
}

impl Why {
    /// Nothing is drafted, for this reason.
    pub fn off(reason: &str) -> Self {
        let text = reason.trim_end_matches('.').to_owned();
        Self { state: Speculating::Off, drafter: None, length: None, reason: None, expected: None, text }
    }

    /// Adds a sentence to the text.
    pub fn add(&mut self, sentence: &str) {
        let join = if self.text.is_empty() { "" } else { ". " };
        self.text = format!("{}{join}{}", self.text, sentence.trim_end_matches('.'));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Speculating {
    On,
    Paused,
    Off,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Board;

    #[test]
    fn a_percent_of_loading_carries_nothing_else() {
        let before = Board::starting().status();
        let loading = Loading { label: "Starter".to_owned(), percent: 7, draft: false };
        let now = EngineStatus { loading: Some(loading), ..before.clone() };
        let change = serde_json::to_string(&now.changes(Some(&before))).unwrap();
        assert_eq!(change, r#"{"loading":{"draft":false,"label":"Starter","percent":7}}"#);
        assert!(now.changes(Some(&now)).is_empty());
    }

    #[test]
    fn the_first_change_is_the_whole_status() {
        let status = Board::starting().status();
        assert_eq!(serde_json::Value::from(status.changes(None)), serde_json::to_value(&status).unwrap());
    }
}
