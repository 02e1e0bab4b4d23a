//! Drafters of a session's target, their device, and their saved statistics.

use std::sync::atomic::{AtomicU64, Ordering};

use foretoken_forward::device::{DeviceChoice, Opened};
use foretoken_model::ModelSource;

use super::learning::Pair;
use super::saved_text::Hash;
use crate::draft::{Drafter, Drafters, ForcedDrafter, NgramDrafter, RecyclingDrafter};
use crate::drafter_kind::DrafterKind;

/// Drafters to open.
#[allow(clippy::large_enum_variant, reason = "made and used at once; nobody keeps many")]
pub enum DraftSource {
    /// N-grams, recycling and forced tokens, which need no model.
    WithoutModel,
    /// A model in addition to these; `stage` drafts for the model.
    Model { source: ModelSource, stage: Option<ModelSource> },
}

/// Opened drafters.
#[derive(Default)]
pub struct Draft {
    /// Identifier and display name; set by the client.
    pub id: String,
    pub label: String,
    /// Empty if no draft is chosen.
    pub drafters: Drafters,
    /// Device of the draft model; `None` without a model.
    pub(super) device: Option<DraftDevice>,
    pub(super) pair: Pair,
    /// Weights that the draft model's pass reads over those of the target's; `None` if unknown.
    pub(super) share: Option<f64>,
    /// Number of these drafters among all that were opened; 0 without any.
    pub(super) number: u64,
    /// Hash of its models' files, the target's included; `None` without a model.
    pub(super) hash: Option<Hash>,
    /// True once saved statistics were restored; new ones are then saved.
    pub(super) saves_stats: bool,
}

/// Chosen device of a draft model (`None` for the target's), and the one in use.
#[derive(Debug, Clone)]
pub(super) struct DraftDevice {
    pub choice: Option<DeviceChoice>,
    pub opened: Opened,
}

impl Draft {
    /// Sets identifier and display name.
    #[must_use]
    pub fn named(self, id: &str, label: &str) -> Self {
        Self { id: id.to_owned(), label: label.to_owned(), ..self }
    }

    /// Device of the draft model; `None` without a model.
    pub fn device(&self) -> Option<&Opened> {
        self.device.as_ref().map(|device| &device.opened)
    }

    /// [`Self::label`], if there are drafters.
    pub fn drafting(&self) -> Option<&str> {
        (!self.drafters.is_empty()).then_some(self.label.as_str())
    }

    /// Returns true if the draft model failed on a GPU in the last reply. Failed drafters are left
    /// out of that reply; the model should then move to the CPU.
    pub fn failed_on_gpu(&self) -> bool {
        let on_gpu = self.device().is_some_and(|opened| opened.gpu.is_some());
        on_gpu
            && [DrafterKind::Model, DrafterKind::Head].into_iter().any(|kind| self.drafters.has_failed(kind))
    }
}

/// Next number of opened drafters.
pub(super) fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Drafters without a model.
pub(super) fn without_model() -> Vec<Box<dyn Drafter>> {
    vec![Box::<NgramDrafter>::default(), Box::<RecyclingDrafter>::default(), Box::new(ForcedDrafter)]
}
