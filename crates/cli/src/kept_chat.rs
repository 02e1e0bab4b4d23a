//! The conversation that `chat` keeps for `--resume`: its messages after every reply, and the
//! model's context, which another thread writes meanwhile. A failure is one line in the log.

use std::io::ErrorKind;

use foretoken_engine::session::{Session, TextBudget};
use foretoken_library::{Folders, LastChat};
use foretoken_model::ChatMessage;
use foretoken_persistence::{ContextWriter, ModelFiles};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Name of the context; those of the window's conversations are numbers.
const NAME: &str = "terminal";

/// A conversation as it is kept.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedChat {
    /// Name or absolute path of the target.
    pub target: String,
    pub messages: Vec<ChatMessage>,
}

/// Files of the kept conversation; see the module.
pub struct KeptChat {
    file: LastChat,
    contexts: ContextWriter,
}

impl KeptChat {
    /// # Errors
    /// `Error::Library` without a data folder.
    pub fn locate() -> Result<Self> {
        let folders = Folders::locate()?;
        Ok(Self { file: LastChat::new(&folders), contexts: ContextWriter::new(&folders) })
    }

    /// Reads the last conversation.
    ///
    /// # Errors
    /// `Error::NoChat`; `Error::Library` if it cannot be read.
    pub fn last(&self) -> Result<SavedChat> {
        let saved = self.file.load::<SavedChat>()?;
        saved.filter(|chat| !chat.messages.is_empty()).ok_or(Error::NoChat)
    }

    /// Keeps the conversation after a reply, without its pictures.
    pub fn keep(&mut self, mut chat: SavedChat, session: &mut Session) {
        chat.messages.iter_mut().for_each(|message| message.pictures.clear());
        if let Err(error) = self.file.save(&chat) {
            tracing::warn!("the conversation is not kept for --resume: {error}");
            return;
        }
        let text = session.text_to_save();
        self.contexts.spawn("the context of the conversation is not kept", move |files| {
            let written = match text {
                Some(mut text) => {
                    let saved = text.save(NAME, &ModelFiles(files.of_model(text.target())));
                    saved.and(files.remove_of_others(NAME, text.target()))
                }
                None => files.remove(NAME),
            };
            written.and(files.tidy(u64::MAX))
        });
    }

    /// Restores the context of the last conversation for the next reply.
    pub fn restore(&self, session: &mut Session) {
        session.keep_texts(TextBudget::Automatic);
        let files = ModelFiles(self.contexts.files().of_model(session.identity()));
        if let Err(error) = session.restore(NAME, &files, &|| true)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!("the context of the conversation is computed again: {error}");
        }
    }

    /// Waits until the context is written.
    pub fn finish(&mut self) {
        self.contexts.finish();
    }
}
