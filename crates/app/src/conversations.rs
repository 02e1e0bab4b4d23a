//! Conversations: their list and titles, messages, replies, and the settings of each.
//!
//! - [`reply`]: sending messages and writing replies; `running`: the running reply, for a page that
//!   is loaded meanwhile; `round`: a round, converted to JSON once
//! - `unstored`: replies that could not be stored yet; `storing`: retries
//! - `attachments`: attachments and their place in the prompt; `pictures`: decoded pictures
//! - `whole_files`, `excerpts`: files that a prompt has as a whole, and passages of longer ones,
//!   which `document_search` finds
//! - `history`: stored messages as a chat; `room`: conversations that exceed the context
//! - `setup`: a conversation's own settings
//! - `proof`: checks and arenas; `speedups`: speed-ups of stored replies
//! - `folders`: folders of conversations
//! - `title`: titles written by a model
//! - `stored`: stored rows, converted for the page

pub(crate) mod attachments;
pub(crate) mod document_search;
pub(crate) mod excerpts;
pub(crate) mod folders;
pub(crate) mod history;
pub(crate) mod pictures;
pub(crate) mod proof;
pub mod reply;
pub(crate) mod room;
pub(crate) mod round;
pub(crate) mod running;
pub(crate) mod setup;
pub(crate) mod speedups;
pub(crate) mod stored;
pub(crate) mod storing;
pub(crate) mod title;
pub(crate) mod unstored;
pub(crate) mod whole_files;

use foretoken_engine::trace::Round;
use foretoken_model::Role;

use self::title::title_in;
use crate::app::App;
use crate::error::Result;
use crate::ipc::{Conversation, Message, SearchHit};

/// Most search results shown.
const MAX_HITS: u32 = 50;

impl App {
    pub fn conversations(&self) -> Result<Vec<Conversation>> {
        Ok(self.store().conversations()?.into_iter().map(Into::into).collect())
    }

    /// Returns the messages of the shown branch, oldest first.
    pub fn messages(&self, conversation: i64) -> Result<Vec<Message>> {
        let messages = self.unstored.over(|| self.store().messages(conversation))?;
        let shown = |(row, unstored)| Ok(Message { unstored, ..Message::try_from(self.measured(row))? });
        let messages = messages.into_iter().map(shown).collect::<Result<_>>()?;
        Ok(self.with_speedups(messages))
    }

    /// Returns the stored rounds of a reply as a JSON array.
    pub fn trace_json(&self, message: i64) -> Result<String> {
        Ok(format!("[{}]", self.rounds(message)?.join(",")))
    }

    fn rounds(&self, message: i64) -> Result<Vec<String>> {
        self.unstored.rounds(message, || self.store().rounds(message))
    }

    pub fn trace(&self, message: i64) -> Result<Vec<Round>> {
        let rounds = self.rounds(message)?;
        Ok(rounds.iter().map(|round| serde_json::from_str(round)).collect::<std::result::Result<_, _>>()?)
    }

    pub fn rename_conversation(&self, conversation: i64, title: &str) -> Result<Conversation> {
        Ok(self.store().rename_conversation(conversation, title.trim())?.into())
    }

    pub fn pin_conversation(&self, conversation: i64, pinned: bool) -> Result<Conversation> {
        Ok(self.store().pin_conversation(conversation, pinned)?.into())
    }

    pub fn delete_conversation(&self, conversation: i64) -> Result<()> {
        self.store().delete_conversation(conversation)?;
        self.engine.forget_context(conversation);
        Ok(())
    }

    pub fn restore_conversation(&self, conversation: i64) -> Result<Conversation> {
        Ok(self.store().restore_conversation(conversation)?.into())
    }

    pub fn search_messages(&self, query: &str) -> Result<Vec<SearchHit>> {
        let hits = self.store().search(query, MAX_HITS)?;
        Ok(hits.into_iter().map(Into::into).collect())
    }

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
