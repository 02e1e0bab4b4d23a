//! Status of the engine, and the state of drafting.

use std::mem::discriminant;

use foretoken_engine::trace::LengthReason;
use foretoken_forward::device::{
    DeviceChoice, DeviceLabel, DeviceNote, DeviceRemark, Problem as DeviceProblem,
};
use foretoken_model::sampling::ModelPenalties;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::ErrorCode;
use super::models::{DraftOption, ModelEntry};

/// Status of the engine. Sent completely at first, then as [changes](EngineStatus::changes).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct EngineStatus {
    pub phase: EnginePhase,
    /// Problem of the models or their devices.
    pub message: Option<EngineMessage>,
    /// The model whose weights are being read.
    pub loading: Option<Loading>,
    /// The loaded target.
    pub target: Option<ModelEntry>,
    /// Default of the target's reasoning switch; `None` if its template has no such switch.
    pub thinks: Option<bool>,
    /// `true` if the target sees pictures.
    pub sees: bool,
    /// `true` if the target's template refuses system messages, so that the system prompt is put
    /// before the first question.
    pub merges_system: bool,
    /// Penalties of replies with automatic penalties by the loaded target.
    pub penalties: ModelPenalties,
    /// All models on this computer, whether usable as a target or not; unusable ones with the
    /// reason.
    pub targets: Vec<ModelEntry>,
    /// All drafts for the loaded target, the best first, unusable ones last with the reason.
    pub drafts: Vec<DraftOption>,
    /// Id of the draft in use; empty before one was chosen.
    pub draft: String,
    pub why: Why,
    /// Device of the target; without a name until the first is loaded.
    pub device: DeviceLabel,
    /// Device choice with which the target was loaded.
    pub device_choice: DeviceChoice,
    /// Device of the draft model, if there is one.
    pub draft_device: Option<DeviceLabel>,
    /// Reasons why another device is used than the chosen one.
    pub device_remarks: Vec<DeviceRemark>,
    /// Measurements of devices and the resulting choice.
    pub device_notes: Vec<DeviceNote>,
    /// Devices found so far, usable or not.
    pub devices: Vec<DeviceOption>,
    pub memory: MemoryUse,
    /// Prefill rate of the target in tokens per second, measured on the last long prompt; `None`
    /// before that.
    pub reading_rate: Option<f64>,
    /// Conversation opened last whose context is known; `None` before one was.
    pub read_context: Option<ReadContext>,
    /// Revision of the settings in effect; the page shows the choices of newer settings.
    #[serde(skip)]
    #[ts(skip)]
    pub revision: u64,
}

/// Changed fields of an [`EngineStatus`], by name.
pub type EngineChange = serde_json::Map<String, serde_json::Value>;

/// Adds the changed fields to a change; all of them without an earlier status.
macro_rules! changes {
    ($now:expr, $before:expr, $($field:ident),*) => {{
        // Destructures every field, so none is forgotten.
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
    /// Returns the fields that differ from `before`; all without it. A percent of loading then does
    /// not send the model lists again.
    pub fn changes(&self, before: Option<&Self>) -> EngineChange {
        changes!(
            self,
            before,
            phase,
            message,
            loading,
            target,
            thinks,
            sees,
            merges_system,
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
            reading_rate,
            read_context
        )
    }
}

/// Problem of the models or their devices. `detail` is a sentence in English.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum EngineMessage {
    /// A model could not be loaded.
    Error { code: ErrorCode, detail: String },
    /// A device other than the chosen one is used.
    Device { remark: DeviceRemark },
    /// GPU memory ran out, so the target has a context of at most this many tokens.
    ShorterContext { tokens: u32 },
    /// The engine failed, and the model was dropped.
    Failed,
    /// The engine failed, and the model was reloaded.
    Reloaded,
}

/// A device that can be chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct DeviceOption {
    pub choice: DeviceChoice,
    pub label: DeviceLabel,
    /// Reason why it cannot be used here; `None` if it can.
    pub problem: Option<DeviceProblem>,
}

