//! The conversation that `chat` keeps for `--resume`: its messages after every reply, and the
//! model's context, which another thread writes meanwhile. A failure is one line in the log.

use std::io::{self, ErrorKind};
use std::thread::{self, JoinHandle};

use foretoken_engine::session::{ContextFiles, Hash, Session, TextBudget};
use foretoken_library::{Contexts, Folders, LastChat, ModelContexts};
use foretoken_model::ChatMessage;
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
    contexts: Contexts,
    writing: Option<JoinHandle<()>>,
}

impl KeptChat {
    /// # Errors
    /// `Error::Library` without a data folder.
    pub fn locate() -> Result<Self> {
        let folders = Folders::locate()?;
        Ok(Self { file: LastChat::new(&folders), contexts: Contexts::new(&folders), writing: None })
    }

    /// Reads the last conversation.
    ///
    /// # Errors
    /// `Error::NoChat`; `Error::Library` if it cannot be read.
    pub fn last(&self) -> Result<SavedChat> {
        let saved = self.file.load::<SavedChat>()?;
        saved.filter(|chat| !chat.messages.is_empty()).ok_or(Error::NoChat)
    }

    /// Keeps the conversation after a reply.
    pub fn keep(&mut self, chat: &SavedChat, session: &mut Session) {
        if let Err(error) = self.file.save(chat) {
            tracing::warn!("the conversation is not kept for --resume: {error}");
            return;
        }
        let (before, contexts, text) = (self.writing.take(), self.contexts.clone(), session.text_to_save());
        let write = move || {
            let _ = before.map(JoinHandle::join);
            let written = match text {
                Some(mut text) => {
                    let saved = text.save(NAME, &Files(contexts.of_model(text.target())));
                    saved.and(contexts.remove_of_others(NAME, text.target()))
                }
                None => contexts.remove(NAME),
            };
            if let Err(error) = written.and(contexts.tidy(u64::MAX)) {
                tracing::warn!("the context of the conversation is not kept: {error}");
            }
        };
        self.writing = thread::Builder::new().name("contexts".to_owned()).spawn(write).ok();
    }

    /// Restores the context of the last conversation for the next reply.
    pub fn restore(&self, session: &mut Session) {
        session.keep_texts(TextBudget::Automatic);
        let files = Files(self.contexts.of_model(session.identity()));
        if let Err(error) = session.restore(NAME, &files, &|| true)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!("the context of the conversation is computed again: {error}");
        }
    }

    /// Waits until the context is written.
    pub fn finish(&mut self) {
        let _ = self.writing.take().map(JoinHandle::join);
    }
}

/// Contexts of one model, for the engine.
struct Files(ModelContexts);

impl ContextFiles for Files {
    fn save(
        &self,
        name: &str,
        pages: &[Hash],
        bytes_of: &mut dyn FnMut(usize) -> Vec<u8>,
        text: &[u8],
    ) -> io::Result<()> {
        self.0.save(name, pages, bytes_of, text)
    }

    fn text(&self, name: &str) -> io::Result<Vec<u8>> {
        Ok(self.0.text(name)?.1)
    }

    fn page(&self, page: &Hash, length: usize) -> io::Result<Vec<u8>> {
        self.0.page(page, length)
    }
}
