//! Storage of the window's view state and unsent texts in the database.

use crate::app::App;
use crate::error::Result;
use crate::ipc::{Unsent, ViewState};

impl App {
    /// Returns the stored view state; `None` if none was ever saved or it is unreadable.
    pub fn view_state(&self) -> Result<Option<ViewState>> {
        let stored = self.store().view_state()?;
        Ok(stored.and_then(|json| {
            let state = serde_json::from_str(&json);
            state.inspect_err(|error| tracing::warn!(%error, "the stored view state is unreadable")).ok()
        }))
    }

    /// Returns texts that were typed but not sent.
    pub fn unsent(&self) -> Result<Vec<Unsent>> {
        let stored = self.store().unsent()?.into_iter();
        Ok(stored.map(|(conversation, text)| Unsent { conversation, text }).collect())
    }

    /// Replaces the unsent text of its conversation; an empty one is removed.
    pub fn save_unsent(&self, unsent: &Unsent) -> Result<()> {
        Ok(self.store().save_unsent(unsent.conversation, &unsent.text)?)
    }

    /// Replaces the stored view state.
    pub fn save_view_state(&self, state: &ViewState) -> Result<()> {
        Ok(self.store().save_view_state(&serde_json::to_string(state)?)?)
    }
}