/// Part of an opened conversation that the model has yet to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ReadContext {
    #[ts(type = "number")]
    pub conversation: i64,
    /// Tokens to read before the next reply, beside the next question.
    pub left: u32,
}

/// Memory on this computer, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct MemoryUse {
    /// Memory of the loaded target with space for a conversation, estimated; 0 without one, and for
    /// one in a GPU's own memory.
    #[ts(type = "number")]
    pub target_bytes: u64,
    #[ts(type = "number")]
    pub draft_bytes: u64,
    /// Contexts of other conversations and of clients of the local server.
    #[ts(type = "number")]
    pub contexts_bytes: u64,
    /// Memory of the whole program.
    #[ts(type = "number")]
    pub process_bytes: u64,
    #[ts(type = "number")]
    pub free_bytes: u64,
    /// Memory of the GPU in use, and how much of it is free; 0 without one.
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

/// Progress of loading a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Loading {
    /// Label of the model, see [`super::ModelEntry::label`].
    pub label: String,
    /// Percent of its bytes, 0..=100.
    pub percent: u32,
    /// `true` for the draft, `false` for the target.
    pub draft: bool,
}

/// State of drafting, and the reason. The page turns it into a sentence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Why {
    pub state: Speculating,
    /// On: name of the drafter.
    pub drafter: Option<String>,
    /// On: draft length K; `None` until the governor has chosen it.
    pub length: Option<u32>,
    /// Paused: the reason.
    pub reason: Option<LengthReason>,
    /// Paused: expected speed with the best draft length, relative to plain decoding.
    pub expected: Option<f32>,
    /// Off: the reason.
    pub off: Option<OffReason>,
    /// Deviations from the settings, at most one of each kind.
    pub remarks: Vec<DraftRemark>,
}

impl Why {
    /// Drafting is off for this reason.
    pub fn off(reason: OffReason) -> Self {
        Self { off: Some(reason), ..Self::of(Speculating::Off) }
    }

    pub(crate) fn of(state: Speculating) -> Self {
        let (drafter, length, reason, expected, off) = (None, None, None, None, None);
        Self { state, drafter, length, reason, expected, off, remarks: Vec::new() }
    }

    /// Adds a remark in the place of an earlier one of its kind.
    pub fn remark(&mut self, remark: DraftRemark) {
        self.remarks.retain(|earlier| discriminant(earlier) != discriminant(&remark));
        self.remarks.push(remark);
    }
}

/// Reason why drafting is off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum OffReason {
    /// No model is loaded yet.
    Starting,
    NoModel,
    /// The chosen draft is none.
    NoDraft,
    /// The settings turn drafting off.
    Settings,
    /// The target is on a server, which may draft by itself.
    Server,
    /// Loading the draft was cancelled: newer settings follow.
    Cancelled,
}

/// Deviation of drafting from the settings. `detail` is a sentence in English.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum DraftRemark {
    /// The draft failed in a reply.
    Failed { detail: String },
    /// The chosen draft cannot be used, so another drafts.
    Unusable { detail: String },
    /// The draft model runs on the CPU although the target runs on a GPU.
    OnCpu { remark: DeviceRemark },
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
    use crate::observable::Observable;

    #[test]
    fn a_percent_of_loading_sends_no_other_field() {
        let before = Observable::starting().get();
        let loading = Loading { label: "Starter".to_owned(), percent: 7, draft: false };
        let now = EngineStatus { loading: Some(loading), ..before.clone() };
        let change = serde_json::to_string(&now.changes(Some(&before))).unwrap();
        assert_eq!(change, r#"{"loading":{"label":"Starter","percent":7,"draft":false}}"#);
        assert!(now.changes(Some(&now)).is_empty());
    }

    #[test]
    fn the_first_change_is_the_whole_status() {
        let status = Observable::starting().get();
        assert_eq!(serde_json::Value::from(status.changes(None)), serde_json::to_value(&status).unwrap());
    }
}
