//! Who drafts for a session's target, where, and under which name others know it.

use super::learning::Pair;
use crate::device::{DeviceChoice, Opened};
use crate::draft::{Drafter, Drafters, NgramDrafter, RecyclingDrafter};
use crate::drafter_kind::DrafterKind;
use crate::model::ModelSource;

/// Who shall draft.
#[allow(clippy::large_enum_variant, reason = "made and used at once; nobody keeps many")]
pub enum DraftSource {
    /// What needs no model: n-grams and recycling.
    WithoutModel,
    /// A model beside these; `stage` drafts for the model.
    Model { source: ModelSource, stage: Option<ModelSource> },
}

/// Who is ready to draft.
#[derive(Default)]
pub struct Draft {
    /// What it is chosen by, and what people call it; for the client to give.
    pub id: String,
    pub label: String,
    /// Nobody, where no draft is chosen.
    pub drafters: Drafters,
    /// What computes for the draft model; `None` where there is no model.
    pub(super) device: Option<DraftDevice>,
    pub(super) pair: Pair,
    /// What was learned before was asked for, and what is learned is kept.
    pub(super) remembered: bool,
}

/// What was chosen to compute for a draft model, `None` for what computes for the target, and what does.
#[derive(Debug, Clone)]
pub(super) struct DraftDevice {
    pub choice: Option<DeviceChoice>,
    pub opened: Opened,
}

impl Draft {
    /// The same under another name.
    #[must_use]
    pub fn named(self, id: &str, label: &str) -> Self {
        Self { id: id.to_owned(), label: label.to_owned(), ..self }
    }

    /// What computes for the draft model; `None` where there is no model.
    pub fn device(&self) -> Option<&Opened> {
        self.device.as_ref().map(|device| &device.opened)
    }

    /// [`Self::label`], where somebody drafts.
    pub fn drafting(&self) -> Option<&str> {
        (!self.drafters.is_empty()).then_some(self.label.as_str())
    }

    /// Whether the draft model failed on a GPU in the last reply. Drafters that fail are left out of the reply; a
    /// model does better on the CPU from then on.
    pub fn failed_on_gpu(&self) -> bool {
        let on_gpu = self.device().is_some_and(|opened| opened.gpu.is_some());
        on_gpu
            && [DrafterKind::Model, DrafterKind::Head].into_iter().any(|kind| self.drafters.has_failed(kind))
    }
}

/// The drafters that need no model.
pub(super) fn without_model() -> Vec<Box<dyn Drafter>> {
    vec![Box::<NgramDrafter>::default(), Box::<RecyclingDrafter>::default()]
}
