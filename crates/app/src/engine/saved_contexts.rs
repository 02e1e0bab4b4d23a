//! Contexts on disk for the engine thread, and the one that is to be written.

use std::io;

use foretoken_engine::session::TextToSave;
use foretoken_library::{Contexts, Folders};
use foretoken_persistence::ContextWriter;

/// See the module.
pub(super) struct SavedContexts {
    writer: ContextWriter,
    /// Context of the last reply, and its conversation once that is known.
    pub(super) unsaved: Option<(TextToSave, Option<i64>)>,
}

impl SavedContexts {
    pub(super) fn new(folders: &Folders) -> Self {
        Self { writer: ContextWriter::new(folders), unsaved: None }
    }

    pub(super) fn files(&self) -> &Contexts {
        self.writer.files()
    }

    /// Runs `work` on another thread, after the work before it.
    pub(super) fn spawn(&mut self, work: impl FnOnce(&Contexts) -> io::Result<()> + Send + 'static) {
        self.writer.spawn("the contexts on disk could not be changed", work);
    }

    /// Waits until all work is done, which then takes no pauses.
    pub(super) fn finish(&mut self) {
        self.writer.finish();
    }
}
