//! Thread that writes and removes contexts on disk, with the lowest priority: a reply that is being
//! written has the processor first.

use std::io;
use std::thread::{self, JoinHandle};

use foretoken_library::{Contexts, Folders};
use thread_priority::{ThreadPriority, set_current_thread_priority};

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
            // Where the system refuses, the thread has the usual priority.
            let _ = set_current_thread_priority(ThreadPriority::Min);
            let _ = before.map(JoinHandle::join);
            if let Err(error) = work(&files) {
                tracing::warn!("{failure}: {error}");
            }
        };
        self.work = thread::Builder::new().name("contexts".to_owned()).spawn(run).ok();
    }

    /// Does the rest of the work as fast as the disk allows, and waits for it.
    pub fn finish(&mut self) {
        self.files.hurry(true);
        let _ = self.work.take().map(JoinHandle::join);
        self.files.hurry(false);
    }
}
