//! Thread that writes and removes contexts on disk.

use std::io;
use std::thread::{self, JoinHandle};

use foretoken_library::{Contexts, Folders};

/// See the module.
pub struct ContextWriter {
    files: Contexts,
    /// Thread that writes or removes files, one after the other.
    work: Option<JoinHandle<()>>,
}

impl ContextWriter {
    pub fn new(folders: &Folders) -> Self {
        Self { files: Contexts::new(folders), work: None }
    }

    pub fn files(&self) -> &Contexts {
        &self.files
    }

    /// Runs `work` after the work before it. A failure is one line in the log, after `failure`.
    pub fn spawn(
        &mut self,
        failure: &'static str,
        work: impl FnOnce(&Contexts) -> io::Result<()> + Send + 'static,
    ) {
        let (before, files) = (self.work.take(), self.files.clone());
        let run = move || {
            let _ = before.map(JoinHandle::join);
            if let Err(error) = work(&files) {
                tracing::warn!("{failure}: {error}");
            }
        };
        self.work = thread::Builder::new().name("contexts".to_owned()).spawn(run).ok();
    }

    /// Waits until all work is done.
    pub fn finish(&mut self) {
        let _ = self.work.take().map(JoinHandle::join);
    }
}
