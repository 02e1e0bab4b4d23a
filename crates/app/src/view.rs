//! Storage of the window's view state and of unsent texts, files and edits in the database.

use foretoken_store as store;

use crate::app::App;
use crate::error::Result;
use crate::ipc::{Attached, Unsent, UnsentEdit, UnsentFile, ViewState};

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

    /// Returns the files that were attached in a conversation but not sent.
    pub fn unsent_files(&self, conversation: Option<i64>) -> Result<Vec<UnsentFile>> {
        let stored = self.store().unsent_files(conversation)?.into_iter();
        Ok(stored.map(|(id, file)| UnsentFile { id, file: file.into() }).collect())
    }

    /// Stores a file that was attached but not sent and returns its id.
    pub fn add_unsent_file(&self, conversation: Option<i64>, file: Attached) -> Result<i64> {
        Ok(self.store().add_unsent_file(conversation, &file.into())?)
    }

    /// Removes files that were sent or taken off the message; missing ones are ignored.
    pub fn remove_unsent_files(&self, ids: &[i64]) -> Result<()> {
        Ok(self.store().remove_unsent_files(ids)?)
    }

    /// Returns the edits of questions that were not sent. An unreadable list of attachments is
    /// empty.
    pub fn unsent_edits(&self) -> Result<Vec<UnsentEdit>> {
        let stored = self.store().unsent_edits()?.into_iter();
        let read = |edit: store::UnsentEdit| UnsentEdit {
            message: edit.message,
            text: edit.text,
            kept: serde_json::from_str(&edit.kept).unwrap_or_default(),
        };
        Ok(stored.map(read).collect())
    }

    /// Replaces the unsent edit of a question.
    pub fn save_unsent_edit(&self, edit: UnsentEdit) -> Result<()> {
        let kept = serde_json::to_string(&edit.kept)?;
        let edit = store::UnsentEdit { message: edit.message, text: edit.text, kept };
        Ok(self.store().save_unsent_edit(&edit)?)
    }

    /// Removes the unsent edit of a question, if there is one.
    pub fn remove_unsent_edit(&self, message: i64) -> Result<()> {
        Ok(self.store().remove_unsent_edit(message)?)
    }

    /// Replaces the stored view state.
    pub fn save_view_state(&self, state: &ViewState) -> Result<()> {
        Ok(self.store().save_view_state(&serde_json::to_string(state)?)?)
    }
}
