//! Excerpts of attached files that are too long for the model's context. They are stored with the
//! question, so that its prompt stays the same.

use std::sync::Arc;

use foretoken_documents::{Coverage, Excerpt, PASSAGES, Part, excerpts};
use foretoken_store as store;

use super::document_search::{Document, Matches};
use super::history::ReadMessage;
use super::whole_files::WholeFiles;
use crate::app::App;
use crate::embedding::Unloaded;
use crate::error::Result;
use crate::ipc::{Attached, DocumentSearchStatus};

impl App {
    /// Adds the text of a file to the index if it is too long for the prompt of a new conversation,
    /// so that the question need not wait for it.
    pub(crate) fn prepare_search(&self, file: &Attached) -> Result<()> {
        let part = self.whole_files_if(false).next(file.kind.into(), file.text.len());
        if let Some(Part::Beginning(_)) = part {
            self.document_search.add(&file.text)?;
            self.embed_when_idle();
        }
        Ok(())
    }

    /// Computes embeddings of passages that have none while the engine has nothing else to do.
    pub(crate) fn embed_when_idle(&self) {
        let search = Arc::clone(&self.document_search);
        self.engine.run_when_idle(move || {
            search.embed_next().unwrap_or_else(|error| {
                tracing::warn!("documents are searched by their words only: {}", error.message);
                false
            })
        });
    }

    /// Uses the embedding model of the settings for later searches, and loads it while the engine
    /// has nothing else to do.
    pub(crate) fn use_embedding_model(&self) -> Result<()> {
        if self.embedder.choose(Unloaded::of(&self.settings(), &self.library)) {
            self.document_search.forget_embeddings()?;
            self.embed_when_idle();
        }
        Ok(())
    }

    /// Returns the state of the search in documents.
    ///
    /// # Errors
    /// Returns `Internal` without memory.
    pub fn document_search_status(&self) -> Result<DocumentSearchStatus> {
        let Coverage { embedded, passages } = self.document_search.coverage()?;
        Ok(DocumentSearchStatus {
            passages: passages as u32,
            embedded: embedded as u32,
            problem: self.embedder.problem(),
        })
    }

    /// Finds the excerpts for a question with the files `attached`, after messages with theirs: of
    /// all documents that are not part of the prompt as a whole.
    pub(crate) fn excerpts(
        &self,
        question: &str,
        attached: &[store::Attached],
        before: &[ReadMessage],
        mut whole: WholeFiles,
    ) -> Result<Vec<Excerpt>> {
        let (mut documents, mut names) = (Vec::new(), Vec::new());
        for file in before.iter().flat_map(|message| &message.attachments) {
            if let Some(Part::Beginning(_)) = whole.next(file.kind, file.bytes as usize) {
                documents.push(Document::Stored(file.id));
                names.push(file.name.as_str());
            }
        }
        for file in attached {
            if let Some(Part::Beginning(_)) = whole.next(file.kind, file.text.len()) {
                documents.push(Document::New(&file.text));
                names.push(&file.name);
            }
        }
        if documents.is_empty() {
            return Ok(Vec::new());
        }
        let text_of = |id| Ok(self.store().attachment(id)?.text);
        let Matches { keys, passages } =
            self.document_search.find(&documents, question, PASSAGES, text_of)?;
        self.embed_when_idle();
        let named: Vec<_> = keys.into_iter().zip(names).collect();
        Ok(excerpts(passages, whole.budget(), &named))
    }
}
