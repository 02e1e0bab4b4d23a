//! Which conversation is open.

use crate::ipc::{ConversationSetup, PresetValues};

/// The conversation that is open, and what is chosen for it.
#[derive(Default)]
pub(crate) struct Facing {
    /// `None` for one that is to come.
    pub(crate) conversation: Option<i64>,
    pub(crate) setup: ConversationSetup,
    /// What the engine was told to write with.
    pub(crate) applied: Option<PresetValues>,
}
