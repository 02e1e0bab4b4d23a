//! Where the window's view state is kept: in the database, beside the settings.

use crate::app::App;
use crate::error::Result;
use crate::ipc::ViewState;

impl App {
    /// The stored view state; `None` when none was ever saved or it is unreadable.
    pub fn view_state(&self) -> Result<Option<ViewState>> {
        let stored = self.store().view_state()?;
        Ok(stored.and_then(|json| {
            let state = serde_json::from_str(&json);
            state.inspect_err(|error| tracing::warn!(%error, "the stored view state is unreadable")).ok()
        }))
    }

    /// Replaces the stored view state.
    pub fn save_view_state(&self, state: &ViewState) -> Result<()> {
        Ok(self.store().save_view_state(&serde_json::to_string(state)?)?)
    }
}
