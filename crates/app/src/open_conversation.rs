//! The open conversation.

use crate::ipc::{ConversationSetup, PresetValues};

/// The open conversation with its own settings.
#[derive(Default)]
pub(crate) struct OpenConversation {
    /// Id; `None` for a new conversation.
    pub(crate) conversation: Option<i64>,
    pub(crate) setup: ConversationSetup,
    /// Values that the engine applies.
    pub(crate) applied: Option<PresetValues>,
}
