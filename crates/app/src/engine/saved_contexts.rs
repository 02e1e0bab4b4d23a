//! Files of contexts for the engine thread: writes and removes them on another thread.

use std::io;
use std::thread::{self, JoinHandle};

use foretoken_engine::session::{ContextFiles, Hash, TextToSave};
use foretoken_library::{Contexts, Folders, ModelContexts};

/// Files of contexts, and what is to be written.
pub(super) struct SavedContexts {
    pub(super) files: Contexts,
    /// Context of the last reply, and its conversation once that is known.
    pub(super) unsaved: Option<(TextToSave, Option<i64>)>,
    /// Thread that writes or removes files, one after the other.
    work: Option<JoinHandle<()>>,
}

impl SavedContexts {
    pub(super) fn new(folders: &Folders) -> Self {
        Self { files: Contexts::new(folders), unsaved: None, work: None }
    }

    /// Runs `work` after the work before it.
    pub(super) fn spawn(&mut self, work: impl FnOnce(&Contexts) -> io::Result<()> + Send + 'static) {
        let (before, files) = (self.work.take(), self.files.clone());
        let run = move || {
            let _ = before.map(JoinHandle::join);
            if let Err(error) = work(&files) {
                tracing::warn!("the contexts on disk could not be changed: {error}");
            }
        };
        self.work = thread::Builder::new().name("contexts".to_owned()).spawn(run).ok();
    }
}

/// Contexts of one model, for the engine.
pub(super) struct ModelFiles(pub(super) ModelContexts);

impl ContextFiles for ModelFiles {
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
