//! Titles for conversations that are still named after their first words.

use foretoken_model::Role;

use crate::app::App;
use crate::error::Result;
use crate::ipc::Conversation;
use crate::title::title_in;

impl App {
    /// Asks the model to title a conversation that is still named after its first words, and waits
    /// for it. Any other job cancels this; it can be retried after a later reply. `None` if the
    /// title stays.
    ///
    /// # Errors
    /// Returns `NotFound` if the conversation does not exist.
    pub fn write_title(&self, conversation: i64) -> Result<Option<Conversation>> {
        if !self.settings().write_titles || self.store().is_named(conversation)? {
            return Ok(None);
        }
        let messages = self.seen(conversation)?;
        if messages.last().is_none_or(|last| last.role != Role::Assistant) {
            return Ok(None);
        }
        let values = self.setup_of(Some(conversation))?.values;
        match self.engine.title(messages, values).recv() {
            Ok(Ok(Some(answer))) => {
                let title = title_in(&answer);
                let named = self.store().name_conversation(conversation, title.as_deref())?;
                Ok(title.map(|_| named.into()))
            }
            Ok(Err(error)) => {
                tracing::debug!("no title was written: {}", error.message);
                Ok(None)
            }
            _ => Ok(None),
        }
    }
}
